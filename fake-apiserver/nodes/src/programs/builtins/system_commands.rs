//! The commands that tell of processes, of the time since the start, and of files' sizes.

use machinery::meta::{at, list, text};
use shared_json::Value;

use super::Call;
use crate::programs::files::mode_text;

/// The shell and the command itself: programs of a container are no processes that could be listed.
pub(super) fn ps(call: &mut Call<'_>) -> i32 {
    let words: Vec<&str> = call.arguments.iter().map(String::as_str).collect();
    let command = [&["ps"], words.as_slice()].concat().join(" ");
    call.print(&format!(
        "PID   USER     TIME  COMMAND\n    1 root      0:00 sh\n    2 root      0:00 {command}\n"
    ))
}

/// `stat`: the size of files, and with `-c` what its format says of `%n`, `%s`, `%F`, `%a`, `%A`.
pub(super) fn stat(call: &mut Call<'_>) -> i32 {
    let mut format = None;
    let mut files = Vec::new();
    let mut arguments = call.arguments.iter();
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "-c" => format = arguments.next(),
            _ => files.push(argument),
        }
    }
    let mut status = 0;
    for file in files {
        let path = call.path(file);
        let is_folder = call.shell.files.is_dir(&path);
        let size = match call.shell.files.read(&path) {
            Ok(content) => content.len(),
            Err(_) if is_folder => 0,
            Err(error) => {
                status = call.complain(&format!("stat: can't stat '{file}': {error}"));
                continue;
            }
        };
        let mode = call.shell.files.mode(&path).unwrap_or_default();
        let kind = if is_folder { "directory" } else { "regular file" };
        let format = format.map_or("  File: %n\n  Size: %s\t%F", String::as_str);
        let text = format
            .replace("%n", file)
            .replace("%s", &size.to_string())
            .replace("%F", kind)
            .replace("%a", &format!("{mode:o}"))
            .replace("%A", &mode_text(is_folder, mode));
        call.print(&format!("{text}\n"));
    }
    status
}

pub(super) fn uptime(call: &mut Call<'_>) -> i32 {
    let now = call.shell.clock.now().strftime("%H:%M:%S");
    call.print(&format!(
        " {now} up 0 min,  0 users,  load average: 0.00, 0.00, 0.00\n"
    ))
}

/// `mount`: nothing is mounted, and `mount -t cgroup2` shows that limits are in the second version of control groups.
pub(super) fn mount(call: &mut Call<'_>) -> i32 {
    let words: Vec<&str> = call.arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["-t", "cgroup2"] => {
            call.print("cgroup2 on /sys/fs/cgroup type cgroup2 (ro,nosuid,nodev,noexec,relatime)\n")
        }
        _ => 0,
    }
}

/// `id`: the user and the groups that the pod asks for; root without that.
pub(super) fn id(call: &mut Call<'_>) -> i32 {
    let pod = call.shell.nic().pod();
    let none = Value::Null;
    let (user, group, groups) = identity(pod.as_deref().unwrap_or(&none), call.shell.files.container());
    let joined = |by: &str, text: fn(u64) -> String| -> String {
        groups.iter().map(|id| text(*id)).collect::<Vec<_>>().join(by)
    };
    let line = match call.arguments.first().map(String::as_str) {
        Some("-u") => user.to_string(),
        Some("-g") => group.to_string(),
        Some("-G") => joined(" ", |id| id.to_string()),
        _ => format!(
            "uid={} gid={} groups={}",
            named(user),
            named(group),
            joined(",", named)
        ),
    };
    call.print(&format!("{line}\n"))
}

/// `ip`: links are made and removed by privileged containers alone; all else succeeds.
pub(super) fn ip(call: &mut Call<'_>) -> i32 {
    let words: Vec<&str> = call.arguments.iter().map(String::as_str).collect();
    let changes = matches!(words.as_slice(), ["link", "add" | "del" | "delete" | "set", ..]);
    let pod = call.shell.nic().pod();
    let own = pod
        .as_deref()
        .and_then(|pod| own_spec(pod, call.shell.files.container()));
    let privileged = own.and_then(|spec| at(spec, "securityContext.privileged")?.as_bool());
    if changes && pod.is_some() && privileged != Some(true) {
        call.complain("ip: RTNETLINK answers: Operation not permitted");
        return 2;
    }
    0
}

