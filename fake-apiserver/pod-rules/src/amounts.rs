//! Amounts of resources, and the names of resources.

use shared_json::{Map, Value};

use super::errors::{Errors, NEGATIVE};
use super::path::Path;
use crate::names;
use crate::quantity::Quantity;

/// An amount as complaints show it.
pub fn shown(value: &Value) -> Value {
    Value::from(Quantity::of(value).canonical())
}

/// An amount that must not be negative.
pub fn not_negative(path: &Path<'_>, value: &Value, errors: &mut Errors) {
    if Quantity::of(value).nanos() < 0 {
        errors.invalid(path, shown(value), NEGATIVE);
    }
}

/// An amount that must be more than nothing. Gives whether it is.
pub fn positive(path: &Path<'_>, value: &Value, errors: &mut Errors) -> bool {
    let fits = Quantity::of(value).nanos() > 0;
    if !fits {
        errors.invalid(path, shown(value), "must be greater than zero");
    }
    fits
}

/// An amount of a resource: not negative, and whole where the resource comes in pieces.
pub fn of_resource(resource: &str, path: &Path<'_>, value: &Value, errors: &mut Errors) {
    not_negative(path, value, errors);
    if comes_in_pieces(resource) && !Quantity::of(value).is_whole() {
        errors.invalid(path, shown(value), "must be an integer");
    }
}

/// Amounts of a status: they are whole numbers if shown.
pub fn basic(path: &Path<'_>, value: &Value, errors: &mut Errors) {
    let units = Quantity::of(value).units();
    if units < 0 {
        let units = i64::try_from(units).unwrap_or(i64::MIN);
        errors.invalid(path, units, "must be a valid resource quantity");
    }
}

const HUGE_PAGES: &str = "hugepages-";
const QUOTA_HUGE_PAGES: &str = "requests.hugepages-";

/// Resources that a container may ask for, besides huge pages and resources with a domain.
const OF_CONTAINERS: [&str; 3] = ["cpu", "memory", "ephemeral-storage"];

/// Resources that a quota may limit, besides huge pages, counts and resources with a domain.
const OF_QUOTAS: [&str; 21] = [
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.storage",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
    "storage",
    "attachable-volumes",
];

const IN_PIECES: [&str; 9] = [
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];

/// Whether a resource is pages of a size: `hugepages-2Mi`.
pub fn is_huge_page(resource: &str) -> bool {
    resource.starts_with(HUGE_PAGES)
}

fn is_quota_huge_page(resource: &str) -> bool {
    is_huge_page(resource) || resource.starts_with(QUOTA_HUGE_PAGES)
}

/// Whether a resource is Kubernetes' own.
pub fn is_native(resource: &str) -> bool {
    !resource.contains('/') || resource.contains("kubernetes.io/")
}

/// Whether a resource is extended: devices and the like.
pub fn is_extended(resource: &str) -> bool {
    !is_native(resource)
        && !resource.starts_with("requests.")
        && names::qualified_problems(&format!("requests.{resource}")).is_empty()
}

/// Whether more may be promised than there is.
pub fn may_be_overcommitted(resource: &str) -> bool {
    is_native(resource) && !is_huge_page(resource)
}

fn comes_in_pieces(resource: &str) -> bool {
    IN_PIECES.contains(&resource) || is_extended(resource)
}

/// Whether a resource without a domain may stand in a quota.
pub fn is_of_quotas(resource: &str) -> bool {
    (OF_QUOTAS.contains(&resource) && !matches!(resource, "storage" | "attachable-volumes"))
        || is_quota_huge_page(resource)
}

/// The name of any resource.
pub fn resource_name(name: &str, path: &Path<'_>, errors: &mut Errors) {
    let problems = names::qualified_problems(name);
    if !problems.is_empty() {
        errors.problems(path, name, problems);
        return;
    }
    let known = name.contains('/')
        || (OF_QUOTAS.contains(&name) && name != "attachable-volumes")
        || is_quota_huge_page(name);
    if !known {
        errors.invalid(path, name, "must be a standard resource type or fully qualified");
    }
}

/// The name of a resource that a container asks for.
pub fn container_resource_name(name: &str, path: &Path<'_>, errors: &mut Errors) {
    resource_name(name, path, errors);
    if !name.contains('/') {
        if !OF_CONTAINERS.contains(&name) && !is_huge_page(name) {
            errors.invalid(path, name, "must be a standard resource for containers");
        }
    } else if !is_native(name) && !is_extended(name) {
        errors.invalid(path, name, "doesn't follow extended resource name standard");
    }
}

/// The name of a resource in a quota.
pub fn quota_resource_name(name: &str, path: &Path<'_>, errors: &mut Errors) {
    resource_name(name, path, errors);
    if !name.contains('/') && !is_of_quotas(name) {
        errors.invalid(path, name, "must be a standard resource for quota");
    }
}

/// Amounts of a quota's spec or status.
pub fn quota_amounts(amounts: &Map, path: &Path<'_>, errors: &mut Errors) {
    for (name, amount) in amounts {
        let at = path.key(name);
        quota_resource_name(name, &at, errors);
        of_resource(name, &at, amount, errors);
    }
}

/// An amount of huge pages must be a multiple of their size.
fn huge_pages(name: &str, amount: &Value, path: &Path<'_>, errors: &mut Errors) {
    let page = name.strip_prefix(HUGE_PAGES).and_then(Quantity::parse);
    let divisible = page.is_some_and(|page| {
        page.nanos() > 0 && page.is_whole() && Quantity::of(amount).units() % page.units() == 0
    });
    if !divisible {
        let text = Quantity::of(amount).canonical();
        let detail = format!("{text} is not positive integer multiple of {name}");
        errors.invalid(path, text, detail);
    }
}

/// How the name of a resource is judged.
pub type NameRule = fn(&str, &Path<'_>, &mut Errors);

/// The `requests` and `limits` of a container or a pod.
pub fn requirements(requests: &Map, limits: &Map, name_rule: NameRule, path: &Path<'_>, errors: &mut Errors) {
    let (limits_path, requests_path) = (path.field("limits"), path.field("requests"));
    let (mut compute, mut pages) = (false, false);
    for (name, amount) in limits {
        let at = limits_path.key(name);
        name_rule(name, &at, errors);
        of_resource(name, &at, amount, errors);
        if is_huge_page(name) {
            pages = true;
            huge_pages(name, amount, &at, errors);
        }
        compute |= matches!(name.as_str(), "cpu" | "memory");
    }
    for (name, amount) in requests {
        let at = requests_path.key(name);
        name_rule(name, &at, errors);
        of_resource(name, &at, amount, errors);
        match limits.get(name) {
            Some(limit) => {
                let (asked, most) = (Quantity::of(amount), Quantity::of(limit));
                if !may_be_overcommitted(name) && asked.nanos() != most.nanos() {
                    let detail = format!("must be equal to {name} limit of {}", most.canonical());
                    errors.invalid(&requests_path, asked.canonical(), detail);
                } else if asked.nanos() > most.nanos() {
                    let detail = format!(
                        "must be less than or equal to {name} limit of {}",
                        most.canonical()
                    );
                    errors.invalid(&requests_path, asked.canonical(), detail);
                }
            }
            None if !may_be_overcommitted(name) => {
                errors.required(&limits_path, "Limit must be set for non overcommitable resources");
            }
            None => {}
        }
        if is_huge_page(name) {
            pages = true;
            huge_pages(name, amount, &at, errors);
        }
        compute |= matches!(name.as_str(), "cpu" | "memory");
    }
    if pages && !compute {
        errors.forbidden(path, "HugePages require cpu or memory");
    }
}
