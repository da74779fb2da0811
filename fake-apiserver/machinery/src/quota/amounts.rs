//! Amounts of resources: the requests and limits of containers and pods.

use std::collections::BTreeMap;

use shared_json::Value;

use crate::meta::at;
use crate::types::Quantity;

/// Amounts by the name of the resource.
pub type Amounts = BTreeMap<String, Quantity>;

/// The amounts in an object.
pub fn read(amounts: Option<&Value>) -> Amounts {
    let map = amounts.and_then(Value::as_object);
    map.into_iter()
        .flatten()
        .map(|(name, value)| (name.to_string(), Quantity::of(value)))
        .collect()
}

/// Adds amounts to a sum.
pub fn add(to: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        let sum = match to.get(name) {
            Some(present) => present.plus(*amount),
            None => *amount,
        };
        to.insert(name.clone(), sum);
    }
}

fn raise(to: &mut Amounts, least: &Amounts) {
    for (name, amount) in least {
        if to
            .get(name)
            .is_none_or(|present| amount.nanos() > present.nanos())
        {
            to.insert(name.clone(), *amount);
        }
    }
}

/// The entries of one of a pod's lists of containers.
pub fn containers<'a>(pod: &'a Value, list: &str) -> impl Iterator<Item = &'a Value> {
    let list = at(pod, "spec")
        .and_then(|spec| spec.get(list))
        .and_then(Value::as_array);
    list.into_iter().flatten()
}

/// The sum of a pod's `requests` or `limits`. Init containers run one after the other, sidecars stay.
pub fn of_pod(pod: &Value, which: &str) -> Amounts {
    let asked =
        |container: &Value| read(at(container, "resources").and_then(|resources| resources.get(which)));
    let mut all = Amounts::new();
    for container in containers(pod, "containers") {
        add(&mut all, &asked(container));
    }
    let (mut sidecars, mut starting) = (Amounts::new(), Amounts::new());
    for container in containers(pod, "initContainers") {
        let mut now = asked(container);
        if container.get("restartPolicy").and_then(Value::as_str) == Some("Always") {
            add(&mut all, &now);
            add(&mut sidecars, &now);
            now = sidecars.clone();
        } else {
            add(&mut now, &sidecars);
        }
        raise(&mut starting, &now);
    }
    raise(&mut all, &starting);
    let whole = at(pod, "spec.resources").and_then(|resources| resources.get(which));
    for (name, amount) in read(whole) {
        if matches!(name.as_str(), "cpu" | "memory") {
            all.insert(name, amount);
        }
    }
    all
}
