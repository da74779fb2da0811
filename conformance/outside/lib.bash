# What the runners of outside suites share. A runner sources this file, names its suite, and calls in this order:
#   need VARIABLE WORDS        skips the suite unless the variable names something that exists
#   start_server OPTION…       starts `fake-apiserver serve`, or what `serves` names, and exports KUBECONFIG
#   add OUTCOME NAME           notes an outcome: passed, failed or skipped (or one of the readers below does)
#   summarise                  prints and keeps the summary, compares it with the last one, and exits
# shellcheck shell=bash
set -uo pipefail
caller=$PWD
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$root" || exit 1

# The exit status of a suite that was not played, as Automake's tests have it.
readonly SKIPPED=77

# begin SUITE: the suite's name, and its own folder below target/.
begin() {
  suite=$1
  work=${CARGO_TARGET_DIR:-$root/target}/outside/$suite
  mkdir -p "$work"
  outcomes=$work/outcomes
  : >"$outcomes"
}

# skip REASON
skip() {
  echo "skipped: $1"
  exit "$SKIPPED"
}

# need VARIABLE WORDS: the variable must be set to a path, or several separated by spaces, that exist. They become absolute.
need() {
  local path absolute=()
  [[ -n ${!1:-} ]] || skip "$1 is not set ($2)"
  for path in ${!1}; do
    [[ $path == /* ]] || path=$caller/$path
    [[ -e $path ]] || skip "$1 names $path, which does not exist ($2)"
    absolute+=("$(realpath "$path")")
  done
  printf -v "$1" '%s' "${absolute[*]}"
}

# need_tool TOOL
need_tool() { command -v "$1" >/dev/null || skip "$1 is missing"; }

# build PROGRAM: one of this project's own, once.
built=
build() {
  [[ $built == *" $1 "* ]] || cargo build --quiet --bin "$1" || exit 1
  built+=" $1 "
}

# start_server OPTION…: starts a server, in place of one that runs already.
server=
# The program that serves. `xtask` brings OpenKruise's manager and daemons.
serves=fake-apiserver
start_server() {
  if [[ -z $server ]]; then build "$serves"; else kill "$server"; wait "$server"; fi
  # The log of an earlier server says that one has started.
  rm -f "$work/kubeconfig" "$work/server.log"
  "${CARGO_TARGET_DIR:-$root/target}/debug/$serves" serve --kubeconfig "$work/kubeconfig" "$@" >"$work/server.log" 2>&1 &
  server=$!
  trap stop_all EXIT
  for _ in $(seq 300); do grep -qs KUBECONFIG "$work/server.log" && break; sleep 0.1; done
  [[ -s $work/kubeconfig ]] || { echo "the server did not start: $(tail -1 "$work/server.log")" >&2; exit 1; }
  export KUBECONFIG=$work/kubeconfig
}

# also PROGRAM OPTION…: runs a program beside the server until the runner ends.
others=()
also() {
  "$@" >"$work/$(basename "$1").log" 2>&1 &
  others+=($!)
}

stop_all() { kill "${others[@]}" $server 2>/dev/null || true; }

# add OUTCOME NAME
add() { printf '%s\t%s\n' "$1" "$2" >>"$outcomes"; }

# read_go PREFIX: the outcomes in what `go test -v` prints, of tests that have no tests below them.
read_go() {
  awk -v prefix="$1" '
    match($0, /^ *--- (PASS|FAIL|SKIP): /) {
      line = $0; sub(/^ *--- /, "", line); outcome = substr(line, 1, 4); name = substr(line, 7); sub(/ \([0-9.]+m?s\)$/, "", name)
      said[name] = outcome == "PASS" ? "passed" : outcome == "FAIL" ? "failed" : "skipped"
    }
    END {
      for (name in said) { above = name; while (sub(/\/[^\/]*$/, "", above)) has_below[above] = 1 }
      for (name in said) if (!(name in has_below)) print said[name] "\t" prefix name
    }' >>"$outcomes"
}

# read_rust PREFIX: the outcomes in what a test program of Rust prints.
read_rust() {
  sed -nE 's/^test (.*) \.\.\. (.*)$/\2\t\1/p' | awk -F '\t' -v prefix="$1" '
    { print ($1 ~ /^ok/ ? "passed" : $1 ~ /^ignored/ ? "skipped" : "failed") "\t" prefix $2 }' >>"$outcomes"
}

# read_ginkgo PREFIX: the outcomes in a JUnit report of Ginkgo. Tests that the focus leaves out are none. A further test of the same name has
# a number.
read_ginkgo() {
  awk -v prefix="$1" '
    function attribute(line, name,   at) {
      at = match(line, " " name "=\"[^\"]*\""); if (!at) return ""
      return substr(line, RSTART + length(name) + 3, RLENGTH - length(name) - 4)
    }
    function plain(text) {
      gsub(/&#34;|&quot;/, "\"", text); gsub(/&#39;|&apos;/, "\047", text); gsub(/&lt;/, "<", text); gsub(/&gt;/, ">", text)
      gsub(/&#x9;|&#xA;/, " ", text); gsub(/&amp;/, "\\&", text); return text
    }
    function say(outcome, name) { print outcome "\t" prefix name (seen[name]++ ? " (" seen[name] ")" : "") }
    /<testcase / {
      name = plain(attribute($0, "name")); status = attribute($0, "status"); pending = ""
      if (status == "passed") { if (name ~ /^\[It\]/) say("passed", name) }
      else if (status == "skipped" || status == "pending") pending = name
      else say("failed", name)
    }
    # A test that skips itself says why.
    /<skipped message="skipped - / { if (pending != "") say("skipped", pending); pending = "" }' >>"$outcomes"
}

# read_ginkgo_1 PREFIX: the same of what a program with Ginkgo 1 prints with `--ginkgo.v --ginkgo.noColor`: the containers' names and a space, the
# test's name and its line, each indented, and a line with the outcome when it has ended.
read_ginkgo_1() {
  awk -v prefix="$1" '
    function say(outcome, name) { print outcome "\t" prefix name (seen[name]++ ? " (" seen[name] ")" : "") }
    /^  [^ ].*\.go:[0-9]+$/ && last ~ /^  [^ ]/ && before ~ /^[^ ].* $/ { name = before substr(last, 3) }
    name != "" && /^•/ { say(/^•( Failure|!|\.\.\.)/ ? "failed" : "passed", name); name = "" }
    name != "" && /^S \[SKIPPING\]/ { say("skipped", name); name = "" }
    { before = last; last = $0 }
    # A test that never ended.
    END { if (name != "") say("failed", name) }' >>"$outcomes"
}

# The number of tests with an outcome.
count() { cut -f 1 "$outcomes" | grep -cx "$1"; }

# summarise: a line for each outcome, the names of what failed in order, and the totals.
summarise() {
  local summary=$work/summary passed failed skipped
  sort -u -o "$outcomes" "$outcomes"
  passed=$(count passed) failed=$(count failed) skipped=$(count skipped)
  [[ -f $summary ]] && mv "$summary" "$summary.last"
  {
    echo "suite: $suite"
    echo "passed: $passed"
    echo "failed: $failed"
    echo "skipped: $skipped"
    sed -n 's/^failed\t/failed: /p' "$outcomes" | LC_ALL=C sort
    echo "$passed passed, $failed failed, $skipped skipped"
  } >"$summary"
  if [[ -f $summary.last ]]; then
    echo "== since the last run of $suite"
    diff "$summary.last" "$summary" && echo "no difference"
  fi
  echo "== $suite"
  cat "$summary"
  if [[ $((passed + failed)) -eq 0 ]]; then
    echo "failed: no test of $suite was played; see $work" >&2
    exit 1
  fi
  [[ $failed -eq 0 ]]
  exit
}
