//! Macros that the parser does not know: those over two variables, and those of optional values.

use kube_cel::cel::common::ast::{
    CallExpr, ComprehensionExpr, Expr, IdedExpr, ListExpr, LiteralValue, MapExpr, operators,
};

use super::objects::parts;

/// The variable in which loops collect their result.
const RESULT: &str = "@result";
/// The list that `sortBy` sorts.
const SORTED: &str = "@__sortBy_input__";

/// Replaces macros by their expansions.
pub(super) fn expand(expression: &mut IdedExpr) {
    let mut next = Ids(1 + largest(expression));
    next.expand(expression);
}

fn largest(expression: &mut IdedExpr) -> u64 {
    let own = expression.id;
    parts(&mut expression.expr)
        .into_iter()
        .map(largest)
        .max()
        .map_or(own, |inner| inner.max(own))
}

/// The ids of new nodes.
struct Ids(u64);

fn ident_of(expression: &IdedExpr) -> Option<String> {
    match &expression.expr {
        Expr::Ident(name) => Some(name.clone()),
        _ => None,
    }
}

impl Ids {
    fn node(&mut self, expr: Expr) -> IdedExpr {
        let id = self.0;
        self.0 += 1;
        IdedExpr { id, expr }
    }

    fn ident(&mut self, name: &str) -> IdedExpr {
        self.node(Expr::Ident(name.to_owned()))
    }

    fn flag(&mut self, value: bool) -> IdedExpr {
        self.node(Expr::Literal(LiteralValue::Boolean(value.into())))
    }

    fn number(&mut self, value: i64) -> IdedExpr {
        self.node(Expr::Literal(LiteralValue::Int(value.into())))
    }

    fn call(&mut self, name: &str, args: Vec<IdedExpr>) -> IdedExpr {
        self.node(Expr::Call(CallExpr {
            func_name: name.to_owned(),
            target: None,
            args,
        }))
    }

    fn method(&mut self, target: IdedExpr, name: &str, args: Vec<IdedExpr>) -> IdedExpr {
        self.node(Expr::Call(CallExpr {
            func_name: name.to_owned(),
            target: Some(Box::new(target)),
            args,
        }))
    }

    fn expand(&mut self, expression: &mut IdedExpr) {
        for part in parts(&mut expression.expr) {
            self.expand(part);
        }
        let Expr::Call(call) = &expression.expr else {
            return;
        };
        let Some(target) = call.target.as_deref() else {
            return;
        };
        let made = match (call.func_name.as_str(), call.args.as_slice()) {
            ("optMap" | "optFlatMap", [variable, body]) => {
                self.when_present(target, variable, body, &call.func_name)
            }
            (name @ ("all" | "exists" | "exists_one" | "existsOne"), [first, second, test]) => {
                self.quantified(name, target, first, second, test)
            }
            ("sortBy", [variable, key]) => self.sorted(expression.id, target, variable, key),
            (name @ ("transformList" | "transformMap" | "transformMapEntry"), [first, second, body]) => {
                self.transformed(name, target, (first, second), None, body)
            }
            (
                name @ ("transformList" | "transformMap" | "transformMapEntry"),
                [first, second, test, body],
            ) => self.transformed(name, target, (first, second), Some(test), body),
            _ => None,
        };
        if let Some(made) = made {
            *expression = IdedExpr {
                id: expression.id,
                expr: made,
            };
        }
    }

    fn when_present(
        &mut self,
        target: &IdedExpr,
        variable: &IdedExpr,
        body: &IdedExpr,
        name: &str,
    ) -> Option<Expr> {
        let variable = ident_of(variable)?;
        let test = self.method(target.clone(), "hasValue", Vec::new());
        let value = self.method(target.clone(), "value", Vec::new());
        let loop_step = self.ident(&variable);
        let bound = Expr::Comprehension(Box::new(ComprehensionExpr {
            iter_range: self.node(Expr::List(ListExpr::new(Vec::new()))),
            iter_var: "#unused".to_owned(),
            iter_var2: None,
            accu_var: variable,
            accu_init: value,
            loop_cond: self.flag(false),
            loop_step,
            result: body.clone(),
        }));
        let bound = self.node(bound);
        let optional = self.ident("optional");
        let present = if name == "optMap" {
            self.method(optional.clone(), "of", vec![bound])
        } else {
            bound
        };
        let absent = self.method(optional, "none", Vec::new());
        let args = vec![test, present, absent];
        Some(Expr::Call(CallExpr {
            func_name: operators::CONDITIONAL.to_owned(),
            target: None,
            args,
        }))
    }

    /// The list in the order of the keys that the body computes for its items. An error in a key is an error of the whole call.
    fn sorted(&mut self, id: u64, list: &IdedExpr, variable: &IdedExpr, key: &IdedExpr) -> Option<Expr> {
        let variable = ident_of(variable)?;
        let (input, so_far) = (self.ident(SORTED), self.ident(RESULT));
        let item = self.node(Expr::List(ListExpr::new(vec![key.clone()])));
        let keys = Expr::Comprehension(Box::new(ComprehensionExpr {
            iter_range: input.clone(),
            iter_var: variable,
            iter_var2: None,
            accu_var: RESULT.to_owned(),
            accu_init: self.node(Expr::List(ListExpr::new(Vec::new()))),
            loop_cond: self.flag(true),
            loop_step: self.call("_+_", vec![so_far.clone(), item]),
            result: so_far,
        }));
        let keys = self.node(keys);
        let result = IdedExpr {
            id,
            ..self.method(input.clone(), "@sortByAssociatedKeys", vec![keys])
        };
        Some(Expr::Comprehension(Box::new(ComprehensionExpr {
            iter_range: self.node(Expr::List(ListExpr::new(Vec::new()))),
            iter_var: "#unused".to_owned(),
            iter_var2: None,
            accu_var: SORTED.to_owned(),
            accu_init: list.clone(),
            loop_cond: self.flag(false),
            loop_step: input,
            result,
        })))
    }

