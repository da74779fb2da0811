//! Sets of paths, and their form in `managedFields` (`fieldsV1`).

use super::interned;
use super::path::{PathElement, mix};
use shared_json::{Map, Name, Value};
use std::cmp;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A set of paths into an object.
///
/// ```
/// use machinery::patch::apply::FieldSet;
/// use shared_json::json;
/// let fields = json!({"f:spec": {"f:ports": {"k:{\"port\":80}": {".": {}, "f:port": {}}}}});
/// let set = FieldSet::decode(&fields).unwrap();
/// assert_eq!(set.encode(), fields);
/// let paths: Vec<String> = set.paths();
/// assert_eq!(paths, [".spec.ports[port=80]", ".spec.ports[port=80].port"]);
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldSet {
    /// By step, in order; never none. Most levels have a handful of steps, and they come in order, too: a sorted list costs one allocation
    /// where a tree of them takes several times the memory. Copies share it until one of them is changed.
    nodes: Option<Arc<Nodes>>,
}

#[derive(Debug, Default)]
struct Nodes {
    list: Vec<(PathElement, Node)>,
    /// A number for all of it, once that was asked for. Zero otherwise.
    number: AtomicU64,
}

/// Sets of so many steps at a level have no number.
pub(super) const NUMBERED_MAX: usize = 512;

impl Clone for Nodes {
    /// A clone is made to be changed.
    fn clone(&self) -> Self {
        self.list.clone().into()
    }
}

impl From<Vec<(PathElement, Node)>> for Nodes {
    fn from(list: Vec<(PathElement, Node)>) -> Self {
        Self {
            list,
            number: AtomicU64::new(0),
        }
    }
}

impl PartialEq for Nodes {
    fn eq(&self, other: &Self) -> bool {
        self.list == other.list
    }
}

impl Eq for Nodes {}

/// The paths below one step. In a set it is never neither a member nor a parent of one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) member: bool,
    pub(super) children: FieldSet,
}

impl FieldSet {
    /// The set of these paths of field names.
    ///
    /// ```
    /// use machinery::patch::apply::FieldSet;
    /// assert_eq!(FieldSet::of(&[&["status"], &["metadata", "labels"]]).paths(), [".status", ".metadata.labels"]);
    /// ```
    pub fn of(paths: &[&[&str]]) -> FieldSet {
        let mut set = FieldSet::default();
        for path in paths {
            let path: Vec<PathElement> = path.iter().map(|name| PathElement::field(name)).collect();
            set.insert(&path);
        }
        set
    }

    fn nodes(&self) -> &[(PathElement, Node)] {
        self.nodes.as_deref().map_or(&[], |nodes| &nodes.list)
    }

    fn nodes_mut(&mut self) -> &mut Vec<(PathElement, Node)> {
        let nodes = Arc::make_mut(self.nodes.get_or_insert_default());
        *nodes.number.get_mut() = 0;
        &mut nodes.list
    }

    /// An identity by address: two sets that exist at the same time have the same one only if they are equal; none for the empty
    /// one.
    pub(super) fn address(&self) -> Option<usize> {
        self.nodes.as_ref().map(|nodes| Arc::as_ptr(nodes).addr())
    }

    /// A number for the set: equal ones have equal numbers. None for large ones, and for the empty one.
    pub(super) fn number(&self) -> Option<u64> {
        let nodes = self.nodes.as_deref()?;
        match nodes.number.load(Ordering::Relaxed) {
            0 if nodes.list.len() >= NUMBERED_MAX => None,
            0 => {
                let number = nodes.list.iter().try_fold(0, |number, (element, node)| {
                    let below = match node.children.is_empty() {
                        true => 0,
                        false => node.children.number()?,
                    };
                    let number = mix(element.number(number), u64::from(node.member));
                    Some(mix(number, below))
                })?;
                nodes.number.store(number, Ordering::Relaxed);
                Some(number)
            }
            number => Some(number),
        }
    }

