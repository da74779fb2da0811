//! Ports of containers.

use std::collections::BTreeSet;

use shared_json::Value;

use crate::errors::Errors;
use crate::fields::Fields;
use crate::names;
use crate::path::Path;

/// The protocols there are.
pub const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

/// A port's number.
pub fn number(port: i64, path: &Path<'_>, errors: &mut Errors) {
    errors.in_range(path, port, 1, 65_535);
}

/// A port by number or by name.
pub fn number_or_name(port: Option<&Value>, path: &Path<'_>, errors: &mut Errors) {
    match port {
        Some(Value::String(name)) => errors.problems(path, name, names::port_name_problems(name)),
        port => number(port.and_then(Value::as_i64).unwrap_or_default(), path, errors),
    }
}

pub(super) fn check(ports: &[Value], path: &Path<'_>, errors: &mut Errors) {
    let mut known = BTreeSet::new();
    for (index, port) in ports.iter().enumerate() {
        let at = path.index(index);
        let name = port.text("name");
        if !name.is_empty() {
            let problems = names::port_name_problems(name);
            if !problems.is_empty() {
                errors.problems(&at.field("name"), name, problems);
            } else if !known.insert(name) {
                errors.duplicate(&at.field("name"), name);
            }
        }
        match port.int("containerPort").unwrap_or_default() {
            0 => errors.required(&at.field("containerPort"), ""),
            port => number(port, &at.field("containerPort"), errors),
        }
        match port.int("hostPort").unwrap_or_default() {
            0 => {}
            port => number(port, &at.field("hostPort"), errors),
        }
        errors.one_of(&at.field("protocol"), port.text("protocol"), &PROTOCOLS);
    }
}

/// No two containers take the same port of the host.
pub(super) fn conflicts<'a>(
    containers: impl Iterator<Item = (usize, &'a Value)>,
    path: &Path<'_>,
    errors: &mut Errors,
) {
    let mut taken: BTreeSet<String> = BTreeSet::new();
    for (index, container) in containers {
        let at = path.index(index);
        let at = at.field("ports");
        for (index, port) in container.list("ports").iter().enumerate() {
            let number = port.int("hostPort").unwrap_or_default();
            if number == 0 {
                continue;
            }
            let key = format!("{}/{}/{number}", port.text("protocol"), port.text("hostIP"));
            if taken.contains(&key) {
                errors.duplicate(&at.index(index).field("hostPort"), key);
            } else {
                taken.insert(key);
            }
        }
    }
}
