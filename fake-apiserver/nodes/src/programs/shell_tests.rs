use std::sync::Arc;
use std::time::Duration;

use client_kit::TokioClock;
use jiff::Timestamp;
use rstest::rstest;

use super::*;

fn clock() -> SharedClock {
    Arc::new(TokioClock::starting_at(Timestamp::UNIX_EPOCH))
}

#[rstest]
#[case("echo hello", 0, "hello\n")]
#[case("echo -n a; echo b", 0, "ab\n")]
#[case("false || echo no && echo yes", 0, "no\nyes\n")]
#[case("true && exit 3; echo never", 3, "")]
#[case("i=0; while [ $i -lt 3 ]; do i=$((i+1)); echo $i; done", 0, "1\n2\n3\n")]
#[case("until [ -f /tmp/x ]; do touch /tmp/x; done; ls /tmp", 0, "x\n")]
#[case(
    "for x in a 'b c' $(echo d e); do echo \"<$x>\"; done",
    0,
    "<a>\n<b c>\n<d>\n<e>\n"
)]
#[case("echo one > /tmp/f; echo two >> /tmp/f; cat /tmp/f", 0, "one\ntwo\n")]
#[case(
    "cat /tmp/none",
    1,
    "cat: can't open '/tmp/none': No such file or directory\n"
)]
#[case("ls /none 2>/dev/null; echo $?", 0, "1\n")]
#[case("printf '%s=%d\\n' a 1 b 2", 0, "a=1\nb=2\n")]
#[case(
    "if [ -e /nope ]; then echo a; elif true; then echo b; else echo c; fi",
    0,
    "b\n"
)]
#[case("case abc in x) echo x;; a*) echo a;; esac", 0, "a\n")]
#[case("X=1; echo ${X} ${Y:-none} \"$X\"'$X'", 0, "1 none 1$X\n")]
#[case("echo a | cat; printf 'a\\nb\\n' | wc -l", 0, "a\n2\n")]
#[case(
    "mkdir -p /a/b && mv /a/b /c; rm -rf /a; [ -d /a ]",
    1,
    "mv: can't rename '/a/b': Is a directory\n"
)]
#[case("touch /tmp/a && mv /tmp/a /tmp/b && ls /tmp", 0, "b\n")]
#[case(
    "echo a > /tmp/a; mv -v /tmp/a /home/; mv -v /tmp/a /home/ || true",
    0,
    "renamed '/tmp/a' -> '/home/a'\nmv: can't rename '/tmp/a': No such file or directory\n"
)]
#[case(
    "mkdir -p /x/y; touch /x/y/b /x/a; find /x; find /none",
    1,
    "/x\n/x/a\n/x/y\n/x/y/b\nfind: /none: No such file or directory\n"
)]
#[case("cd /x 2>/dev/null; cd /home; touch a; find", 0, ".\n./a\n")]
#[case(
    "dd if=/dev/zero of=/tmp/z bs=3 count=2; wc -c < /tmp/z",
    0,
    "2+0 records in\n2+0 records out\n6\n"
)]
#[case(
    "printf abcde | dd bs=2 2>/dev/null; dd if=/none",
    1,
    "abcdedd: can't open '/none': No such file or directory\n"
)]
#[case("dd bs=x if=/dev/zero", 1, "dd: invalid number\n")]
#[case("nonsense", 127, "sh: nonsense: not found\n")]
#[case("hostname; env | grep ^HOSTNAME", 0, "web-0\nHOSTNAME=web-0\n")]
#[case(
    "echo 'a(b)' | grep -x 'a(b)'; echo ab | grep -x a || echo none",
    0,
    "a(b)\nnone\n"
)]
#[case("echo ab | grep -E '^(a|x)b$'; echo ab | grep 'a\\(b\\)'", 0, "ab\nab\n")]
#[case(
    "echo a.b | grep -F a.b; echo axb | grep -F a.b || echo none",
    0,
    "a.b\nnone\n"
)]
#[case("(exit 4); echo $?", 0, "4\n")]
#[case("! true", 1, "")]
#[case("f() { echo in; return 3; }; f; echo $?", 0, "in\n3\n")]
#[case("f() { f; }; f", 2, "sh: maximum function recursion depth exceeded\n")]
#[case("(true) true", 2, "sh: syntax error: unexpected \"true\"\n")]
#[case("{ echo a; echo b; } > /tmp/f; cat /tmp/f", 0, "a\nb\n")]
#[case("[ a = a -a 1 -lt 2 ] && echo yes", 0, "yes\n")]
#[case("echo x; kill -9 1; date", 0, "x\nThu Jan  1 00:00:00 UTC 1970\n")]
#[case("trap 'echo bye' EXIT; exit 2", 2, "bye\n")]
#[case("sh -c 'exit 5'; echo $?", 0, "5\n")]
#[case(
    "printf 'b 2\\na 10\\nb 2\\n' > /f; sort /f; sort -u /f | wc -l; sort -t ' ' -k 2n /f | head -n 1; sort -r /f | uniq -c",
    0,
    "a 10\nb 2\nb 2\n2\nb 2\n      2 b 2\n      1 a 10\n"
)]
#[case(
    "printf 'a:b:c\\nd\\n' | cut -d : -f 1,3; echo abcdef | cut -c 2-3; cut",
    1,
    "a:c\nd\nbc\ncut: expected a list of bytes, characters, or fields\n"
)]
#[case(
    "echo Hello | tr a-z A-Z; echo a--b | tr -s -; echo a1b2 | tr -d 0-9; echo ab | tr -d '[:lower:]'",
    0,
    "HELLO\na-b\nab\n\n"
)]
#[case(
    "printf seatrial | base64; echo c2VhdHJpYWw= | base64 -d; echo '!' | base64 -d",
    1,
    "c2VhdHJpYWw=\nseatrialbase64: truncated input\n"
)]
#[case(
    "printf 'one\\ntwo\\nthree\\n' > /f; sed -n 2p /f; sed 's/\\(t\\)w/\\1W/;/one/d' /f; sed -i 's/e/E/g' /f; sed '$d' /f",
    0,
    "two\ntWo\nthree\nonE\ntwo\n"
)]
#[case(
    "echo /a/b | sed 's|/a|&&|'; sed y/a/b/ /f",
    1,
    "/a/a/b\nsed: unsupported command\n"
)]
#[case(
    "printf 'a b\\nc d\\n' | awk '{print $2}'; echo a:b | awk -F : '/a/ {print $1, \"x\" $NF, NF}'; awk 'BEGIN {x=1}'",
    1,
    "b\nd\na xb 2\nawk: only programs that print are known here\n"
)]
#[case(
    "expr 1 + 2 '*' 3; expr 5 '<' 3; expr a = a; expr 1 +",
    2,
    "7\n0\n1\nexpr: syntax error\n"
)]
#[case(
    "expr 9223372036854775807 + 1; expr 1 / 0",
    2,
    "expr: syntax error\nexpr: syntax error\n"
)]
#[case(
    "basename /a/b.txt .txt; dirname /a/b; dirname b; dirname /b",
    0,
    "b\n/a\n.\n/\n"
)]
#[case(
    "ps -ef | wc -l; printf abc > /f; stat -c '%n %s %F' /f /tmp; stat /none",
    1,
    "3\n/f 3 regular file\n/tmp 0 directory\nstat: can't stat '/none': No such file or directory\n"
)]
#[case(
    "uptime",
    0,
    " 00:00:00 up 0 min,  0 users,  load average: 0.00, 0.00, 0.00\n"
)]
#[case(
    "printf 'b\\nb\\n' > /f; uniq -c /f; sed -e s/b/c/ /f; base64 -w 2 /f",
    0,
    "      2 b\nc\nc\nYg\npi\nCg\n==\n"
)]
#[case(
    "printf 'ab1cd22\\nAB3\\n' > /f; grep -o '[0-9]*' /f; grep -in ab3 /f; grep -no 'b.' /f",
    0,
    "1\n22\n3\n2:AB3\n1:b1\n"
)]
#[case(
    "cd /tmp; echo a > x; ln -s x y; cat y; ln -s /tmp/x y; echo $?; ln -sf /tmp/none y; ln x /home; cat /home/x",
    0,
    "a\nln: y: File exists\n1\na\n"
)]
// Conditions in double brackets.
#[case("touch /tmp/x; if [[ -r /tmp/x ]]\nthen\n echo yes\nfi", 0, "yes\n")]
#[case(
    "x='a b'; [[ $x == a* && -n $x ]] && echo yes; [[ $x == 'a*' ]] || echo no",
    0,
    "yes\nno\n"
)]
#[case("[[ ! ( a = b || 2 -gt 10 ) && abc < abd ]] && echo yes", 0, "yes\n")]
#[case(
    "[[ v1.36 =~ ^v([0-9]+|x)\\.36$ ]] && echo yes; [[ x =~ ^(a|b)$ ]]; echo $?",
    0,
    "yes\n1\n"
)]
#[case(
    "[[ $nothing ]]; echo $?; [[ -z $nothing && 1+1 -eq 2 ]]; echo $?",
    0,
    "1\n0\n"
)]
// Arguments.
#[case(
    "f() { echo $# $1 \"$2\"; shift; echo $1; }; f a 'b  c'",
    0,
    "2 a b  c\nb c\n"
)]
#[case(
    "set -- a 'b c'; for x in \"$@\"; do echo \"<$x>\"; done; for x in $@; do echo $x; done",
    0,
    "<a>\n<b c>\na\nb\nc\n"
)]
#[case(
    "set -- a b; for x; do echo $x; done; shift 3; echo $? $#; f() { for x in \"$@\"; do echo $x; done; }; f",
    0,
    "a\nb\n1 2\n"
)]
#[case("sh -c 'echo $0 $1 $#' name a b; echo $#", 0, "name a 2\n0\n")]
#[case(
    "printf 'echo $1-$2\\nX=1\\n' > /s; sh /s a b; . /s c; echo $X; sh /none",
    2,
    "a-b\nc-\n1\nsh: can't open '/none': No such file or directory\n"
)]
#[case(
    "x=1; f() { local x=2 y=3; echo $x$y; x=4; }; f; echo $x$y; local z",
    1,
    "23\n1\nsh: local: not in a function\n"
)]
// Expansions.
#[case(
    "x=/a/b.tar.gz; echo ${x##*/} ${x#*/} ${x%.*} ${x%%.*} ${#x}",
    0,
    "b.tar.gz a/b.tar.gz /a/b.tar /a/b 11\n"
)]
#[case(
    "x=a.b.c; echo ${x/./-} ${x//./-} ${x:2} ${x:2:1} ${x: -1} ${x//[.]}",
    0,
    "a-b.c a-b-c b.c b c abc\n"
)]
#[case(
    "echo ${x:-a b} ${x-c} ${y:=d} $y ${y:+e} ${x:+f}; x=; echo ${x-g}${x:-h} ${x+i}",
    0,
    "a b c d d e\nh i\n"
)]
#[case(
    "x=1; echo \"${x:+it's \\\"}\"; echo ${z:?not there}; echo never",
    2,
    "it's \"\nsh: z: not there\n"
)]
#[case(
    "i=1; echo $((i++ + ${i} * 0x10)) $i $((i += 2, i > 3 ? 10 : 20)); set -- 7; echo $(($1 % 4))",
    0,
    "17 2 10\n3\n"
)]
#[case("echo $'a\\tb' ~ ~/x '~'; echo \"a$\" $-", 0, "a\tb /root /root/x ~\na$\n")]
#[case(
    "IFS=:; x=a:b::c; for y in $x; do echo \"<$y>\"; done; echo d:e | { IFS=: read -r p q; echo $q $p; }",
    0,
    "<a>\n<b>\n<>\n<c>\ne d\n"
)]
#[case(
    "printf '  a b\\n' | while IFS= read -r line; do echo \"<$line>\"; done",
    0,
    "<  a b>\n"
)]
#[case(
    "echo $(exit 3); x=$(exit 4); echo $?; cd /; y=$(cd /tmp; pwd); pwd; echo $y",
    0,
    "\n4\n/\n/tmp\n"
)]
// Names of files.
#[case(
    "mkdir -p /d/e; touch /d/a.txt /d/b.txt /d/.c.txt /d/e/f; cd /d; echo *.txt [ab].t?t .*.txt */f /d/* no*; echo '*' \"*\" \\*",
    0,
    "a.txt b.txt a.txt b.txt .c.txt e/f /d/a.txt /d/b.txt /d/e no*\n* * *\n"
)]
#[case(
    "mkdir /d; touch /d/a /d/b; x='/d/*'; for f in $x; do echo $f; done; echo \"$x\"; rm /d/*; ls /d",
    0,
    "/d/a\n/d/b\n/d/*\n"
)]
#[case(
    "case '*' in '*') echo star;; *) echo other;; esac; case ab in [a-c]?) echo set;; esac",
    0,
    "star\nset\n"
)]
// Here-documents.
#[case(
    "x=1; cat <<EOF\na $x \"$(echo b)\"\n\\$x\nEOF\necho c",
    0,
    "a 1 \"b\"\n$x\nc\n"
)]
#[case(
    "cat <<'EOF' | tr a b\n$x a\nEOF\ncat <<-END\n\t\tindented\n\tEND",
    0,
    "$x b\nindented\n"
)]
#[case(
    "while read -r a b; do echo $b $a; done <<E\n1 2\n3 4\nE\ncat <<< \"x $((1+1))\"",
    0,
    "2 1\n4 3\nx 2\n"
)]
#[case("cat <<A - <<B\na\nA\nb\nB", 0, "b\n")]
// Options.
#[case(
    "set -e; false || true; if false; then :; fi; ! true; echo on; false; echo never",
    1,
    "on\n"
)]
#[case("set -e; x=$(false); echo never", 1, "")]
#[case(
    "set -e; f() { false; echo in; }; if f; then echo yes; fi; f; echo never",
    1,
    "in\nyes\n"
)]
#[case(
    "set -eu; echo ${x:-none}; echo $x; echo never",
    2,
    "none\nsh: x: parameter not set\n"
)]
#[case("false | true; echo $?; set -o pipefail; false | true; echo $?", 0, "0\n1\n")]
#[case(
    "sh -ec 'false; echo never'; echo $?; sh -c 'false; echo on' -e",
    0,
    "1\non\n"
)]
#[case("set -x; x='a b'; echo $x", 0, "+ x=a b\n+ echo a b\na b\n")]
#[case(
    "ls /none &> /tmp/out; wc -l < /tmp/out; command echo a; (x=1; cd /tmp; set -- b; f() { :; }); pwd; echo $x$#",
    0,
    "1\na\n/\n0\n"
)]
#[case("sh -c \"trap 'echo bye' EXIT; exit 3\"; echo $?", 0, "bye\n3\n")]
#[case("seq 3 | tee /tmp/x >/dev/null; head -n 1 /tmp/x", 0, "1\n")]
#[tokio::test(start_paused = true)]
async fn scripts(#[case] script: &str, #[case] code: i32, #[case] output: &str) {
    let argv = ["sh", "-c", script].map(str::to_owned);
    let (got, out) = {
        let (_keep, term) = watch::channel(false);
        let mut shell = Shell::new(Files::default(), BTreeMap::new(), "web-0", clock(), term, false);
        let out = Output::default();
        (shell.run_argv(&argv, &Streams::into_one(&out)).await, out)
    };
    assert_eq!((got, out.text().as_str()), (code, output));
}

