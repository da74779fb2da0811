//! In which form an answer goes out, by the request's `Accept`.

/// How objects are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum View {
    /// As they are.
    #[default]
    Whole,
    /// As rows of `meta.k8s.io/v1` `Table`.
    Table,
    /// Their metadata alone, as `PartialObjectMetadata`.
    MetadataOnly,
}

/// The encoding of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Encoding {
    #[default]
    Json,
    Yaml,
}

/// What `Accept` asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Accepted {
    pub view: View,
    pub encoding: Encoding,
    /// Aggregated discovery (`apidiscovery.k8s.io/v2`).
    pub aggregated: bool,
}

/// The first of the listed media types that can be served; `None` if none can.
pub(crate) fn accept(header: &str) -> Option<Accepted> {
    if header.trim().is_empty() {
        return Some(Accepted::default());
    }
    header.split(',').find_map(one)
}

fn one(media_type: &str) -> Option<Accepted> {
    let mut parts = media_type.split(';').map(str::trim);
    let encoding = match parts.next()? {
        "application/json" | "*/*" | "application/*" | "application/json;stream=watch" => Encoding::Json,
        "application/yaml" => Encoding::Yaml,
        _ => return None,
    };
    let (mut kind, mut group, mut version) = ("", "", "");
    for part in parts {
        match part.split_once('=') {
            Some(("as", value)) => kind = value,
            Some(("g", value)) => group = value,
            Some(("v", value)) => version = value,
            _ => {}
        }
    }
    let plain = Accepted {
        encoding,
        ..Accepted::default()
    };
    match (kind, group, version) {
        ("", _, _) => Some(plain),
        ("Table", "meta.k8s.io", "v1") => Some(Accepted {
            view: View::Table,
            ..plain
        }),
        ("PartialObjectMetadata" | "PartialObjectMetadataList", "meta.k8s.io", "v1") => Some(Accepted {
            view: View::MetadataOnly,
            ..plain
        }),
        ("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2") => Some(Accepted {
            aggregated: true,
            ..plain
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("", Some((View::Whole, Encoding::Json)))]
    #[case("application/json", Some((View::Whole, Encoding::Json)))]
    #[case("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", Some((View::Table, Encoding::Json)))]
    #[case("application/vnd.kubernetes.protobuf, application/yaml", Some((View::Whole, Encoding::Yaml)))]
    #[case("text/html", None)]
    fn chooses(#[case] header: &str, #[case] expected: Option<(View, Encoding)>) {
        assert_eq!(
            accept(header).map(|accepted| (accepted.view, accepted.encoding)),
            expected
        );
    }
}
