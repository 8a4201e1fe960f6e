//! Finds forbids that a request can evade by omitting a field.
//!
//! `forbid … when { context has amount && … }` does not match a request without an amount. If the
//! forbid has the allowed condition in `unless` instead, it matches such a request. The check
//! depends on a statement's meaning, not its form. It evaluates the condition with and without the
//! field, everything else being equal. If the condition can be false without the field and true
//! with it, omitting the field evades the forbid. Reading an absent field fails, and a failure
//! denies.

use cedar_policy_core::ast::{BinaryOp, Expr, ExprKind, Literal, UnaryOp, Var};

use super::{
    fault::{Fault, Severity},
    place::{FieldPath, Test, is_resource_type},
    uses::{self, Span},
};
use crate::request::amount::Amount;

/// The maximum number of fields of a statement to examine, which bounds the check.
const MOST: usize = 32;

/// A possible result of a boolean expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Truth {
    False,
    True,
    Fails,
}

const EACH: [Truth; 3] = [Truth::False, Truth::True, Truth::Fails];

impl From<bool> for Truth {
    fn from(value: bool) -> Self {
        if value { Self::True } else { Self::False }
    }
}

/// The possible pairs of results without and with the field, one bit each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Pairs(u16);

impl Pairs {
    const NONE: Self = Self(0);

    fn one(without: Truth, with: Truth) -> Self {
        Self(1 << (without as u16 * 3 + with as u16))
    }

    /// Returns all pairs of a result without the field and a result with it.
    fn product(without: &[Truth], with: &[Truth]) -> Self {
        let all = without.iter().flat_map(|one| with.iter().map(|other| Self::one(*one, *other)));
        all.fold(Self::NONE, Self::or)
    }

    /// Returns the pairs true/true and false/false, for a result that does not depend on the field.
    fn same() -> Self {
        Self::one(Truth::True, Truth::True).or(Self::one(Truth::False, Truth::False))
    }

    fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    fn has(self, without: Truth, with: Truth) -> bool {
        self.0 & Self::one(without, with).0 != 0
    }

    fn iter(self) -> impl Iterator<Item = (Truth, Truth)> {
        let all = EACH.into_iter().flat_map(|one| EACH.into_iter().map(move |other| (one, other)));
        all.filter(move |(one, other)| self.has(*one, *other))
    }

    fn map(self, change: impl Fn(Truth) -> Truth) -> Self {
        self.iter()
            .fold(Self::NONE, |all, (one, other)| all.or(Self::one(change(one), change(other))))
    }

    fn combine(self, other: Self, change: impl Fn(Truth, Truth) -> Truth) -> Self {
        let each = self.iter().flat_map(|left| other.iter().map(move |right| (left, right)));
        each.fold(Self::NONE, |all, (left, right)| {
            all.or(Self::one(change(left.0, right.0), change(left.1, right.1)))
        })
    }

    /// Returns the possible results with the field, or without it.
    fn side(self, with: bool) -> Vec<Truth> {
        let is =
            |truth: &Truth| self.iter().any(|pair| *truth == if with { pair.1 } else { pair.0 });
        EACH.into_iter().filter(is).collect()
    }
}

/// A possible value, as far as it can be determined.
#[derive(Clone, PartialEq, Eq)]
enum Value {
    Fails,
    Known(Literal),
    /// A decimal.
    Amount(Amount),
    Unknown,
}

/// Warns about each field that a request may omit to evade the forbid.
///
/// `is_given` returns whether requests always have a field.
pub(super) fn escapes(condition: &Expr, is_given: impl Fn(&FieldPath) -> bool) -> Vec<Fault> {
    let mut told: Vec<FieldPath> = Vec::new();
    let mut found = Vec::new();
    for (place, span) in members(condition) {
        if told.iter().any(|outer| outer.is_within_or(&place)) || is_given(&place) {
            continue;
        }
        let pairs = Without(&place).truth(condition);
        if pairs.has(Truth::False, Truth::True) {
            found.push(fault(&place, span));
            told.push(place);
        }
    }
    found
}

/// Returns the fields that the condition tests by `has`, or by `is` on the resource, in order.
fn members(condition: &Expr) -> Vec<(FieldPath, Span)> {
    let mut found: Vec<(FieldPath, Span)> = Vec::new();
    for expression in condition.subexpressions() {
        let span = uses::span(expression);
        for place in FieldPath::tested(expression) {
            if found.len() < MOST && found.iter().all(|(known, _)| *known != place) {
                found.push((place, span));
            }
        }
    }
    found.sort_by_key(|(place, span)| (span.0, place.depth()));
    found
}

