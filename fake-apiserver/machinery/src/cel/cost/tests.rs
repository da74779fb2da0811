//! Costs as the real estimator gives them, a row each.

use rstest::rstest;
use shared_json::{Value, json};

use super::*;
use crate::cel::Expression;
use crate::cel::types::{check, of};

fn kind(name: &str) -> Value {
    match name {
        "byte" | "date" | "date-time" | "duration" => json!({"type": "string", "format": name}),
        name => json!({"type": name}),
    }
}

fn list(items: Value) -> Value {
    json!({"type": "array", "items": items})
}

fn estimated(fields: Value, rule: &str) -> u64 {
    let schema = Schema::from_openapi_v3_unchecked(&json!({"type": "object", "properties": fields}));
    let read = Expression::read(rule).expect("an expression");
    let this = of(&schema).expect("a type");
    let checked = check(&read.tree, vec![("self".to_owned(), this)]);
    assert_eq!(checked.wrong, Vec::new());
    most(&read.tree, &checked, &schema)
}

// The costs are those that the real server's own tests hold stable.
#[rstest]
#[case("string", "self.v.startsWith('Rook')", 3)]
#[case("string", "self.v.matches('^[^0-9]*$')", 943_721)]
#[case("string", "size(self.v) == 12", 4)]
#[case("string", "type(self.v) == string", 4)]
#[case("string", "self.v.charAt(3) == 'k'", 4)]
#[case("string", "self.v.indexOf('o') == 1", 314_576)]
#[case("string", "self.v.replace(' ', 'x') == 'Rookxtakesx'", 629_150)]
#[case("string", "self.v.split(' ') == ['Rook', 'takes', 'x']", 629_159)]
#[case("string", "self.v.substring(4, 10).trim() == 'takes'", 629_149)]
#[case("string", "self.v.lowerAscii() == self.v.lowerAscii()", 943_723)]
#[case("byte", "self.v == b'AB'", 3)]
#[case("duration", "self.v == duration('1h2m') + duration('3s4ms')", 6)]
#[case("duration", "type(self.v) == google.protobuf.Duration", 4)]
#[case("date", "self.v.getDate() == 16", 4)]
#[case("date-time", "self.v.getDate('01:00') == 18", 4)]
#[case("number", "self.v == 1.0", 2)]
fn of_scalars(#[case] of: &str, #[case] rule: &str, #[case] cost: u64) {
    assert_eq!(estimated(json!({"v": kind(of)}), rule), cost);
}

#[rstest]
#[case("integer", "1 in self.v", 1_572_865)]
#[case("integer", "self.w[0] in self.v", 1_572_868)]
#[case("integer", "self.v + self.w == [1, 2, 3, 1, 2, 3]", 16)]
#[case("integer", "self.v + [4, 5] == [1, 2, 3, 4, 5]", 24)]
#[case("integer", "has(self.v) && has(self.w)", 2)]
#[case("integer", "self.v.all(k, size(self.v) > 0)", 11_010_044)]
#[case("integer", "self.v.exists_one(k, self.v == [2])", 23_592_949)]
#[case("integer", "size(self.v.filter(k, size(self.v) > 1)) == 1", 26_738_686)]
#[case("integer", "self.v.all(e, e > 0)", 7_864_318)]
#[case("integer", "self.v.exists(e, e > 2)", 9_437_181)]
#[case("integer", "size(self.v.filter(e, e%2 == 0)) == 3", 25_165_823)]
#[case(
    "integer",
    "self.v.map(e, e * 20).filter(e, e > 50).exists(e, e == 60)",
    53_477_367
)]
#[case("string", "'a' in self.v", 1_048_577)]
#[case("string", "self.v == self.w", 104_862)]
#[case("string", "!self.v.exists_one(k, size(self.v) > 0)", 6_291_455)]
fn of_lists(#[case] of: &str, #[case] rule: &str, #[case] cost: u64) {
    assert_eq!(
        estimated(json!({"v": list(kind(of)), "w": list(kind(of))}), rule),
        cost
    );
}

#[rstest]
#[case("string", "self.v == self.w", 39_326)]
#[case("string", "self.v == {'k1': 'a', 'k2': 'b'}", 33)]
#[case("string", "self.v.all(k, size(self.v) > 0)", 2_752_508)]
#[case("string", "size(self.v.filter(k, size(self.v) > 1)) == 1", 6_684_670)]
#[case("integer", "self.v.all(k, self.v[k] > 0)", 3_595_115)]
#[case("integer", "self.v.exists_one(k, self.v[k] == 2)", 2_696_338)]
#[case("integer", "has(self.v.b)", 2)]
fn of_maps(#[case] of: &str, #[case] rule: &str, #[case] cost: u64) {
    let map = json!({"type": "object", "additionalProperties": kind(of)});
    assert_eq!(estimated(json!({"v": map, "w": map}), rule), cost);
}

#[rstest]
#[case("has(self.v[0].k)", 3)]
#[case("self.v.all(m, m.k.startsWith('a'))", 6_291_453)]
#[case("self.v.exists_one(m, m.k == 'a3')", 5_242_879)]
#[case("size(self.v.filter(m, m.k == 'a1')) == 1", 16_777_215)]
#[case("self.v.map(m, m.k).exists(v, v == 'b1')", 19_922_939)]
#[case("self.v.map(m, has(m.w) && m.w == 'z', m.w).size() == 1", 18_874_365)]
#[case("self.v[0] == self.v[1]", 6)]
fn of_lists_of_objects(#[case] rule: &str, #[case] cost: u64) {
    let object = json!({"type": "object", "properties": {"k": {"type": "string"}, "w": {"type": "string"}}});
    assert_eq!(estimated(json!({"v": list(object)}), rule), cost);
}

#[rstest]
#[case("int(self.n) == self.i", 5)]
#[case("bytes(self.s) == self.b", 629_150)]
#[case("string(self.i) == self.s", 314_578)]
#[case("string(self.b) == self.s", 629_150)]
#[case("timestamp(self.s) == self.t", 6)]
#[case("self.e == 'Pending'", 3)]
#[case("self.e in ['Pending', 'Available']", 14)]
#[case("self.is == '25%' || self.is == 1", 6)]
#[case("type(self.is) == int ? self.is == 1 : self.is == '25%'", 7)]
#[case("type(self.is) == string && self.is.matches(r'(\\d+(\\.\\d+)?%)')", 1_258_298)]
fn of_conversions(#[case] rule: &str, #[case] cost: u64) {
    let fields = json!({
        "i": kind("integer"), "n": kind("number"), "s": kind("string"), "b": kind("byte"), "t": kind("date-time"),
        "e": {"type": "string", "enum": ["Pending", "Available", "Bound", "Released", "Failed"]},
        "is": {"x-kubernetes-int-or-string": true},
    });
    assert_eq!(estimated(fields, rule), cost);
}
