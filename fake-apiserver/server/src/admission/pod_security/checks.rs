//! The checks of the Pod Security Standards, in the order and the wording of the real ones.

use std::collections::BTreeSet;

use machinery::meta::at;
use machinery::placement::SYSCTLS;
use rules::validation::fields::Fields;
use shared_json::Value;

const CAPABILITIES: [&str; 13] = [
    "AUDIT_WRITE",
    "CHOWN",
    "DAC_OVERRIDE",
    "FOWNER",
    "FSETID",
    "KILL",
    "MKNOD",
    "NET_BIND_SERVICE",
    "SETFCAP",
    "SETGID",
    "SETPCAP",
    "SETUID",
    "SYS_CHROOT",
];
const SELINUX_TYPES: [&str; 5] = [
    "",
    "container_t",
    "container_init_t",
    "container_kvm_t",
    "container_engine_t",
];
const VOLUMES: [&str; 9] = [
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "image",
    "persistentVolumeClaim",
    "projected",
    "secret",
];
const PROFILES: [&str; 2] = ["Localhost", "RuntimeDefault"];
const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";

/// A version of the standards: the minor version of Kubernetes that has it; the last one there is for `latest`.
pub(super) fn version(text: &str) -> u32 {
    let minor = text.strip_prefix("v1.").and_then(|minor| minor.parse().ok());
    minor.unwrap_or(u32::MAX)
}

/// A pod's violations of a version of a standard; empty if there are none.
pub(super) fn violations(level: &str, version: u32, spec: &Value, metadata: &Value) -> Vec<String> {
    let restricted = match level {
        "baseline" => false,
        "restricted" => true,
        _ => return Vec::new(),
    };
    let pod = Pod {
        spec,
        metadata,
        version,
        is_windows: version >= 25 && spec.at("os.name").and_then(Value::as_str) == Some("windows"),
        has_own_users: version >= 35 && spec.flag("hostUsers") == Some(false),
    };
    type Check = fn(&Pod<'_>) -> Option<String>;
    // Those of the restricted standard take the place of weaker ones, each from the version on that has it.
    let checks: [(bool, Check); 19] = [
        (true, app_armor),
        (!restricted || version < 22, capabilities),
        (true, host_namespaces),
        (!restricted, host_paths),
        (true, host_ports),
        (version >= 34, host_probes),
        (true, privileged),
        (!restricted || version < 35, proc_mount),
        (true, selinux),
        (!restricted && version >= 19, seccomp),
        (true, sysctls),
        (true, host_process),
        (restricted && version >= 8, privilege_escalation),
        (restricted && version >= 22, capabilities_restricted),
        (restricted && version >= 35, proc_mount_restricted),
        (restricted, volumes),
        (restricted, non_root),
        (restricted && version >= 23, user),
        (restricted && version >= 19, seccomp_restricted),
    ];
    let asked = checks.iter().filter(|(asked, _)| *asked);
    asked.filter_map(|(_, check)| check(&pod)).collect()
}

struct Pod<'a> {
    spec: &'a Value,
    metadata: &'a Value,
    version: u32,
    is_windows: bool,
    has_own_users: bool,
}

trait At {
    fn at(&self, path: &str) -> Option<&Value>;
}

impl At for Value {
    fn at(&self, path: &str) -> Option<&Value> {
        at(self, path)
    }
}

impl<'a> Pod<'a> {
    fn containers(&self) -> impl Iterator<Item = &'a Value> {
        let spec = self.spec;
        ["initContainers", "containers", "ephemeralContainers"]
            .into_iter()
            .flat_map(move |list| spec.list(list))
    }

    /// The names of the containers that are bad.
    fn bad(&self, is_bad: impl Fn(&Value) -> bool) -> Vec<&'a str> {
        let bad = self.containers().filter(|container| is_bad(container));
        bad.map(|container| container.text("name")).collect()
    }

    fn pod_flag(&self, field: &str) -> Option<bool> {
        context(self.spec).and_then(|context| context.flag(field))
    }
}

fn context(of: &Value) -> Option<&Value> {
    of.get("securityContext")
}

fn text_at<'a>(of: &'a Value, path: &str) -> Option<&'a str> {
    of.at(path).and_then(Value::as_str)
}

