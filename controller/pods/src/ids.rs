//! The ids of new pods.

use std::collections::BTreeSet;

use client_kit::Names;

/// How many names may be tried for each id that is wanted.
const TRIES_PER_ID: usize = 20;

/// `count` ids in order: first those to `reuse`, then new ones for names that begin with `prefix`, none of them `taken`.
/// Fewer when the source gives nothing but names that are taken.
pub fn pick(
    count: usize,
    reuse: &[String],
    taken: &[String],
    prefix: &str,
    names: &dyn Names,
) -> Vec<String> {
    let mut ids: BTreeSet<String> = reuse.iter().take(count).cloned().collect();
    let taken: BTreeSet<&String> = taken.iter().chain(reuse).collect();
    for _ in 0..count.saturating_mul(TRIES_PER_ID) {
        if ids.len() >= count {
            break;
        }
        let id = names.suffix(prefix);
        if !taken.contains(&id) {
            ids.insert(id);
        }
    }
    ids.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    struct Fixed(Mutex<Vec<&'static str>>);

    impl Names for Fixed {
        fn suffix(&self, _prefix: &str) -> String {
            let mut names = self.0.lock().unwrap();
            if names.is_empty() {
                "zzzzz".to_owned()
            } else {
                names.remove(0).to_owned()
            }
        }
    }

    #[test]
    fn sorted_distinct_and_free() {
        let names = Fixed(Mutex::new(vec!["mdqwn", "taken", "4wz2z", "mdqwn", "cg8bt"]));
        let taken = ["taken".to_owned()];
        assert_eq!(pick(3, &[], &taken, "cs-", &names), ["4wz2z", "cg8bt", "mdqwn"]);
        let reuse = ["old".to_owned(), "older".to_owned()];
        assert_eq!(pick(1, &reuse, &taken, "cs-", &names), ["old"]);
        assert_eq!(pick(3, &reuse, &taken, "cs-", &names), ["old", "older", "zzzzz"]);
        assert_eq!(
            pick(4, &reuse, &taken, "cs-", &names),
            ["old", "older", "zzzzz"],
            "the source is exhausted"
        );
    }
}
