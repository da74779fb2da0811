//! Keeps classes of attributes of volumes while a claim or a volume names them.

use std::collections::BTreeSet;

use async_trait::async_trait;
use machinery::meta::ObjectMeta as _;
use shared_json::{Value, json};

use super::runtime::{Cache, Controller, Cx, Key, Next, Res, text};

const FINALIZER: &str = "kubernetes.io/vac-protection";

/// Where claims and volumes name a class: the one that is asked for, the one that is in force, the one that is on its way.
const NAMES: [&str; 3] = [
    "spec.volumeAttributesClassName",
    "status.currentVolumeAttributesClassName",
    "status.modifyVolumeStatus.targetVolumeAttributesClassName",
];

/// The classes that a claim or a volume names.
fn named(object: &Value) -> impl Iterator<Item = &str> {
    NAMES
        .into_iter()
        .map(|path| text(object, path))
        .filter(|name| !name.is_empty())
}

/// Adds the finalizer of those classes, and removes it from deleted classes that no claim or volume names.
pub(super) struct AttributesClasses;

#[async_trait]
impl Controller for AttributesClasses {
    fn name(&self) -> &'static str {
        "volumeattributesclass-protection-controller"
    }

    fn watches(&self) -> &'static [Res] {
        &[Res::AttributesClasses, Res::Claims, Res::Volumes]
    }

    fn affected(&self, _: &Cache, res: Res, object: &Value, old: Option<&Value>) -> Vec<Key> {
        if res == Res::AttributesClasses {
            return vec![Key::of(object)];
        }
        let names: BTreeSet<&str> = named(object).chain(old.into_iter().flat_map(named)).collect();
        names.into_iter().map(|name| Key::new("", name)).collect()
    }

    async fn sync(&mut self, cx: &mut Cx<'_>, key: &Key) -> Result<Next, kube::Error> {
        let Some(class) = cx.cache.get(Res::AttributesClasses, "", &key.name).cloned() else {
            return Ok(Next::Change);
        };
        let mut finalizers: Vec<&str> = class.finalizers();
        let held = finalizers.contains(&FINALIZER);
        let is_used = || {
            let mut users = cx.cache.all(Res::Volumes).chain(cx.cache.all(Res::Claims));
            users.any(|user| named(user).any(|name| *name == *key.name))
        };
        match (class.is_terminating(), held) {
            (false, false) => finalizers.push(FINALIZER),
            (true, true) if !is_used() => finalizers.retain(|name| *name != FINALIZER),
            _ => return Ok(Next::Change),
        }
        let patch = json!({"metadata": {"finalizers": finalizers}});
        cx.patch(Res::AttributesClasses, &class, "", patch).await?;
        Ok(Next::Change)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::none(json!({"spec": {}}), &[])]
    #[case::asked_for(json!({"spec": {"volumeAttributesClassName": "a"}}), &["a"])]
    #[case::of_nothing(json!({"spec": {"volumeAttributesClassName": ""}}), &[])]
    #[case::in_force(json!({"status": {"currentVolumeAttributesClassName": "b"}}), &["b"])]
    #[case::on_its_way(
        json!({"spec": {"volumeAttributesClassName": "a"}, "status": {"modifyVolumeStatus": {"targetVolumeAttributesClassName": "c"}}}),
        &["a", "c"]
    )]
    fn classes_of_claims(#[case] claim: Value, #[case] expected: &[&str]) {
        assert_eq!(named(&claim).collect::<Vec<_>>(), expected);
    }
}