fn quoted<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = names.into_iter().map(|name| format!("\"{name}\"")).collect();
    quoted.join(", ")
}

fn plural<'a>(one: &'a str, many: &'a str, count: usize) -> &'a str {
    if count == 1 { one } else { many }
}

/// `container "a"`, `containers "a", "b"`
fn named(containers: &[&str]) -> String {
    let word = plural("container", "containers", containers.len());
    format!("{word} {}", quoted(containers.iter().copied()))
}

/// `pod and container "a"`, or nothing.
fn setters(pod: bool, containers: &[&str]) -> Option<String> {
    match (pod, containers.is_empty()) {
        (false, true) => None,
        (true, true) => Some("pod".to_owned()),
        (false, false) => Some(named(containers)),
        (true, false) => Some(format!("pod and {}", named(containers))),
    }
}

fn host_namespaces(pod: &Pod<'_>) -> Option<String> {
    let set: Vec<String> = ["hostNetwork", "hostPID", "hostIPC"]
        .iter()
        .filter(|field| pod.spec.flag(field) == Some(true))
        .map(|field| format!("{field}=true"))
        .collect();
    (!set.is_empty()).then(|| format!("host namespaces ({})", set.join(", ")))
}

fn privileged(pod: &Pod<'_>) -> Option<String> {
    let bad =
        pod.bad(|container| context(container).and_then(|context| context.flag("privileged")) == Some(true));
    (!bad.is_empty()).then(|| {
        format!(
            "privileged ({} must not set securityContext.privileged=true)",
            named(&bad)
        )
    })
}

fn capabilities(pod: &Pod<'_>) -> Option<String> {
    let mut forbidden = BTreeSet::new();
    let mut bad = Vec::new();
    for container in pod.containers() {
        let added = container
            .at("securityContext.capabilities")
            .map_or_else(Vec::new, |capabilities| capabilities.texts("add").collect());
        let wrong: Vec<&str> = added
            .into_iter()
            .filter(|name| !CAPABILITIES.contains(name))
            .collect();
        if !wrong.is_empty() {
            bad.push(container.text("name"));
            forbidden.extend(wrong);
        }
    }
    (!bad.is_empty()).then(|| {
        let list = quoted(forbidden);
        format!(
            "non-default capabilities ({} must not include {list} in securityContext.capabilities.add)",
            named(&bad)
        )
    })
}

fn capabilities_restricted(pod: &Pod<'_>) -> Option<String> {
    if pod.is_windows {
        return None;
    }
    let (mut keeping, mut adding, mut forbidden) = (Vec::new(), Vec::new(), BTreeSet::new());
    for container in pod.containers() {
        let capabilities = container.at("securityContext.capabilities");
        if !capabilities.is_some_and(|capabilities| capabilities.texts("drop").any(|name| name == "ALL")) {
            keeping.push(container.text("name"));
        }
        let wrong: Vec<&str> = capabilities
            .into_iter()
            .flat_map(|capabilities| capabilities.texts("add"))
            .filter(|name| *name != "NET_BIND_SERVICE")
            .collect();
        if !wrong.is_empty() {
            adding.push(container.text("name"));
            forbidden.extend(wrong);
        }
    }
    let mut details = Vec::new();
    if !keeping.is_empty() {
        details.push(format!(
            "{} must set securityContext.capabilities.drop=[\"ALL\"]",
            named(&keeping)
        ));
    }
    if !adding.is_empty() {
        let list = quoted(forbidden);
        let who = named(&adding);
        details.push(format!(
            "{who} must not include {list} in securityContext.capabilities.add"
        ));
    }
    (!details.is_empty()).then(|| format!("unrestricted capabilities ({})", details.join("; ")))
}

fn host_paths(pod: &Pod<'_>) -> Option<String> {
    let bad: Vec<&str> = pod
        .spec
        .list("volumes")
        .iter()
        .filter(|volume| volume.get("hostPath").is_some())
        .map(|volume| volume.text("name"))
        .collect();
    let word = plural("volume", "volumes", bad.len());
    (!bad.is_empty()).then(|| format!("hostPath volumes ({word} {})", quoted(bad)))
}

