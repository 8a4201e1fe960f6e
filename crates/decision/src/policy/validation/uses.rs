//! Determines how a text uses the fields of `context.input`, and the types that the uses imply.
//!
//! Undeclared fields get the implied types. The rest of the text can then be checked.

use std::collections::BTreeMap;

use cedar_policy_core::ast::{BinaryOp, Expr, ExprKind, Literal, UnaryOp, Var};

use super::members::{InputType, Member, Members};

/// A range of the text: its first byte and its length.
pub(super) type Span = (usize, usize);

/// One field of `context.input`, by its path.
#[derive(Debug, Default)]
pub(super) struct Use {
    /// Each type that the field is used as, with the first such use.
    pub(super) types: Vec<(InputType, Span)>,
    /// All positions where it is read.
    pub(super) reads: Vec<Span>,
}

pub(super) type Path = Vec<String>;

#[derive(Debug, Default)]
pub(super) struct Uses(pub(super) BTreeMap<Path, Use>);

impl Uses {
    pub(super) fn of<'a>(conditions: impl Iterator<Item = &'a Expr>) -> Self {
        let mut uses = Self::default();
        conditions.for_each(|condition| uses.visit(condition, Some(&InputType::Boolean)));
        uses
    }

    /// Returns the number of ways to type all fields: the highest number of types of a single
    /// field.
    pub(super) fn ways(&self) -> usize {
        self.0.values().map(|one| one.types.len()).max().unwrap_or(1).clamp(1, 4)
    }

    /// Returns the fields typed by their use, in one way. All of them are optional.
    pub(super) fn members(&self, way: usize) -> Members {
        let mut members = Members::new();
        for (path, one) in &self.0 {
            let kind = one.types.get(way).or_else(|| one.types.last()).map(|(kind, _)| kind);
            place(&mut members, path, kind.cloned().unwrap_or(InputType::String));
        }
        members
    }

    fn visit(&mut self, expression: &Expr, wanted: Option<&InputType>) {
        if let Some(path) = path(expression) {
            self.read(path, wanted, span(expression));
            // The outer fields in the path are also read.
            let mut outer = expression;
            while let ExprKind::GetAttr { expr, .. } = outer.expr_kind()
                && let Some(path) = self::path(expr)
            {
                self.read(path, None, span(expr));
                outer = expr;
            }
            return;
        }
        let boolean = Some(&InputType::Boolean);
        match expression.expr_kind() {
            ExprKind::And { left, right } | ExprKind::Or { left, right } => {
                self.visit(left, boolean);
                self.visit(right, boolean);
            }
            ExprKind::If { test_expr, then_expr, else_expr } => {
                self.visit(test_expr, boolean);
                let other = self.type_of(then_expr).or_else(|| self.type_of(else_expr));
                let wanted = wanted.cloned().or(other);
                self.visit(then_expr, wanted.as_ref());
                self.visit(else_expr, wanted.as_ref());
            }
            ExprKind::UnaryApp { op, arg } => match op {
                UnaryOp::Not => self.visit(arg, boolean),
                UnaryOp::Neg => self.visit(arg, Some(&InputType::Integer)),
                UnaryOp::IsEmpty => self.visit(arg, Some(&set(InputType::String))),
            },
            ExprKind::BinaryApp { op, arg1, arg2 } => self.binary(*op, arg1, arg2),
            ExprKind::ExtensionFunctionApp { fn_name, args } => {
                let name = fn_name.to_string();
                let of_decimals = name.starts_with("lessThan") || name.starts_with("greaterThan");
                let kind = if of_decimals { InputType::Decimal } else { InputType::String };
                args.iter().for_each(|arg| self.visit(arg, Some(&kind)));
            }
            ExprKind::Like { expr, .. } => self.visit(expr, Some(&InputType::String)),
            ExprKind::HasAttr { expr, attr } => {
                self.has_test(expr, &[attr.as_str()]);
            }
            ExprKind::ExtHasAttr { expr, attrs } => {
                let names: Vec<_> =
                    attrs.iter().map(cedar_policy_core::pst::SmolStr::as_str).collect();
                self.has_test(expr, &names);
            }
            ExprKind::GetAttr { expr, .. } | ExprKind::Is { expr, .. } => self.visit(expr, None),
            ExprKind::Set(items) => {
                let of = match wanted {
                    Some(InputType::Set(of)) => Some((**of).clone()),
                    _ => items.iter().find_map(|item| self.type_of(item)),
                };
                items.iter().for_each(|item| self.visit(item, of.as_ref()));
            }
            ExprKind::Record(members) => members.values().for_each(|one| self.visit(one, None)),
            _ => {}
        }
    }

    fn binary(&mut self, op: BinaryOp, one: &Expr, other: &Expr) {
        let (kind, of) = (self.type_of(one), self.type_of(other));
        let (left, right) = match op {
            BinaryOp::Eq => (of, kind),
            BinaryOp::Less | BinaryOp::LessEq => {
                let both = of.or(kind).unwrap_or(InputType::Integer);
                (Some(both.clone()), Some(both))
            }
            BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul => {
                (Some(InputType::Integer), Some(InputType::Integer))
            }
            BinaryOp::Contains => {
                let item = match kind {
                    Some(InputType::Set(item)) => Some(*item),
                    _ => None,
                };
                (Some(set(of.unwrap_or(InputType::String))), item)
            }
            BinaryOp::ContainsAll | BinaryOp::ContainsAny => {
                let both = of.or(kind).unwrap_or_else(|| set(InputType::String));
                (Some(both.clone()), Some(both))
            }
            _ => (None, None),
        };
        self.visit(one, left.as_ref());
        self.visit(other, right.as_ref());
    }

    /// Records a field that is tested by `has`, with any type.
    fn has_test(&mut self, of: &Expr, names: &[&str]) {
        let Some((mut path, names)) = below_input(of, names) else { return self.visit(of, None) };
        for name in names {
            path.push((*name).to_owned());
            self.0.entry(path.clone()).or_default();
        }
    }

    fn read(&mut self, path: Path, wanted: Option<&InputType>, span: Span) {
        let one = self.0.entry(path).or_default();
        one.reads.push(span);
        if let Some(wanted) = wanted
            && one.types.iter().all(|(known, _)| known != wanted)
        {
            one.types.push((wanted.clone(), span));
        }
    }

    /// Returns the type of an expression, as far as its form and earlier uses determine it.
    fn type_of(&self, expression: &Expr) -> Option<InputType> {
        if let Some(path) = path(expression) {
            return self.0.get(&path)?.types.first().map(|(kind, _)| kind.clone());
        }
        match expression.expr_kind() {
            ExprKind::Lit(Literal::Long(_)) => Some(InputType::Integer),
            ExprKind::Lit(Literal::String(_)) => Some(InputType::String),
            ExprKind::GetAttr { attr, .. } => match attr.as_str() {
                "amount" => Some(InputType::Decimal),
                "rollback_available" => Some(InputType::Boolean),
                "weekday" | "hour" | "minute" => Some(InputType::Integer),
                "now" | "input" | "local" => None,
                _ => Some(InputType::String),
            },
            ExprKind::ExtensionFunctionApp { fn_name, .. } => {
                (fn_name.to_string() == "decimal").then_some(InputType::Decimal)
            }
            ExprKind::UnaryApp { op: UnaryOp::Neg, .. }
            | ExprKind::BinaryApp { op: BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul, .. } => {
                Some(InputType::Integer)
            }
            ExprKind::Set(items) => items.iter().find_map(|item| self.type_of(item)).map(set),
            ExprKind::Lit(Literal::Bool(_))
            | ExprKind::And { .. }
            | ExprKind::Or { .. }
            | ExprKind::UnaryApp { .. }
            | ExprKind::BinaryApp { .. }
            | ExprKind::HasAttr { .. }
            | ExprKind::ExtHasAttr { .. }
            | ExprKind::Like { .. }
            | ExprKind::Is { .. } => Some(InputType::Boolean),
            _ => None,
        }
    }
}

