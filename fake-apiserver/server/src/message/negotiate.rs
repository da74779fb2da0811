//! Content negotiation: the form of an answer, by the request's `Accept`.

/// How objects are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum View {
    /// As they are.
    #[default]
    Whole,
    /// As rows of a `Table`.
    Table,
    /// Their metadata alone, as `PartialObjectMetadata`.
    MetadataOnly,
    /// A list of the above: refused for a single object, as the other is for a list.
    MetadataOnlyList,
}

/// The version of `meta.k8s.io` that tables and partial objects are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum MetaVersion {
    #[default]
    V1,
    V1Beta1,
}

impl MetaVersion {
    pub(crate) fn api_version(self) -> &'static str {
        match self {
            Self::V1 => "meta.k8s.io/v1",
            Self::V1Beta1 => "meta.k8s.io/v1beta1",
        }
    }
}

/// The encoding of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Encoding {
    #[default]
    Json,
    /// JSON with line breaks, as asked for by `pretty`.
    PrettyJson,
    Yaml,
    Protobuf,
}

impl Encoding {
    /// The content type of a watch.
    pub(crate) fn stream_content_type(self) -> &'static str {
        match self {
            Self::Json | Self::PrettyJson => "application/json",
            Self::Yaml => "application/yaml",
            Self::Protobuf => "application/vnd.kubernetes.protobuf;stream=watch",
        }
    }

    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::Json | Self::PrettyJson => "application/json",
            Self::Yaml => "application/yaml",
            Self::Protobuf => "application/vnd.kubernetes.protobuf",
        }
    }
}

/// The requested form of an answer, from `Accept`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Accepted {
    pub view: View,
    pub meta: MetaVersion,
    pub encoding: Encoding,
    /// Aggregated discovery (`apidiscovery.k8s.io/v2`).
    pub aggregated: bool,
}

/// The forms that an endpoint offers, besides plain JSON and YAML.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Offer {
    pub protobuf: bool,
    /// Partial metadata.
    pub views: bool,
    /// Tables.
    pub tables: bool,
    /// Aggregated discovery.
    pub aggregated: bool,
}

impl Offer {
    /// The forms for errors.
    pub(crate) const ERRORS: Self = Self {
        protobuf: true,
        views: false,
        tables: false,
        aggregated: false,
    };
}

/// The first of the listed media types, the most wanted first, that is offered; `None` if none is.
pub(crate) fn accept(header: &str, offer: Offer) -> Option<Accepted> {
    if header.trim().is_empty() {
        return Some(Accepted::default());
    }
    let mut ranges: Vec<(&str, u32)> = header.split(',').map(|range| (range, quality(range))).collect();
    ranges.sort_by_key(|(_, quality)| std::cmp::Reverse(*quality));
    ranges.into_iter().find_map(|(range, _)| one(range, offer))
}

/// Whether one of the media types is listed by the routes of built-in resources, whatever its parameters are.
pub(crate) fn is_routed(header: &str) -> bool {
    let header = header.trim();
    header.is_empty()
        || header.split(',').any(|range| {
            let kind = range.split(';').next().unwrap_or_default().trim();
            matches!(
                kind,
                "*/*" | "application/json" | "application/yaml" | "application/vnd.kubernetes.protobuf"
            )
        })
}

/// The `q` of a media range, in thousandths.
fn quality(range: &str) -> u32 {
    let given = range.split(';').filter_map(|part| part.trim().strip_prefix("q="));
    let parsed = given.filter_map(|q| q.trim().parse::<f32>().ok()).next();
    parsed.map_or(1000, |q| (q.clamp(0.0, 1.0) * 1000.0) as u32)
}

fn one(range: &str, offer: Offer) -> Option<Accepted> {
    let mut parts = range.split(';').map(str::trim);
    let encoding = match parts.next()? {
        "application/json" | "*/*" | "application/*" => Encoding::Json,
        "application/yaml" => Encoding::Yaml,
        "application/vnd.kubernetes.protobuf" if offer.protobuf => Encoding::Protobuf,
        _ => return None,
    };
    let (mut kind, mut group, mut version) = ("", "", "");
    let mut pretty = false;
    for part in parts {
        match part.split_once('=') {
            Some(("as", value)) => kind = value,
            Some(("g", value)) => group = value,
            Some(("v", value)) => version = value,
            Some(("pretty", value)) => pretty = value == "1",
            Some(("stream", value)) if !matches!(value, "" | "watch") => return None,
            _ => {}
        }
    }
    let plain = Accepted {
        encoding: if pretty && encoding == Encoding::Json {
            Encoding::PrettyJson
        } else {
            encoding
        },
        ..Accepted::default()
    };
    if (kind, group, version) == ("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2") {
        return offer.aggregated.then_some(Accepted {
            aggregated: true,
            ..plain
        });
    }
    let view = match kind {
        // A version of nothing is no form at all.
        "" if offer.views && !(group.is_empty() && version.is_empty()) => return None,
        "" => return Some(plain),
        // A table has no protobuf form.
        "Table" if encoding == Encoding::Protobuf || !offer.tables => return None,
        "Table" => View::Table,
        "PartialObjectMetadata" => View::MetadataOnly,
        "PartialObjectMetadataList" => View::MetadataOnlyList,
        _ => return None,
    };
    let meta = match (group, version) {
        ("meta.k8s.io", "v1") => MetaVersion::V1,
        ("meta.k8s.io", "v1beta1") => MetaVersion::V1Beta1,
        _ => return None,
    };
    offer.views.then_some(Accepted { view, meta, ..plain })
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const OBJECTS: Offer = Offer {
        protobuf: false,
        views: true,
        tables: true,
        aggregated: false,
    };

    #[rstest]
    #[case("", true)]
    #[case("text/html, application/json;as=Nope", true)]
    #[case("*/*;q=0.1", true)]
    #[case("application/*", false)]
    #[case("text/html", false)]
    fn routes(#[case] header: &str, #[case] expected: bool) {
        assert_eq!(is_routed(header), expected);
    }

    #[rstest]
    #[case("", "Whole Json")]
    #[case("application/json", "Whole Json")]
    #[case("application/json;as=Table;v=v1;g=meta.k8s.io,application/json", "Table Json")]
    #[case("application/json;as=Table;v=v9;g=meta.k8s.io,application/json", "Whole Json")]
    #[case("application/json;as=Table;v=v9;g=meta.k8s.io", "none")]
    #[case("application/vnd.kubernetes.protobuf, application/yaml", "Whole Yaml")]
    #[case("application/json;q=0.5, application/yaml", "Whole Yaml")]
    #[case("application/json;pretty=1", "Whole PrettyJson")]
    #[case("application/json;v=v1", "none")]
    #[case("application/json;stream=watch", "Whole Json")]
    #[case("application/json;stream=all", "none")]
    #[case("text/html", "none")]
    fn chooses(#[case] header: &str, #[case] expected: &str) {
        let got =
            accept(header, OBJECTS).map(|accepted| format!("{:?} {:?}", accepted.view, accepted.encoding));
        assert_eq!(got.as_deref().unwrap_or("none"), expected);
    }
}