fn volumes(pod: &Pod<'_>) -> Option<String> {
    let (mut bad, mut types) = (Vec::new(), BTreeSet::new());
    for volume in pod.spec.list("volumes") {
        let sources = volume
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, _)| name.as_str());
        let sources: Vec<&str> = sources.filter(|name| *name != "name").collect();
        if !sources.iter().any(|source| VOLUMES.contains(source)) {
            bad.push(volume.text("name"));
            types.insert(sources.first().copied().unwrap_or("unknown"));
        }
    }
    (!bad.is_empty()).then(|| {
        format!(
            "restricted volume types ({} {} {} {} {})",
            plural("volume", "volumes", bad.len()),
            quoted(bad.iter().copied()),
            plural("uses", "use", bad.len()),
            plural("restricted volume type", "restricted volume types", types.len()),
            quoted(types)
        )
    })
}

fn host_ports(pod: &Pod<'_>) -> Option<String> {
    let mut ports = BTreeSet::new();
    let mut bad = Vec::new();
    for container in pod.containers() {
        let used: Vec<String> = container
            .list("ports")
            .iter()
            .filter_map(|port| port.int("hostPort").filter(|port| *port != 0))
            .map(|port| port.to_string())
            .collect();
        if !used.is_empty() {
            bad.push(container.text("name"));
            ports.extend(used);
        }
    }
    (!bad.is_empty()).then(|| {
        let list: Vec<&str> = ports.iter().map(String::as_str).collect();
        format!(
            "hostPort ({} {} {} {})",
            named(&bad),
            plural("uses", "use", bad.len()),
            plural("hostPort", "hostPorts", list.len()),
            list.join(", ")
        )
    })
}

fn host_probes(pod: &Pod<'_>) -> Option<String> {
    let (mut bad, mut hosts) = (BTreeSet::new(), BTreeSet::new());
    for container in pod.containers() {
        for place in [
            "livenessProbe",
            "readinessProbe",
            "startupProbe",
            "lifecycle.postStart",
            "lifecycle.preStop",
        ] {
            for action in ["httpGet", "tcpSocket"] {
                let host = text_at(container, &format!("{place}.{action}.host")).unwrap_or_default();
                if !host.is_empty() {
                    bad.insert(container.text("name"));
                    hosts.insert(host);
                }
            }
        }
    }
    (!bad.is_empty()).then(|| {
        let names: Vec<&str> = bad.into_iter().collect();
        format!(
            "probe or lifecycle host ({} {} {} {})",
            named(&names),
            plural("uses", "use", names.len()),
            plural("probe or lifecycle host", "probe or lifecycle hosts", hosts.len()),
            quoted(hosts)
        )
    })
}

fn proc_mount(pod: &Pod<'_>) -> Option<String> {
    if pod.has_own_users {
        return None;
    }
    proc_mount_restricted(pod)
}

fn proc_mount_restricted(pod: &Pod<'_>) -> Option<String> {
    let kind = |container: &Value| text_at(container, "securityContext.procMount").map(str::to_owned);
    let is_bad = |container: &Value| kind(container).is_some_and(|kind| kind != "Default");
    let bad = pod.bad(is_bad);
    let types: BTreeSet<String> = pod.containers().filter(|c| is_bad(c)).filter_map(kind).collect();
    (!bad.is_empty()).then(|| {
        let list = quoted(types.iter().map(String::as_str));
        format!(
            "procMount ({} must not set securityContext.procMount to {list})",
            named(&bad)
        )
    })
}

fn selinux(pod: &Pod<'_>) -> Option<String> {
    let (mut types, mut user, mut role) = (BTreeSet::new(), false, false);
    let mut is_bad = |of: &Value| {
        let Some(options) = of.at("securityContext.seLinuxOptions") else {
            return false;
        };
        let kind = options.text("type");
        let (wrong, named, roled) = (
            !SELINUX_TYPES.contains(&kind) || (kind == "container_engine_t" && pod.version < 31),
            !options.text("user").is_empty(),
            !options.text("role").is_empty(),
        );
        if wrong {
            types.insert(kind.to_owned());
        }
        user |= named;
        role |= roled;
        wrong || named || roled
    };
    let whole = is_bad(pod.spec);
    let mut bad = Vec::new();
    for container in pod.containers() {
        if is_bad(container) {
            bad.push(container.text("name"));
        }
    }
    setters(whole, &bad).map(|who| {
        let mut data = Vec::new();
        if !types.is_empty() {
            let word = plural("type", "types", types.len());
            data.push(format!("{word} {}", quoted(types.iter().map(String::as_str))));
        }
        if user {
            data.push("user may not be set".to_owned());
        }
        if role {
            data.push("role may not be set".to_owned());
        }
        format!(
            "seLinuxOptions ({who} set forbidden securityContext.seLinuxOptions: {})",
            data.join("; ")
        )
    })
}