    fn quantified(
        &mut self,
        name: &str,
        range: &IdedExpr,
        first: &IdedExpr,
        second: &IdedExpr,
        test: &IdedExpr,
    ) -> Option<Expr> {
        let names = (ident_of(first)?, ident_of(second)?);
        let so_far = self.ident(RESULT);
        let (init, cond, step, result) = match name {
            "all" => {
                let cond = self.call("@not_strictly_false", vec![so_far.clone()]);
                let step = self.call("_&&_", vec![so_far.clone(), test.clone()]);
                (self.flag(true), cond, step, so_far)
            }
            "exists" => {
                let not = self.call("!_", vec![so_far.clone()]);
                let cond = self.call("@not_strictly_false", vec![not]);
                let step = self.call("_||_", vec![so_far.clone(), test.clone()]);
                (self.flag(false), cond, step, so_far)
            }
            _ => {
                let one = self.number(1);
                let more = self.call("_+_", vec![so_far.clone(), one.clone()]);
                let step = self.call("_?_:_", vec![test.clone(), more, so_far.clone()]);
                let result = self.call("_==_", vec![so_far, one]);
                (self.number(0), self.flag(true), step, result)
            }
        };
        Some(looped(range.clone(), names, init, cond, step, result))
    }

    fn transformed(
        &mut self,
        name: &str,
        range: &IdedExpr,
        (first, second): (&IdedExpr, &IdedExpr),
        test: Option<&IdedExpr>,
        body: &IdedExpr,
    ) -> Option<Expr> {
        let names = (ident_of(first)?, ident_of(second)?);
        let so_far = self.ident(RESULT);
        let (init, more) = if name == "transformList" {
            let item = self.node(Expr::List(ListExpr::new(vec![body.clone()])));
            let init = self.node(Expr::List(ListExpr::new(Vec::new())));
            (init, self.call("_+_", vec![so_far.clone(), item]))
        } else {
            let init = self.node(Expr::Map(MapExpr { entries: Vec::new() }));
            let more = if name == "transformMap" {
                let key = self.ident(&names.0);
                self.call("@mapInsert", vec![so_far.clone(), key, body.clone()])
            } else {
                self.call("@merged", vec![so_far.clone(), body.clone()])
            };
            (init, more)
        };
        let step = match test {
            Some(test) => self.call("_?_:_", vec![test.clone(), more, so_far.clone()]),
            None => more,
        };
        let cond = self.flag(true);
        Some(looped(range.clone(), names, init, cond, step, so_far))
    }
}

fn looped(
    iter_range: IdedExpr,
    (first, second): (String, String),
    accu_init: IdedExpr,
    loop_cond: IdedExpr,
    loop_step: IdedExpr,
    result: IdedExpr,
) -> Expr {
    Expr::Comprehension(Box::new(ComprehensionExpr {
        iter_range,
        iter_var: first,
        iter_var2: Some(second),
        accu_var: RESULT.to_owned(),
        accu_init,
        loop_cond,
        loop_step,
        result,
    }))
}

/// Makes loops over one variable, which is all that the interpreter knows, of those over two; whether there were any.
/// The one variable is a list of both, from [`entries`](super::entries).
pub(super) fn to_one_variable(expression: &mut IdedExpr) -> bool {
    let mut found = false;
    for part in parts(&mut expression.expr) {
        found |= to_one_variable(part);
    }
    let id = expression.id;
    let Expr::Comprehension(all) = &mut expression.expr else {
        return found;
    };
    let Some(second) = all.iter_var2.take() else {
        return found;
    };
    let pair = format!("@pair{id}");
    let first = std::mem::replace(&mut all.iter_var, pair.clone());
    for (index, name) in [(0, first), (1, second)] {
        for part in [&mut all.loop_cond, &mut all.loop_step] {
            replace(part, &name, &pair, index);
        }
    }
    let range = std::mem::take(&mut all.iter_range);
    all.iter_range = IdedExpr {
        id: range.id,
        expr: Expr::Call(CallExpr {
            func_name: "@entries".to_owned(),
            target: None,
            args: vec![range],
        }),
    };
    true
}

/// Puts `pair[index]` where a variable stands, unless a loop inside has one of the same name.
fn replace(expression: &mut IdedExpr, name: &str, pair: &str, index: i64) {
    let id = expression.id;
    match &mut expression.expr {
        Expr::Ident(own) if own == name => {
            let node = |expr| IdedExpr { id, expr };
            let args = vec![
                node(Expr::Ident(pair.to_owned())),
                node(Expr::Literal(LiteralValue::Int(index.into()))),
            ];
            expression.expr = Expr::Call(CallExpr {
                func_name: operators::INDEX.to_owned(),
                target: None,
                args,
            });
        }
        Expr::Comprehension(all) if all.iter_var == name || all.accu_var == name => {
            replace(&mut all.iter_range, name, pair, index);
            replace(&mut all.accu_init, name, pair, index);
        }
        other => {
            for part in parts(other) {
                replace(part, name, pair, index);
            }
        }
    }
}