fn fault(place: &FieldPath, span: Span) -> Fault {
    let (has, requires) = (place.test(), place.required_as());
    let closes = requires.map_or_else(String::new, |member| {
        format!(", or make `{member}` required for each tool that performs the action")
    });
    Fault {
        span,
        severity: Severity::Warning,
        problem: format!(
            "a request without {place} escapes this forbid, which does not match if the member is absent"
        ),
        suggestion: Some(format!("write the allowed case: `unless {{ {has} && … }}`{closes}")),
    }
}

/// Evaluates an expression without this field and with it.
struct Without<'a>(&'a FieldPath);

impl Without<'_> {
    fn truth(&self, expression: &Expr) -> Pairs {
        use Truth::{False, True};
        match expression.expr_kind() {
            ExprKind::Lit(Literal::Bool(value)) => Pairs::one((*value).into(), (*value).into()),
            ExprKind::And { left, right } => {
                let and = |left, right| if left == True { right } else { left };
                self.truth(left).combine(self.truth(right), and)
            }
            ExprKind::Or { left, right } => {
                let or = |left, right| if left == False { right } else { left };
                self.truth(left).combine(self.truth(right), or)
            }
            ExprKind::If { test_expr, then_expr, else_expr } => {
                let (test, then, other) =
                    (self.truth(test_expr), self.truth(then_expr), self.truth(else_expr));
                // The test may have a different result without the field than with it. Both
                // branches are therefore evaluated, and each result chooses its branch.
                let chosen = |test: Truth, then: Truth, other: Truth| match test {
                    True => then,
                    False => other,
                    Truth::Fails => Truth::Fails,
                };
                let mut all = Pairs::NONE;
                for (test, then) in test.iter().flat_map(|t| then.iter().map(move |n| (t, n))) {
                    for other in other.iter() {
                        all = all.or(Pairs::one(
                            chosen(test.0, then.0, other.0),
                            chosen(test.1, then.1, other.1),
                        ));
                    }
                }
                all
            }
            ExprKind::UnaryApp { op: UnaryOp::Not, arg } => {
                self.truth(arg).map(|truth| match truth {
                    False => True,
                    True => False,
                    Truth::Fails => Truth::Fails,
                })
            }
            _ => self.leaf(expression),
        }
    }

    /// Evaluates an expression without logical connectives.
    fn leaf(&self, expression: &Expr) -> Pairs {
        if let Some(test) = Test::of(expression) {
            return self.tested(&test);
        }
        if let Some(is_resource) = is_resource_type(expression) {
            return match self.0.as_resource() {
                Some(true) => Pairs::one((!is_resource).into(), is_resource.into()),
                Some(false) => Pairs::one(is_resource.into(), is_resource.into()),
                None => Pairs::same(),
            };
        }
        if !self.is_mentioned(expression) {
            return Pairs::same();
        }
        Pairs::product(&self.outcomes(expression, false), &self.outcomes(expression, true))
    }

    fn tested(&self, test: &Test) -> Pairs {
        use Truth::{Fails, False, True};
        if !test.of.is_root() && self.0.is_within_or(&test.of) {
            return Pairs::product(&[Fails], &[False, True]);
        }
        let asked = test.whole();
        if self.0.is_within_or(&asked) {
            let is_sure = *self.0 == asked || (self.0.is_root() && asked.is_always());
            let with: &[Truth] = if is_sure { &[True] } else { &[False, True] };
            return Pairs::product(&[False], with);
        }
        let is_given =
            asked.is_always() && !(asked.as_resource().is_some() && self.0.as_resource().is_none());
        if is_given || asked.is_within_or(self.0) { Pairs::one(True, True) } else { Pairs::same() }
    }

    /// Whether the expression reads the field, or tests its presence.
    fn is_mentioned(&self, expression: &Expr) -> bool {
        expression.subexpressions().any(|one| {
            let read = FieldPath::read(one).is_some_and(|place| self.0.is_within_or(&place));
            let asked = || Test::of(one).is_some_and(|test| self.0.is_within_or(&test.whole()));
            let is_root = matches!(one.expr_kind(), ExprKind::Var(Var::Resource));
            read || asked() || (is_root && self.0.as_resource() == Some(true))
        })
    }

    /// Returns the possible results of a boolean expression with the field, or without it.
    fn outcomes(&self, expression: &Expr, with: bool) -> Vec<Truth> {
        let either = vec![Truth::False, Truth::True];
        match expression.expr_kind() {
            ExprKind::BinaryApp { op, arg1, arg2 } => {
                if !with && is_named_resource(*op, arg1, arg2) && self.0.as_resource() == Some(true)
                {
                    return vec![Truth::False];
                }
                match (op, self.value(arg1, with), self.value(arg2, with)) {
                    (_, Value::Fails, _) | (_, _, Value::Fails) => vec![Truth::Fails],
                    (BinaryOp::Eq, Value::Known(one), Value::Known(other)) => {
                        vec![(one == other).into()]
                    }
                    (op, Value::Known(Literal::Long(one)), Value::Known(Literal::Long(other))) => {
                        match op {
                            BinaryOp::Less => vec![(one < other).into()],
                            BinaryOp::LessEq => vec![(one <= other).into()],
                            _ => either,
                        }
                    }
                    (BinaryOp::Contains, _, Value::Known(item)) => {
                        self.contains(arg1, &item, with).map_or(either, |is| vec![is.into()])
                    }
                    _ => either,
                }
            }
            ExprKind::ExtensionFunctionApp { fn_name, args } => {
                let each: Vec<_> = args.iter().map(|arg| self.value(arg, with)).collect();
                match each.as_slice() {
                    [Value::Amount(one), Value::Amount(other)] => {
                        let is = match fn_name.to_string().as_str() {
                            "lessThan" => one < other,
                            "lessThanOrEqual" => one <= other,
                            "greaterThan" => one > other,
                            "greaterThanOrEqual" => one >= other,
                            _ => return either,
                        };
                        vec![is.into()]
                    }
                    each if each.contains(&Value::Fails) => vec![Truth::Fails],
                    _ => either,
                }
            }
            _ => match self.value(expression, with) {
                Value::Fails => vec![Truth::Fails],
                Value::Known(Literal::Bool(value)) => vec![value.into()],
                _ => either,
            },
        }
    }

    /// Whether a set contains the item, if all of the set's items are known.
    fn contains(&self, set: &Expr, item: &Literal, with: bool) -> Option<bool> {
        let ExprKind::Set(items) = set.expr_kind() else { return None };
        let known = items.iter().map(|one| match self.value(one, with) {
            Value::Known(known) => Some(known),
            _ => None,
        });
        known.collect::<Option<Vec<_>>>().map(|known| known.contains(item))
    }

    fn value(&self, expression: &Expr, with: bool) -> Value {
        if let Some(place) = FieldPath::read(expression) {
            let is_absent = !with && self.0.is_within_or(&place);
            return if is_absent { Value::Fails } else { Value::Unknown };
        }
        match expression.expr_kind() {
            ExprKind::Lit(literal) => Value::Known(literal.clone()),
            ExprKind::If { test_expr, then_expr, else_expr } => {
                match self.truth(test_expr).side(with).as_slice() {
                    [Truth::True] => self.value(then_expr, with),
                    [Truth::False] => self.value(else_expr, with),
                    [Truth::Fails] => Value::Fails,
                    _ => {
                        let (then, other) =
                            (self.value(then_expr, with), self.value(else_expr, with));
                        if then == other { then } else { Value::Unknown }
                    }
                }
            }
            ExprKind::BinaryApp { arg1, arg2, .. } => self.built_of([&**arg1, &**arg2], with),
            ExprKind::UnaryApp { arg, .. } => self.built_of([&**arg], with),
            ExprKind::GetAttr { expr, .. }
            | ExprKind::Like { expr, .. }
            | ExprKind::Is { expr, .. } => self.built_of([&**expr], with),
            ExprKind::ExtensionFunctionApp { fn_name, args } => match args.as_slice() {
                [only] if fn_name.to_string() == "decimal" => match self.value(only, with) {
                    Value::Known(Literal::String(text)) => {
                        text.parse().map_or(Value::Unknown, Value::Amount)
                    }
                    Value::Fails => Value::Fails,
                    _ => Value::Unknown,
                },
                args => self.built_of(args, with),
            },
            ExprKind::Set(items) => self.built_of(items.iter(), with),
            ExprKind::Record(members) => self.built_of(members.values(), with),
            _ => Value::Unknown,
        }
    }

    /// Evaluates a composite value, which fails if any part fails.
    fn built_of<'e>(&self, parts: impl IntoIterator<Item = &'e Expr>, with: bool) -> Value {
        let fails = parts.into_iter().any(|part| self.value(part, with) == Value::Fails);
        if fails { Value::Fails } else { Value::Unknown }
    }
}

/// Whether the expression compares `resource` with a named resource. If the request has no
/// resource, `resource` is the tenant.
fn is_named_resource(op: BinaryOp, one: &Expr, other: &Expr) -> bool {
    let is_it = matches!(one.expr_kind(), ExprKind::Var(Var::Resource));
    let ExprKind::Lit(Literal::EntityUID(named)) = other.expr_kind() else { return false };
    let named = named.entity_type().to_string() == "Svc::Resource";
    is_it && named && matches!(op, BinaryOp::Eq | BinaryOp::In)
}