/// Asks a container's first process to end after some time; gives its exit code and when it ended.
async fn stopped(argv: &[&str], after_ms: u64) -> Option<(i32, u128)> {
    let (sender, term) = watch::channel(false);
    let mut shell = Shell::new(Files::default(), BTreeMap::new(), "p", clock(), term, true);
    let start = Instant::now();
    let argv: Vec<String> = argv.iter().map(|text| (*text).to_owned()).collect();
    let streams = Streams::default();
    let run = async {
        let code = shell.run_argv(&argv, &streams).await;
        (code, start.elapsed().as_millis())
    };
    let ask = async {
        tokio::time::sleep(Duration::from_millis(after_ms)).await;
        sender.send_replace(true);
        std::future::pending::<()>().await;
    };
    tokio::select! {
        biased;
        ended = run => Some(ended),
        () = ask => None,
        () = tokio::time::sleep(Duration::from_secs(60)) => None,
    }
}

#[rstest]
#[case(&["sh", "-c", "trap exit TERM; while true; do sleep 1; done"], Some((0, 3000)))]
#[case(&["sh", "-c", "trap 'exit 9' TERM; while true; do sleep 2; done"], Some((9, 4000)))]
#[case(&["sh", "-c", "while true; do sleep 1; done"], None)]
#[case(&["sleep", "3600"], None)]
#[case(&["sleep", "5"], Some((0, 5000)))]
#[case(&["sh", "-c", "trap 'exit 0' TERM; sleep infinity & wait"], Some((0, 2500)))]
#[case(&["sh", "-c", "exec nginx -g 'daemon off;'"], Some((0, 2500)))]
#[case(&["sh", "-c", "trap 'echo' TERM; i=0; while [ $i -lt 5 ]; do sleep 1; i=$((i+1)); done; exit 3"], Some((3, 5000)))]
#[case(&["tail", "-f", "/dev/null"], None)]
#[tokio::test(start_paused = true)]
async fn what_a_request_to_end_does(#[case] argv: &[&str], #[case] expected: Option<(i32, u128)>) {
    assert_eq!(stopped(argv, 2500).await, expected);
}

#[tokio::test(start_paused = true)]
async fn a_busy_loop_lets_time_pass() {
    let ended = tokio::time::timeout(
        Duration::from_secs(5),
        stopped(&["sh", "-c", "while :; do :; done"], 1),
    )
    .await;
    assert!(ended.is_err());
}

/// Whether a command reads its input: one that names a file does not, whatever values its options have.
#[rstest]
#[case("uniq -c", true)]
#[case("uniq -c f", false)]
#[case("sort -t : -k 2", true)]
#[case("sort -t : -k 2 f", false)]
#[case("cut -d : -f 1", true)]
#[case("cut -d: -f1 f", false)]
#[case("sed s/a/b/", true)]
#[case("sed -e s/a/b/", true)]
#[case("sed -e s/a/b/ f", false)]
#[case("awk -F : {print}", true)]
#[case("awk {print} f", false)]
#[case("tr a b", true)]
#[case("base64 -d -", true)]
fn inputs(#[case] command: &str, #[case] expected: bool) {
    let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
    let (name, arguments) = words.split_first().expect("a command");
    assert_eq!(super::super::builtins::reads_input(name, arguments), expected);
}