const INPUT: &str = "input";

/// Returns the path below `context.input` of a `has` test's base, and the tested names.
fn below_input<'a, 'b>(of: &Expr, names: &'a [&'b str]) -> Option<(Path, &'a [&'b str])> {
    match (place_of(of, Path::new()), names.split_first()) {
        (Some(path), _) => Some((path, names)),
        // The first name of `context has input.a` is the input itself.
        (None, Some((&INPUT, rest))) if is_context(of) => Some((Path::new(), rest)),
        _ => None,
    }
}

/// Returns the path below `context.input` that a `has` test tests; `None` if it tests another path.
pub(super) fn tested(of: &Expr, names: &[&str]) -> Option<Path> {
    let (mut path, names) = below_input(of, names)?;
    path.extend(names.iter().map(|name| (*name).to_owned()));
    Some(path).filter(|path| !path.is_empty())
}

fn set(of: InputType) -> InputType {
    InputType::Set(Box::new(of))
}

fn is_context(expression: &Expr) -> bool {
    matches!(expression.expr_kind(), ExprKind::Var(Var::Context))
}

pub(super) fn span(expression: &Expr) -> Span {
    expression.source_loc().map_or((0, 0), |loc| (loc.start(), loc.end() - loc.start()))
}

/// Returns the actions that expressions name, each with its position.
pub(super) fn action_literals(conditions: &[Expr]) -> impl Iterator<Item = (String, Span)> {
    conditions.iter().flat_map(Expr::subexpressions).filter_map(|expression| {
        let ExprKind::Lit(Literal::EntityUID(uid)) = expression.expr_kind() else { return None };
        let name: &str = uid.eid().as_ref();
        let is_action = uid.entity_type().to_string() == "Svc::Action";
        let span = uid.loc().map_or((0, 0), |loc| (loc.start(), loc.end() - loc.start()));
        is_action.then(|| (name.to_owned(), span))
    })
}

/// Returns the path below `context.input` that an expression reads; `None` if it reads another
/// value.
fn path(expression: &Expr) -> Option<Path> {
    place_of(expression, Vec::new()).filter(|path| !path.is_empty())
}

/// Returns the path of an expression. Empty for `context.input` itself.
fn place_of(expression: &Expr, mut below: Path) -> Option<Path> {
    match expression.expr_kind() {
        ExprKind::GetAttr { expr, attr } if is_context(expr) && attr == INPUT => {
            below.reverse();
            Some(below)
        }
        ExprKind::GetAttr { expr, attr } => {
            below.push(attr.to_string());
            place_of(expr, below)
        }
        _ => None,
    }
}

/// Sets the type at a path. A field with fields below it becomes a record.
fn place(members: &mut Members, path: &[String], kind: InputType) {
    let Some((name, rest)) = path.split_first() else { return };
    let optional = |kind| Member { kind, required: false };
    if rest.is_empty() {
        members.entry(name.clone()).or_insert_with(|| optional(kind));
        return;
    }
    let member = members.entry(name.clone());
    let member = member.or_insert_with(|| optional(InputType::Record(Members::new())));
    if !matches!(member.kind, InputType::Record(_)) {
        member.kind = InputType::Record(Members::new());
    }
    if let InputType::Record(inner) = &mut member.kind {
        place(inner, rest, kind);
    }
}