/// The containers (or the pod) that set a profile outside of the allowed ones, and these profiles.
fn bad_profiles<'a>(pod: &Pod<'a>, field: &str) -> (Option<String>, BTreeSet<&'a str>) {
    let path = format!("securityContext.{field}.type");
    let kind = |of: &'a Value| text_at(of, &path).filter(|kind| !PROFILES.contains(kind));
    let mut values: BTreeSet<&str> = kind(pod.spec).into_iter().collect();
    let whole = !values.is_empty();
    let mut bad = Vec::new();
    for container in pod.containers() {
        if let Some(kind) = kind(container) {
            bad.push(container.text("name"));
            values.insert(kind);
        }
    }
    (setters(whole, &bad), values)
}

fn seccomp(pod: &Pod<'_>) -> Option<String> {
    let (who, values) = bad_profiles(pod, "seccompProfile");
    who.map(|who| {
        let list = quoted(values);
        format!("seccompProfile ({who} must not set securityContext.seccompProfile.type to {list})")
    })
}

fn seccomp_restricted(pod: &Pod<'_>) -> Option<String> {
    if pod.is_windows {
        return None;
    }
    if let Some(found) = seccomp(pod) {
        return Some(found);
    }
    if pod.spec.at("securityContext.seccompProfile").is_some() {
        return None;
    }
    let bad = pod.bad(|container| container.at("securityContext.seccompProfile").is_none());
    (!bad.is_empty()).then(|| {
        format!(
            "seccompProfile (pod or {} must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \
             \"Localhost\")",
            named(&bad)
        )
    })
}

fn app_armor(pod: &Pod<'_>) -> Option<String> {
    let (who, values) = bad_profiles(pod, "appArmorProfile");
    let mut setters: Vec<String> = who.into_iter().collect();
    let mut values: Vec<String> = values.into_iter().map(str::to_owned).collect();
    let annotations = pod.metadata.get("annotations").and_then(Value::as_object);
    let wrong: Vec<String> = annotations
        .into_iter()
        .flatten()
        .filter_map(|(key, value)| Some((key, value.as_str()?)))
        .filter(|(key, value)| {
            let allowed = value.is_empty() || *value == "runtime/default" || value.starts_with("localhost/");
            key.starts_with(APP_ARMOR) && !allowed
        })
        .map(|(key, value)| format!("{key}=\"{value}\""))
        .collect();
    if !wrong.is_empty() {
        setters.push(plural("annotation", "annotations", wrong.len()).to_owned());
        values.extend(wrong);
    }
    (!setters.is_empty()).then(|| {
        format!(
            "{} ({} must not set AppArmor profile type to {})",
            plural(
                "forbidden AppArmor profile",
                "forbidden AppArmor profiles",
                values.len()
            ),
            setters.join(" and "),
            quoted(values.iter().map(String::as_str))
        )
    })
}

fn sysctls(pod: &Pod<'_>) -> Option<String> {
    let set = context(pod.spec).map_or(&[][..], |context| context.list("sysctls"));
    let names = set.iter().map(|sysctl| sysctl.text("name"));
    let known = match pod.version {
        0..27 => 5,
        27..29 => 6,
        29..32 => 10,
        _ => SYSCTLS.len(),
    };
    let is_safe = |name: &&str| SYSCTLS.iter().take(known).any(|safe| safe == name);
    let bad: Vec<&str> = names.filter(|name| !is_safe(name)).collect();
    (!bad.is_empty()).then(|| format!("forbidden sysctls ({})", bad.join(", ")))
}