/// `hexdump -C`: the bytes of files, sixteen a line, with their characters. Other formats are not known.
pub(super) fn hexdump(call: &mut Call<'_>) -> i32 {
    let mut content = Vec::new();
    let files: Vec<String> = call
        .arguments
        .iter()
        .filter(|word| !word.starts_with('-'))
        .cloned()
        .collect();
    for file in files {
        match call.shell.files.read(&call.path(&file)) {
            Ok(more) => content.extend(more),
            Err(error) => return call.complain(&format!("hexdump: {file}: {error}")),
        }
    }
    let mut out = String::new();
    for (row, bytes) in content.chunks(16).enumerate() {
        let half = |part: &[u8]| {
            part.iter()
                .map(|byte| format!("{byte:02x}"))
                .collect::<Vec<_>>()
                .join(" ")
        };
        let (left, right) = bytes.split_at(bytes.len().min(8));
        let hex = format!("{}  {}", half(left), half(right));
        let shown = |byte: &u8| {
            if (0x20..0x7f).contains(byte) {
                char::from(*byte)
            } else {
                '.'
            }
        };
        let text: String = bytes.iter().map(shown).collect();
        out.push_str(&format!("{:08x}  {hex:<49} |{text}|\n", row * 16));
    }
    if !content.is_empty() {
        out.push_str(&format!("{:08x}\n", content.len()));
    }
    call.print(&out)
}

/// The container of a pod's spec.
fn own_spec<'p>(pod: &'p Value, container: &str) -> Option<&'p Value> {
    let all = [list(pod, "spec.containers"), list(pod, "spec.initContainers")];
    all.into_iter()
        .flatten()
        .find(|spec| text(spec, "name") == container)
}

/// The user, the group and all groups of a container.
fn identity(pod: &Value, container: &str) -> (u64, u64, Vec<u64>) {
    let own = own_spec(pod, container);
    let of = |field: &str| {
        let own = own.and_then(|spec| at(spec, "securityContext")?.get(field)?.as_u64());
        own.or_else(|| at(pod, "spec.securityContext")?.get(field)?.as_u64())
    };
    let (user, group) = (of("runAsUser").unwrap_or(0), of("runAsGroup").unwrap_or(0));
    let more = list(pod, "spec.securityContext.supplementalGroups")
        .iter()
        .filter_map(Value::as_u64);
    let mut groups: Vec<u64> = std::iter::once(group).chain(of("fsGroup")).chain(more).collect();
    groups.sort_unstable();
    groups.dedup();
    (user, group, groups)
}

fn named(id: u64) -> String {
    if id == 0 {
        "0(root)".to_owned()
    } else {
        id.to_string()
    }
}

/// `sysctl`: the settings that the pod asks for.
pub(super) fn sysctl(call: &mut Call<'_>) -> i32 {
    let Some(pod) = call.shell.nic().pod() else {
        return 0;
    };
    let settings = list(&pod, "spec.securityContext.sysctls").iter();
    let wanted = settings.filter(|one| call.arguments.iter().any(|word| word == text(one, "name")));
    let lines: String = wanted
        .map(|one| format!("{} = {}\n", text(one, "name"), text(one, "value")))
        .collect();
    call.print(&lines)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use shared_json::json;

    use super::*;

    #[rstest]
    #[case(json!({}), json!({}), (0, 0, vec![0]))]
    #[case(json!({"runAsUser": 1, "runAsGroup": 2}), json!({}), (1, 2, vec![2]))]
    #[case(json!({"runAsUser": 1, "fsGroup": 5, "supplementalGroups": [9, 5]}), json!({"runAsUser": 3}), (3, 0, vec![0, 5, 9]))]
    fn identities(#[case] of_pod: Value, #[case] own: Value, #[case] expected: (u64, u64, Vec<u64>)) {
        let pod = json!({"spec": {"securityContext": of_pod, "containers": [{"name": "c", "securityContext": own}]}});
        assert_eq!(identity(&pod, "c"), expected);
    }
}
