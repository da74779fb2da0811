//! The copies of Secrets that jobs share in the daemon's namespace.

use std::collections::BTreeSet;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::ResourceExt as _;

use crate::api::v1beta1::ReferenceObject;
use crate::images::SHARED_COPY;
use crate::kit::ObjectKey;

/// Annotation of a copy: the jobs that use it, `namespace/name`, sorted, with commas between.
const REFERENCES: &str = "imagepulljobs.kruise.io/references";
/// Annotation of a copy: the Secret that it is a copy of.
pub(super) const SOURCE: &str = "imagepulljobs.kruise.io/source-key";
/// Annotation of a copy: [`SHARED_COPY`].
const MODE: &str = "imagepulljobs.kruise.io/mode";

/// A write of a copy.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Write {
    /// A new copy.
    Create(Secret),
    /// Other content or other jobs.
    Update(Secret),
    /// No job uses it any more.
    Delete(Arc<Secret>),
}

/// The copies for a job.
#[derive(Debug, Default)]
pub(super) struct Copies {
    /// The writes that are due.
    pub(super) writes: Vec<Write>,
    /// The Secrets for the lists of nodes.
    pub(super) references: Vec<ReferenceObject>,
}

/// A Secret for the list of a node.
pub(super) fn reference(namespace: &str, name: &str, mode: &str) -> ReferenceObject {
    ReferenceObject {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        mode: mode.to_owned(),
    }
}

fn text(key: &ObjectKey) -> String {
    format!("{}/{}", key.namespace, key.name)
}

fn jobs(copy: &Secret) -> BTreeSet<String> {
    let jobs = copy.annotations().get(REFERENCES).map(String::as_str);
    let jobs = jobs.unwrap_or_default().split(',').filter(|job| !job.is_empty());
    jobs.map(str::to_owned).collect()
}

fn with_jobs(mut copy: Secret, jobs: &BTreeSet<String>) -> Secret {
    let jobs: Vec<&str> = jobs.iter().map(String::as_str).collect();
    copy.annotations_mut()
        .insert(REFERENCES.to_owned(), jobs.join(","));
    copy
}

/// The copies of `sources` for a job in `namespace`, given the copies that are there, by name. `new_name` makes the name of a new copy.
pub(super) fn copies(
    namespace: &str,
    job: &ObjectKey,
    sources: &[Secret],
    known: &[Arc<Secret>],
    new_name: impl Fn(&str) -> String,
) -> Copies {
    let job = text(job);
    let mut copies = Copies::default();
    let mut used = BTreeSet::new();
    for source in sources {
        let key = text(&ObjectKey::of(source));
        let mut of_source = known
            .iter()
            .filter(|copy| copy.annotations().get(SOURCE) == Some(&key));
        let first = of_source.clone().next();
        let own = of_source.find(|copy| jobs(copy).contains(&job)).or(first);
        let name = match own {
            None => {
                let copy = copy_of(source, &key, (namespace, new_name(&source.name_any())));
                let name = copy.name_any();
                copies
                    .writes
                    .push(Write::Create(with_jobs(copy, &[job.clone()].into())));
                name
            }
            Some(own) => {
                let mut all = jobs(own);
                all.insert(job.clone());
                let mut copy = with_jobs(Secret::clone(own), &all);
                copy.data.clone_from(&source.data);
                if copy != **own {
                    copies.writes.push(Write::Update(copy));
                }
                own.name_any()
            }
        };
        copies.references.push(reference(namespace, &name, SHARED_COPY));
        used.insert(name);
    }
    let unused = known.iter().filter(|copy| !used.contains(&copy.name_any()));
    copies
        .writes
        .extend(unused.filter_map(|copy| without(copy, &job)));
    copies
}

/// Takes a job out of all copies.
pub(super) fn release(job: &ObjectKey, known: &[Arc<Secret>]) -> Vec<Write> {
    let job = text(job);
    known.iter().filter_map(|copy| without(copy, &job)).collect()
}

/// Takes a job out of a copy, if it is in there.
fn without(copy: &Arc<Secret>, job: &str) -> Option<Write> {
    let mut jobs = jobs(copy);
    if !jobs.remove(job) {
        return None;
    }
    Some(match jobs.is_empty() {
        true => Write::Delete(Arc::clone(copy)),
        false => Write::Update(with_jobs(Secret::clone(copy), &jobs)),
    })
}

