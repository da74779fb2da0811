//! Pods that stand for ports of the machine that the cluster runs on.

use shared_json::Value;

/// The annotation of such a pod: `HOST:PORT`, or `PORT=HOST:PORT` for one of its ports; several are separated by commas.
pub const DIAL: &str = "network.fake-apiserver/dial";

/// The annotation of a pod says nothing that can be dialled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the annotation {DIAL} of pod {pod} has {part:?}, which is neither HOST:PORT nor PORT=HOST:PORT")]
pub struct BadDial {
    /// The pod's namespace and name.
    pub pod: String,
    /// The part of the annotation that is wrong.
    pub part: String,
}

/// Where connections to a port of a pod go, as host and port; none if the pod stands for itself.
///
/// ```
/// use node_access::dialled;
///
/// let pod = shared_json::json!({"metadata": {"annotations": {"network.fake-apiserver/dial": "127.0.0.1:9443"}}});
/// assert_eq!(dialled(&pod, 443), Ok(Some(("127.0.0.1".to_owned(), 9443))));
/// ```
///
/// # Errors
/// If the pod's annotation cannot be read.
pub fn dialled(pod: &Value, port: u16) -> Result<Option<(String, u16)>, BadDial> {
    let text = |path: &str| pod.pointer(path).and_then(Value::as_str);
    let annotations = pod.pointer("/metadata/annotations");
    let Some(annotation) = annotations
        .and_then(|annotations| annotations.get(DIAL))
        .and_then(Value::as_str)
    else {
        return Ok(None);
    };
    let (mut for_one, mut for_all) = (None, None);
    for part in annotation.split(',').map(str::trim) {
        let (own, address) = match part.split_once('=') {
            Some((own, address)) => (own.parse().ok(), address),
            None => (Some(0), part),
        };
        let (Some(own), Some(address)) = (own, host_and_port(address)) else {
            let of = |path| text(path).unwrap_or_default();
            return Err(BadDial {
                pod: format!("{}/{}", of("/metadata/namespace"), of("/metadata/name")),
                part: part.to_owned(),
            });
        };
        match own {
            0 => for_all = Some(address),
            own if own == port => for_one = Some(address),
            _ => {}
        }
    }
    Ok(for_one.or(for_all))
}

fn host_and_port(address: &str) -> Option<(String, u16)> {
    let (host, port) = address.rsplit_once(':')?;
    let host = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .unwrap_or(host);
    let port = port.parse().ok().filter(|port| *port > 0)?;
    (!host.is_empty()).then(|| (host.to_owned(), port))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use shared_json::json;

    use super::*;

    const BAD: &str = "the annotation network.fake-apiserver/dial of pod n/p has ";
    const FORMS: &str = ", which is neither HOST:PORT nor PORT=HOST:PORT";

    #[rstest]
    #[case::none(None, "")]
    #[case::any_port(Some("127.0.0.1:9443"), "127.0.0.1 9443")]
    #[case::a_name(Some(" localhost:1 "), "localhost 1")]
    #[case::version_six(Some("[::1]:9443"), "::1 9443")]
    #[case::this_port(Some("443=127.0.0.1:1"), "127.0.0.1 1")]
    #[case::another_port(Some("80=127.0.0.1:1"), "")]
    #[case::its_own_goes_first(Some("127.0.0.1:1, 443=127.0.0.1:2"), "127.0.0.1 2")]
    #[case::others(Some("80=127.0.0.1:2,127.0.0.1:1"), "127.0.0.1 1")]
    #[case::empty(Some(""), "\"\"")]
    #[case::wrong_for_another(Some("443=127.0.0.1:1,80=x"), "\"80=x\"")]
    #[case::no_port(Some("127.0.0.1"), "\"127.0.0.1\"")]
    #[case::port_zero(Some("127.0.0.1:0"), "\"127.0.0.1:0\"")]
    #[case::large_port(Some("127.0.0.1:65536"), "\"127.0.0.1:65536\"")]
    #[case::no_host(Some(":1"), "\":1\"")]
    #[case::own_is_no_number(Some("http=127.0.0.1:1"), "\"http=127.0.0.1:1\"")]
    fn annotations(#[case] annotation: Option<&str>, #[case] expected: &str) {
        let mut pod = json!({"metadata": {"namespace": "n", "name": "p"}});
        if let Some(annotation) = annotation {
            pod["metadata"]["annotations"] = json!({DIAL: annotation});
        }
        let told = match dialled(&pod, 443) {
            Ok(Some((host, port))) => format!("{host} {port}"),
            Ok(None) => String::new(),
            Err(error) => error.to_string(),
        };
        let expected = match expected.starts_with('"') {
            true => format!("{BAD}{expected}{FORMS}"),
            false => expected.to_owned(),
        };
        assert_eq!(told, expected);
    }
}
