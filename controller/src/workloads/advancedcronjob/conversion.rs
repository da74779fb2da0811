//! The two versions of an AdvancedCronJob.

use crate::kit::conversion::Conversion;

/// Between `v1alpha1` and `v1beta1`, which has jobs that pull images, too.
pub(super) const CONVERSION: Conversion = Conversion {
    group: "apps.kruise.io",
    kind: "AdvancedCronJob",
    versions: &["v1alpha1", "v1beta1"],
    convert: |cron, version| {
        let images = cron.pointer("/spec/template/imageListPullJobTemplate");
        match images.filter(|images| !images.is_null()) {
            Some(_) if version == "v1alpha1" => {
                Err("imageListPullJobTemplate is not supported in v1alpha1".to_owned())
            }
            _ => Ok(()),
        }
    },
};

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    #[rstest]
    #[case::up("v1alpha1", "v1beta1", json!({ "jobTemplate": {} }), true)]
    #[case::down("v1beta1", "v1alpha1", json!({ "broadcastJobTemplate": {} }), true)]
    #[case::nothing("v1beta1", "v1alpha1", json!({ "imageListPullJobTemplate": null }), true)]
    #[case::images("v1beta1", "v1alpha1", json!({ "imageListPullJobTemplate": {} }), false)]
    #[case::images_stay("v1beta1", "v1beta1", json!({ "imageListPullJobTemplate": {} }), true)]
    fn templates(#[case] from: &str, #[case] to: &str, #[case] template: Value, #[case] fits: bool) {
        let version = |version: &str| format!("apps.kruise.io/{version}");
        let cron = |of: &str| json!({ "apiVersion": version(of), "spec": { "template": template } });
        let expect = match fits {
            true => Ok(cron(to)),
            false => Err("imageListPullJobTemplate is not supported in v1alpha1".to_owned()),
        };
        assert_eq!(CONVERSION.to(cron(from), &version(to)), expect);
    }
}