fn copy_of(source: &Secret, key: &str, (namespace, name): (&str, String)) -> Secret {
    let mut annotations = source.metadata.annotations.clone().unwrap_or_default();
    annotations.insert(SOURCE.to_owned(), key.to_owned());
    annotations.insert(MODE.to_owned(), SHARED_COPY.to_owned());
    Secret {
        metadata: ObjectMeta {
            name: Some(name),
            namespace: Some(namespace.to_owned()),
            labels: source.metadata.labels.clone(),
            annotations: Some(annotations),
            ..ObjectMeta::default()
        },
        data: source.data.clone(),
        type_: source.type_.clone(),
        ..Secret::default()
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn source(name: &str, word: &str) -> Secret {
        serde_json::from_value(
            json!({ "metadata": { "name": name, "namespace": "d", "labels": { "l": "1" } },
            "type": "kubernetes.io/dockerconfigjson", "data": { ".dockerconfigjson": word } }),
        )
        .unwrap()
    }

    /// A copy by words such as `a-1 of d/a for d/j,d/k: e30=`.
    fn copy(words: &str) -> Arc<Secret> {
        let (name, rest) = words.split_once(" of ").unwrap();
        let (key, rest) = rest.split_once(" for ").unwrap();
        let (jobs, word) = rest.split_once(": ").unwrap();
        let (_, source_name) = key.split_once('/').unwrap();
        let mut copy = copy_of(&source(source_name, word), key, ("k", name.to_owned()));
        copy.annotations_mut()
            .insert(REFERENCES.to_owned(), jobs.to_owned());
        Arc::new(copy)
    }

    fn shown(writes: &[Write]) -> String {
        let shown = writes.iter().map(|write| match write {
            Write::Create(copy) => format!(
                "create {} for {}",
                copy.name_any(),
                copy.annotations()[REFERENCES]
            ),
            Write::Update(copy) => format!(
                "update {} for {}",
                copy.name_any(),
                copy.annotations()[REFERENCES]
            ),
            Write::Delete(copy) => format!("delete {}", copy.name_any()),
        });
        shown.collect::<Vec<_>>().join("; ")
    }

    /// The Secrets of the job `d/j`, the copies that are there, the writes, and the names that nodes get.
    #[rstest]
    #[case::new(&["a"], &[], "create a-new for d/j", "a-new")]
    #[case::there(&["a"], &["a-1 of d/a for d/j: e30="], "", "a-1")]
    #[case::of_another_job(&["a"], &["a-1 of d/a for d/k: e30="], "update a-1 for d/j,d/k", "a-1")]
    #[case::changed(&["a"], &["a-1 of d/a for d/j: e2F9"], "update a-1 for d/j", "a-1")]
    #[case::the_jobs_own_of_two(
        &["a"], &["a-1 of d/a for d/k: e30=", "a-2 of d/a for d/j: e30="], "", "a-2"
    )]
    #[case::no_longer_wanted(&[], &["a-1 of d/a for d/j: e30=", "b-1 of d/b for d/i,d/j: e30="], "delete a-1; update b-1 for d/i", "")]
    #[case::of_another_namespace(&["a"], &["a-1 of e/a for e/j: e30="], "create a-new for d/j", "a-new")]
    fn copies_for_a_job(
        #[case] sources: &[&str],
        #[case] known: &[&str],
        #[case] writes: &str,
        #[case] names: &str,
    ) {
        let sources: Vec<Secret> = sources.iter().map(|name| source(name, "e30=")).collect();
        let known: Vec<Arc<Secret>> = known.iter().map(|words| copy(words)).collect();
        let copies = copies("k", &ObjectKey::new("d", "j"), &sources, &known, |name| {
            format!("{name}-new")
        });
        assert!(copies.references.iter().all(|secret| secret.namespace == "k"));
        let referenced: Vec<String> = copies
            .references
            .iter()
            .map(|secret| secret.name.clone())
            .collect();
        assert_eq!(
            (shown(&copies.writes).as_str(), referenced.join(" ").as_str()),
            (writes, names)
        );
    }

    #[test]
    fn a_new_copy_has_all_of_its_source() {
        let copies = copies(
            "k",
            &ObjectKey::new("d", "j"),
            &[source("a", "e30=")],
            &[],
            |_| "a-1".to_owned(),
        );
        let Write::Create(copy) = &copies.writes[0] else {
            panic!()
        };
        assert_eq!(
            serde_json::to_value(copy).unwrap(),
            json!({ "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/dockerconfigjson",
                "data": { ".dockerconfigjson": "e30=" },
                "metadata": { "name": "a-1", "namespace": "k", "labels": { "l": "1" }, "annotations": {
                    REFERENCES: "d/j", SOURCE: "d/a", MODE: "batch" } } })
        );
    }

    #[test]
    fn a_job_that_ends_leaves_its_copies() {
        let known = [
            copy("a-1 of d/a for d/j: e30="),
            copy("b-1 of d/b for d/i,d/j: e30="),
            copy("c-1 of d/c for d/i: e30="),
        ];
        let writes = release(&ObjectKey::new("d", "j"), &known);
        assert_eq!(shown(&writes), "delete a-1; update b-1 for d/i");
    }
}