    fn is_same(&self, other: &FieldSet) -> bool {
        self.address() == other.address()
    }

    /// Whether no path is in the set.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_none()
    }

    /// Adds a path; the empty path is the whole object, which no set holds.
    pub fn insert(&mut self, path: &[PathElement]) {
        let Some((last, parents)) = path.split_last() else {
            return;
        };
        let mut at = self;
        for element in parents {
            at = &mut at.entry(element).children;
        }
        at.entry(last).member = true;
    }

    /// Adds the paths below a step.
    pub(super) fn add(&mut self, element: &PathElement, node: Node) {
        if !node.is_some() {
            return;
        }
        let present = self.entry(element);
        present.member |= node.member;
        present.children = std::mem::take(&mut present.children).union(node.children);
    }

    /// Where a step is, or belongs.
    fn find(&self, element: &PathElement) -> Result<usize, usize> {
        let nodes = self.nodes();
        match nodes.last().map(|(last, _)| last.cmp(element)) {
            None | Some(cmp::Ordering::Less) => Err(nodes.len()),
            Some(cmp::Ordering::Equal) => Ok(nodes.len() - 1),
            Some(cmp::Ordering::Greater) => nodes.binary_search_by(|(known, _)| known.cmp(element)),
        }
    }

    fn get(&self, element: &PathElement) -> Option<&Node> {
        let at = self.find(element).ok()?;
        self.nodes().get(at).map(|(_, node)| node)
    }

    /// The node of a step, made if need be; the step is cloned only then.
    fn entry(&mut self, element: &PathElement) -> &mut Node {
        let at = self.find(element);
        let nodes = self.nodes_mut();
        let at = at.unwrap_or_else(|at| {
            nodes.insert(at, (element.clone(), Node::default()));
            at
        });
        &mut nodes[at].1
    }

    /// Whether the path of this one step is in the set.
    pub(super) fn has(&self, element: &PathElement) -> bool {
        self.get(element).is_some_and(|node| node.member)
    }

    /// The set's paths below a step, if there are any.
    pub(super) fn below(&self, element: &PathElement) -> Option<&FieldSet> {
        self.get(element)
            .map(|node| &node.children)
            .filter(|children| !children.is_empty())
    }

    /// The paths of either set.
    pub fn union(self, other: FieldSet) -> FieldSet {
        if other.is_empty() || self.is_same(&other) {
            return self;
        }
        if self.is_empty() {
            return other;
        }
        // Both are in order. Nothing is copied while the result is what one of them begins with.
        let (ours, theirs) = (self.nodes(), other.nodes());
        let (mut here, mut there) = (0, 0);
        let (mut is_ours, mut is_theirs) = (true, true);
        let mut out: Vec<(PathElement, Node)> = Vec::new();
        loop {
            let (one, two) = (ours.get(here), theirs.get(there));
            let order = match (one, two) {
                (Some((one, _)), Some((two, _))) => one.cmp(two),
                (Some(_), None) => cmp::Ordering::Less,
                (None, Some(_)) => cmp::Ordering::Greater,
                (None, None) => break,
            };
            let both = one
                .zip(two)
                .filter(|_| order.is_eq())
                .map(|((_, one), (_, two))| Node {
                    member: one.member || two.member,
                    children: one.children.clone().union(two.children.clone()),
                });
            let still_ours = is_ours
                && order.is_le()
                && both
                    .as_ref()
                    .is_none_or(|node| one.is_some_and(|(_, one)| node.is_same(one)));
            let still_theirs = is_theirs
                && order.is_ge()
                && both
                    .as_ref()
                    .is_none_or(|node| two.is_some_and(|(_, two)| node.is_same(two)));
            if (is_ours || is_theirs) && !(still_ours || still_theirs) {
                let begun = if is_ours { &ours[..here] } else { &theirs[..there] };
                out.reserve(ours.len() + theirs.len());
                out.extend_from_slice(begun);
            }
            (is_ours, is_theirs) = (still_ours, still_theirs);
            if !(is_ours || is_theirs) {
                let from = if order.is_le() { one } else { two };
                out.extend(
                    from.map(|(element, node)| (element.clone(), both.unwrap_or_else(|| node.clone()))),
                );
            }
            here += usize::from(order.is_le());
            there += usize::from(order.is_ge());
        }
        match (is_ours, is_theirs) {
            (true, _) => self,
            (_, true) => other,
            _ => out.into_iter().collect(),
        }
    }

    /// The paths of both sets.
    pub fn intersection(&self, other: &FieldSet) -> FieldSet {
        self.nodes()
            .iter()
            .filter_map(|(element, ours)| {
                let theirs = other.get(element)?;
                let node = Node {
                    member: ours.member && theirs.member,
                    children: ours.children.intersection(&theirs.children),
                };
                node.is_some().then(|| (element.clone(), node))
            })
            .collect()
    }

    /// Whether any path is in both sets.
    pub fn intersects(&self, other: &FieldSet) -> bool {
        self.nodes().iter().any(|(element, ours)| {
            other.get(element).is_some_and(|theirs| {
                (ours.member && theirs.member) || ours.children.intersects(&theirs.children)
            })
        })
    }

    /// The paths of this set that are not in the other. A path below a path of the other set stays.
    pub fn difference(self, other: &FieldSet) -> FieldSet {
        self.less(other, &|ours, theirs| Node {
            member: ours.member && !theirs.member,
            children: ours.children.clone().difference(&theirs.children),
        })
    }

    /// The paths of this set that are neither in the other nor below a path of it.
    pub fn recursive_difference(self, other: &FieldSet) -> FieldSet {
        self.less(other, &|ours, theirs| match theirs.member {
            true => Node::default(),
            false => Node {
                member: ours.member,
                children: ours.children.clone().recursive_difference(&theirs.children),
            },
        })
    }

    /// The set with `left` applied to the steps that the other has, too. Nothing is copied while the set stays whole.
    fn less(self, other: &FieldSet, left: &impl Fn(&Node, &Node) -> Node) -> FieldSet {
        let (ours, mut theirs) = (self.nodes(), other.nodes());
        let mut out: Option<Vec<(PathElement, Node)>> = None;
        for (at, (element, node)) in ours.iter().enumerate() {
            // Both are in order.
            let order = loop {
                let Some(((their, _), rest)) = theirs.split_first() else {
                    break cmp::Ordering::Greater;
                };
                match their.cmp(element) {
                    cmp::Ordering::Less => theirs = rest,
                    order => break order,
                }
            };
            let kept = match theirs.first() {
                Some((_, their)) if order.is_eq() => left(node, their),
                _ if out.is_none() && theirs.is_empty() => return self,
                _ => {
                    if let Some(out) = &mut out {
                        out.push((element.clone(), node.clone()));
                    }
                    continue;
                }
            };
            if out.is_none() && !kept.is_same(node) {
                out = Some(ours[..at].to_vec());
            }
            if let Some(out) = &mut out
                && kept.is_some()
            {
                out.push((element.clone(), kept));
            }
        }
        match out {
            None => self,
            Some(out) => out.into_iter().collect(),
        }
    }

    /// The same set with every node marked for which `keep` says so, walking down with a context made by `descend`.
    pub(super) fn with_members<C>(
        &self,
        context: &C,
        is_member: &impl Fn(&C, &PathElement) -> bool,
        descend: &impl Fn(&C, &PathElement) -> C,
    ) -> FieldSet {
        let nodes = self.nodes().iter().map(|(element, node)| {
            let below = if node.children.is_empty() {
                FieldSet::default()
            } else {
                node.children
                    .with_members(&descend(context, element), is_member, descend)
            };
            let member = node.member || (!node.children.is_empty() && is_member(context, element));
            (
                element.clone(),
                Node {
                    member,
                    children: below,
                },
            )
        });
        nodes.collect()
    }

    /// Every step at this level: the step, whether it is a path of the set, and the paths below it.
    pub(super) fn steps(&self) -> impl Iterator<Item = (&PathElement, bool, &FieldSet)> {
        self.nodes()
            .iter()
            .map(|(element, node)| (element, node.member, &node.children))
    }

    /// Every path as text, in the order in which the real server lists conflicts: at each level the paths that end there
    /// come before those that go on.
    pub fn paths(&self) -> Vec<String> {
        let mut paths = Vec::new();
        self.collect_paths(&mut String::new(), &mut paths);
        paths
    }

    fn collect_paths(&self, prefix: &mut String, paths: &mut Vec<String>) {
        for (element, _) in self.nodes().iter().filter(|(_, node)| node.member) {
            paths.push(format!("{prefix}{element}"));
        }
        let length = prefix.len();
        for (element, node) in self.nodes() {
            prefix.push_str(&element.to_string());
            node.children.collect_paths(prefix, paths);
            prefix.truncate(length);
        }
    }

    /// The set as `fieldsV1`.
    pub fn encode(&self) -> Value {
        self.encode_part(false)
    }

    /// The same below a step, which may be a path of the set itself.
    pub(super) fn encode_part(&self, member: bool) -> Value {
        let own = member.then(|| (Name::from("."), Value::Object(Map::new())));
        let fields = self.nodes().iter().map(|(element, node)| {
            let below = match node.children.is_empty() {
                true => Value::Object(Map::new()),
                false => interned::encode(&node.children, node.member),
            };
            (element.encode(), below)
        });
        Value::Object(own.into_iter().chain(fields).collect())
    }

    /// Reads `fieldsV1`; the error names the unreadable part.
    pub fn decode(fields: &Value) -> Result<FieldSet, String> {
        let Value::Object(map) = fields else {
            return Err("fieldsV1 is not an object".to_owned());
        };
        let mut set = FieldSet::default();
        for (key, below) in map {
            if key == "." {
                continue;
            }
            let Some(element) = PathElement::decode(key)? else {
                continue;
            };
            let children = interned::decode(below)?;
            let member = children.is_empty() || below.get(".").is_some();
            *set.entry(&element) = Node { member, children };
        }
        Ok(set)
    }
}

