//! The costs of functions of Kubernetes' libraries.

use kube_cel::cel::common::ast::{CallExpr, IdedExpr};

use super::*;

impl Coster<'_> {
    /// The functions of Kubernetes' libraries.
    pub(super) fn of_library(
        &mut self,
        call: &CallExpr,
        overload: &str,
        target: Option<&IdedExpr>,
    ) -> Option<Call> {
        let args = call.args.as_slice();
        match (call.func_name.as_str(), target, args) {
            ("check", ..) => Some(Call::of(Range::of(350_000))),
            ("_==_", _, [left, right]) => match (self.ty(left), self.ty(right)) {
                (Ty::Named(a), Ty::Named(b)) if a == b && *a != "kubernetes.URL" => {
                    Some(Call::of(Range::of(1)))
                }
                _ => None,
            },
            _ => self
                .of_lists(call, overload, target)
                .or_else(|| self.of_texts(call, target))
                .or_else(|| self.of_parsed(call, overload, target)),
        }
    }

    /// The functions of lists.
    fn of_lists(&mut self, call: &CallExpr, overload: &str, target: Option<&IdedExpr>) -> Option<Call> {
        let args = call.args.as_slice();
        let name = call.func_name.as_str();
        match (name, target, args) {
            ("isSorted" | "sum" | "max" | "min" | "indexOf" | "lastIndexOf", Some(list), _) => {
                let size = self.size_or_unknown(list);
                let Ty::List(items) = self.ty(list).clone() else {
                    return Some(Call::of(size.scaled(TEXT)));
                };
                let mut each = Range::of(1);
                if matches!(*items, Ty::Text | Ty::Bytes) {
                    let item = self.item_of(list).unwrap_or(UNKNOWN);
                    each = each.plus(item.scaled(TEXT));
                }
                Some(Call::of(size.times(each)))
            }
            ("contains" | "intersects" | "equivalent", _, [left, right])
                if overload.starts_with("list_sets_") =>
            {
                let (left, right) = (self.size_or_unknown(left), self.size_or_unknown(right));
                let factor = if name == "equivalent" { 2.0 } else { 1.0 };
                Some(Call::of(left.times(right).scaled(factor).plus(Range::of(1))))
            }
            ("slice", Some(list), [from, to]) => {
                let most = self.size_or_unknown(list).max;
                let (from, to) = (
                    written_number(from).unwrap_or(0),
                    written_number(to).unwrap_or(most),
                );
                Some(made_list(1.0, Range::of(to.saturating_sub(from))))
            }
            ("range", _, [count]) if overload == "lists_range" => Some(made_list(
                1.0,
                Range::of(written_number(count).unwrap_or(u64::MAX)),
            )),
            ("reverse", Some(list), []) => Some(made_list(1.0, self.size_or_unknown(list))),
            ("flatten", Some(list), _) => {
                let depth = args
                    .first()
                    .map_or(1, |depth| written_number(depth).unwrap_or(u64::MAX));
                Some(made_list(depth as f64, self.size_or_unknown(list)))
            }
            ("distinct", Some(list), []) => {
                let size = self.size_or_unknown(list);
                Some(made_list(2.0, size.times(size)))
            }
            ("sort" | "@sortByAssociatedKeys", Some(list), _) => {
                let size = self.size_or_unknown(args.first().unwrap_or(list));
                let texts = overload.contains("_string_") || overload.contains("_bytes_");
                let factor = if texts { 2.0 + TEXT } else { 2.0 };
                Some(made_list(factor, size.times(size)))
            }
            _ => None,
        }
    }

    /// The functions of texts.
    fn of_texts(&mut self, call: &CallExpr, target: Option<&IdedExpr>) -> Option<Call> {
        let args = call.args.as_slice();
        match (call.func_name.as_str(), target, args) {
            ("url", _, [text]) => {
                let size = self.size_or_unknown(text);
                Some(Call::sized(size.scaled(TEXT), size))
            }
            ("lowerAscii" | "upperAscii" | "substring" | "trim", Some(text), _) => {
                let size = self.size_or_unknown(text);
                Some(Call::sized(size.scaled(TEXT), size))
            }
            ("replace", Some(text), [old, new, ..]) => {
                let (size, old, new) = (
                    self.size_or_unknown(text),
                    self.size_or_unknown(old),
                    self.size_or_unknown(new),
                );
                Some(Call::sized(size.scaled(2.0 * TEXT), replaced(size, old, new)))
            }
            ("split", Some(text), _) => {
                let size = self.size_or_unknown(text);
                let parts = match args.get(1).map(|count| &count.expr) {
                    Some(Expr::Literal(LiteralValue::Int(count))) => {
                        u64::try_from(*count.inner()).unwrap_or(u64::MAX)
                    }
                    _ => size.max,
                };
                Some(Call::sized(size.scaled(2.0 * TEXT), Range { min: 0, max: parts }))
            }
            ("join", Some(list), _) => {
                let count = self.size_or_unknown(list);
                let item = self.item_of(list).unwrap_or(UNKNOWN);
                let mut size = count.times(item);
                if let Some(separator) = args.first() {
                    let between = Range {
                        min: count.min.saturating_sub(1),
                        max: count.max.saturating_sub(1),
                    };
                    size = size.plus(self.size_or_unknown(separator).times(between));
                }
                Some(Call::sized(size.scaled(TEXT), size))
            }
            ("find" | "findAll", Some(text), [pattern, ..]) => {
                let size = self.size_or_unknown(text);
                let cost = size.plus(Range::of(1)).scaled(TEXT);
                let cost = cost.times(self.size_or_unknown(pattern).scaled(PATTERN));
                Some(Call::sized(
                    cost,
                    Range {
                        min: 0,
                        max: size.max,
                    },
                ))
            }
            _ => None,
        }
    }

    /// The functions of addresses, quantities, versions and formats, which are read from texts.
    fn of_parsed(&mut self, call: &CallExpr, overload: &str, target: Option<&IdedExpr>) -> Option<Call> {
        let args = call.args.as_slice();
        let name = call.func_name.as_str();
        let one = Some(Call::of(Range::of(1)));
        match (name, target, args) {
            ("ip", ..) if overload == "cidr_ip" => one,
            ("isCanonical", _, [text]) => Some(Call::of(self.size_or_unknown(text).scaled(2.0 * TEXT))),
            (
                "ip" | "cidr" | "isIP" | "isCIDR" | "quantity" | "isQuantity" | "semver" | "isSemver",
                _,
                [text, ..],
            ) => Some(Call::of(self.size_or_unknown(text).scaled(TEXT))),
            ("containsIP" | "containsCIDR", Some(_), [other]) => {
                let address = Range { min: 4, max: 16 };
                let mut cost = address.plus(address).scaled(TEXT);
                if name == "containsCIDR" {
                    cost = cost.plus(address.scaled(TEXT)).plus(Range::of(1));
                }
                if overload.ends_with("_string") {
                    cost = cost.plus(self.size_or_unknown(other).scaled(TEXT));
                }
                Some(Call::of(cost))
            }
            ("validate", Some(_), [text]) => {
                let cost = self.size_or_unknown(text).scaled(TEXT);
                Some(Call::of(cost.scaled(FORMAT_PATTERN_BYTES_MAX * PATTERN)))
            }
            (
                "masked"
                | "prefixLength"
                | "family"
                | "isUnspecified"
                | "isLoopback"
                | "isLinkLocalMulticast"
                | "isLinkLocalUnicast"
                | "isGlobalUnicast"
                | "named"
                | "sign"
                | "asInteger"
                | "isInteger"
                | "asApproximateFloat"
                | "isGreaterThan"
                | "isLessThan"
                | "compareTo"
                | "add"
                | "sub"
                | "major"
                | "minor"
                | "patch"
                | "getScheme"
                | "getHostname"
                | "getHost"
                | "getPort"
                | "getEscapedPath"
                | "getQuery",
                ..,
            ) => one,
            _ => None,
        }
    }
}

/// A call that makes a list.
fn made_list(factor: f64, size: Range) -> Call {
    Call::sized(size.scaled(factor).plus(Range::of(1 + LIST)), size)
}

/// A number that is written out.
fn written_number(expression: &IdedExpr) -> Option<u64> {
    match &expression.expr {
        Expr::Literal(LiteralValue::Int(number)) => Some(*number.inner() as u64),
        _ => None,
    }
}

/// How long a text may be in which parts were replaced.
fn replaced(text: Range, old: Range, new: Range) -> Range {
    let part = |size: u64, old: u64| (size as f64 / old as f64).ceil() as u64;
    let (mut count, mut kept) = (Range::of(0), Range::of(0));
    if old.min == 0 {
        count.max = text.max.saturating_add(1);
        kept.max = text.max;
    } else if new.max <= old.min {
        kept.max = text.max;
    } else {
        count.max = part(text.max, old.min);
    }
    if old.max == 0 {
        count.min = text.min.saturating_add(1);
        kept.min = text.min;
    } else if old.max <= new.min {
        kept.min = text.min;
    } else {
        count.min = part(text.min, old.max);
    }
    count.times(new).plus(kept)
}
