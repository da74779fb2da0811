//! The programs in Rust of images.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::images::canonical;
use crate::programs::ContainerProgram;

/// The programs of images, by name: a name with `*` at its end stands for all that begin so, one without a tag for every tag.
#[derive(Clone, Default)]
pub struct ContainerPrograms(BTreeMap<String, Arc<dyn ContainerProgram>>);

impl ContainerPrograms {
    /// Adds a program, or replaces the one of that name.
    pub fn add(&mut self, image: &str, program: Arc<dyn ContainerProgram>) {
        self.0.insert(image.to_owned(), program);
    }

    /// The program of an image; of several names the longest counts.
    pub(crate) fn get(&self, image: &str) -> Option<Arc<dyn ContainerProgram>> {
        let whole = canonical(image);
        let fits = |name: &str| match name.strip_suffix('*') {
            Some(start) => image.starts_with(start) || whole.starts_with(&canonical_start(start)),
            None if has_tag(name) => canonical(name) == whole,
            None => canonical(name).rsplit_once(':').map(|(repository, _)| repository) == repository(&whole),
        };
        let found = self.0.iter().filter(|(name, _)| fits(name));
        let found = found.max_by_key(|(name, _)| name.len())?;
        Some(Arc::clone(found.1))
    }
}

fn has_tag(name: &str) -> bool {
    name.rsplit('/').next().unwrap_or_default().contains([':', '@'])
}

fn canonical_start(start: &str) -> String {
    if start.contains('/') {
        start.to_owned()
    } else {
        format!("docker.io/library/{start}")
    }
}

fn repository(canonical: &str) -> Option<&str> {
    let at = canonical.rfind('/').map_or(0, |at| at + 1);
    let end = canonical.get(at..)?.find([':', '@'])?;
    canonical.get(..at + end)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::programs::Container;

    #[rstest]
    #[case("my/image", "my/image:1", true)]
    #[case("my/image", "docker.io/my/image", true)]
    #[case("my/image:1", "my/image:1", true)]
    #[case("my/image:1", "my/image:2", false)]
    #[case("my/image", "my/image2", false)]
    #[case("my/*", "my/image:1", true)]
    #[case("web", "web", true)]
    #[case("web", "other/web", false)]
    #[case("quay.io/a/b", "quay.io/a/b@sha256:00", true)]
    fn names(#[case] name: &str, #[case] image: &str, #[case] expected: bool) {
        let mut programs = ContainerPrograms::default();
        programs.add(name, Arc::new(|_: Container| async { 0 }));
        assert_eq!(programs.get(image).is_some(), expected);
    }
}