fn host_process(pod: &Pod<'_>) -> Option<String> {
    let is_bad = |of: &Value| of.at("securityContext.windowsOptions.hostProcess") == Some(&Value::Bool(true));
    setters(is_bad(pod.spec), &pod.bad(is_bad)).map(|who| {
        format!("hostProcess ({who} must not set securityContext.windowsOptions.hostProcess=true)")
    })
}

fn privilege_escalation(pod: &Pod<'_>) -> Option<String> {
    if pod.is_windows {
        return None;
    }
    let allowed =
        |container: &Value| context(container).and_then(|context| context.flag("allowPrivilegeEscalation"));
    let bad = pod.bad(|container| allowed(container) != Some(false));
    (!bad.is_empty()).then(|| {
        format!(
            "allowPrivilegeEscalation != false ({} must set securityContext.allowPrivilegeEscalation=false)",
            named(&bad)
        )
    })
}

fn non_root(pod: &Pod<'_>) -> Option<String> {
    if pod.has_own_users {
        return None;
    }
    let own = |container: &Value| context(container).and_then(|context| context.flag("runAsNonRoot"));
    let whole = pod.pod_flag("runAsNonRoot");
    let explicit = pod.bad(|container| own(container) == Some(false));
    if let Some(who) = setters(whole == Some(false), &explicit) {
        return Some(format!(
            "runAsNonRoot != true ({who} must not set securityContext.runAsNonRoot=false)"
        ));
    }
    if whole == Some(true) {
        return None;
    }
    let bad = pod.bad(|container| own(container).is_none());
    (!bad.is_empty()).then(|| {
        format!(
            "runAsNonRoot != true (pod or {} must set securityContext.runAsNonRoot=true)",
            named(&bad)
        )
    })
}

fn user(pod: &Pod<'_>) -> Option<String> {
    if pod.has_own_users {
        return None;
    }
    let is_bad = |of: &Value| context(of).and_then(|context| context.int("runAsUser")) == Some(0);
    setters(is_bad(pod.spec), &pod.bad(is_bad))
        .map(|who| format!("runAsUser=0 ({who} must not set runAsUser=0)"))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use shared_json::json;

    use super::*;

    /// The reasons alone.
    fn reasons(level: &str, of: &str, spec: &Value) -> Vec<String> {
        violations(level, version(of), spec, &Value::Null)
            .iter()
            .map(|violation| violation.split(" (").next().unwrap_or_default().to_owned())
            .collect()
    }

    #[rstest]
    #[case::nothing_to_say("baseline", "latest", json!({"containers": [{"name": "c"}]}), &[])]
    #[case::no_seccomp_before_1_19("baseline", "v1.18", json!({"securityContext": {"seccompProfile": {"type": "Unconfined"}}}), &[])]
    #[case::seccomp("baseline", "v1.19", json!({"securityContext": {"seccompProfile": {"type": "Unconfined"}}}), &["seccompProfile"])]
    #[case::few_checks_at_first("restricted", "v1.18", json!({"containers": [{"name": "c"}]}),
        &["allowPrivilegeEscalation != false", "runAsNonRoot != true"])]
    #[case::more_of_them_later("restricted", "v1.25", json!({"containers": [{"name": "c"}]}),
        &["allowPrivilegeEscalation != false", "unrestricted capabilities", "runAsNonRoot != true", "seccompProfile"])]
    #[case::windows_since_1_25("restricted", "v1.25", json!({"os": {"name": "windows"}, "containers": [{"name": "c"}]}), &["runAsNonRoot != true"])]
    #[case::own_users("restricted", "latest", json!({"hostUsers": false, "containers": [{"name": "c", "securityContext": {"procMount": "Unmasked"}}]}),
        &["allowPrivilegeEscalation != false", "unrestricted capabilities", "procMount", "seccompProfile"])]
    #[case::safe_once_added("baseline", "v1.26", json!({"securityContext": {"sysctls": [{"name": "net.ipv4.ip_local_reserved_ports"}]}}), &["forbidden sysctls"])]
    fn versions(#[case] level: &str, #[case] version: &str, #[case] spec: Value, #[case] expected: &[&str]) {
        assert_eq!(reasons(level, version, &spec), expected);
    }
}