/// Steps in order.
impl FromIterator<(PathElement, Node)> for FieldSet {
    fn from_iter<T: IntoIterator<Item = (PathElement, Node)>>(nodes: T) -> Self {
        let nodes: Vec<_> = nodes.into_iter().collect();
        FieldSet {
            nodes: (!nodes.is_empty()).then(|| Arc::new(nodes.into())),
        }
    }
}

impl Node {
    /// Whether both are the same memory.
    fn is_same(&self, other: &Node) -> bool {
        self.member == other.member && self.children.is_same(&other.children)
    }

    fn is_some(&self) -> bool {
        self.member || !self.children.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use shared_json::json;
    use std::collections::BTreeSet;

    fn set(fields: Value) -> FieldSet {
        FieldSet::decode(&fields).unwrap()
    }

    #[rstest]
    #[case(json!({"f:a": {}}), json!({"f:b": {}}), json!({"f:a": {}, "f:b": {}}))]
    #[case(json!({"f:a": {}}), json!({"f:a": {"f:b": {}}}), json!({"f:a": {".": {}, "f:b": {}}}))]
    fn union(#[case] a: Value, #[case] b: Value, #[case] both: Value) {
        assert_eq!(set(a.clone()).union(set(b.clone())).encode(), both);
        assert_eq!(set(b).union(set(a)).encode(), both);
    }

    #[rstest]
    #[case(json!({"f:a": {".": {}, "f:b": {}}}), json!({"f:a": {}}), json!({"f:a": {"f:b": {}}}), json!({}))]
    #[case(json!({"f:a": {".": {}, "f:b": {}}}), json!({"f:a": {"f:b": {}}}), json!({"f:a": {}}), json!({"f:a": {}}))]
    #[case(json!({"f:a": {}}), json!({"f:b": {}}), json!({"f:a": {}}), json!({"f:a": {}}))]
    fn differences(#[case] a: Value, #[case] b: Value, #[case] exact: Value, #[case] recursive: Value) {
        assert_eq!(set(a.clone()).difference(&set(b.clone())).encode(), exact);
        assert_eq!(set(a).recursive_difference(&set(b)).encode(), recursive);
    }

    #[rstest]
    #[case(json!({"f:a": {".": {}, "f:b": {}}}), json!({"f:a": {}}), json!({"f:a": {}}))]
    #[case(json!({"f:a": {"f:b": {}}}), json!({"f:a": {}}), json!({}))]
    fn intersection(#[case] a: Value, #[case] b: Value, #[case] shared: Value) {
        assert_eq!(set(a.clone()).intersects(&set(b.clone())), shared != json!({}));
        assert_eq!(set(a).intersection(&set(b)).encode(), shared);
    }

    /// All paths to the same few fields, some of them.
    fn some_paths(random: &mut client_kit::Random) -> BTreeSet<String> {
        let fields = ["a", "b", "c"];
        let mut paths = BTreeSet::new();
        for one in fields {
            for two in ["", "a", "b", "c"] {
                for three in ["", "a"] {
                    if random.below(4) == 0 && (three.is_empty() || !two.is_empty()) {
                        let steps = [one, two, three].into_iter().filter(|step| !step.is_empty());
                        paths.insert(steps.map(|step| format!(".{step}")).collect());
                    }
                }
            }
        }
        paths
    }

    fn of_paths(paths: &BTreeSet<String>) -> FieldSet {
        let mut set = FieldSet::default();
        for path in paths {
            let steps: Vec<PathElement> = path.split('.').skip(1).map(PathElement::field).collect();
            set.insert(&steps);
        }
        set
    }

    #[test]
    fn sets_of_paths_are_sets() {
        let mut random = client_kit::Seed(5).random();
        for _ in 0..2000 {
            let (one, other) = (some_paths(&mut random), some_paths(&mut random));
            let (a, b) = (of_paths(&one), of_paths(&other));
            let paths = |set: &FieldSet| -> BTreeSet<String> { set.paths().into_iter().collect() };
            assert_eq!(paths(&a), one);
            assert_eq!(a.clone().union(b.clone()), of_paths(&(&one | &other)));
            assert_eq!(a.intersection(&b), of_paths(&(&one & &other)));
            assert_eq!(a.intersects(&b), !one.is_disjoint(&other));
            assert_eq!(a.clone().difference(&b), of_paths(&(&one - &other)));
            let below = |path: &String| {
                other
                    .iter()
                    .any(|gone| path == gone || path.starts_with(&format!("{gone}.")))
            };
            let left: BTreeSet<String> = one.iter().filter(|path| !below(path)).cloned().collect();
            assert_eq!(a.clone().recursive_difference(&b), of_paths(&left));
            // What is the whole of one of them is that one.
            assert_eq!(a.clone().union(a.intersection(&b)).address(), a.address());
            assert_eq!(a.clone().difference(&FieldSet::default()).address(), a.address());
        }
    }

    #[rstest]
    #[case(json!({"x": {}}), "key must be 2 characters long: x")]
    #[case(json!({"name": {}}), "missing colon: name")]
    #[case(json!([]), "fieldsV1 is not an object")]
    fn unreadable(#[case] fields: Value, #[case] error: &str) {
        assert_eq!(FieldSet::decode(&fields).unwrap_err(), error);
    }
}
