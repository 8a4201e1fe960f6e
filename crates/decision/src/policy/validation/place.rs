//! The fields that an expression reads or tests, by their path below `context` or `resource`.

use std::fmt;

use cedar_policy_core::ast::{Expr, ExprKind, Var};

use super::schema;

/// Fields that `context` always has.
const GIVEN: [&str; 3] = ["input", "local", "now"];
/// Fields that every resource has. The tenant, which represents an absent resource, lacks them.
const OF_RESOURCES: [&str; 2] = ["kind", "name"];
/// The fields that a request sets in its own context.
const OWN: [&str; 3] = ["amount", "currency", "jurisdiction"];

/// A field of the context or of the resource. Without names, it is the resource itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FieldPath {
    root: Root,
    names: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Root {
    Context,
    Resource,
}

/// A `has` test: its base, and the tested names below the base.
pub(super) struct Test {
    pub(super) of: FieldPath,
    names: Vec<String>,
}

impl Test {
    pub(super) fn of(expression: &Expr) -> Option<Self> {
        let (of, names) = match expression.expr_kind() {
            ExprKind::HasAttr { expr, attr } => (expr, vec![attr.to_string()]),
            ExprKind::ExtHasAttr { expr, attrs } => {
                (expr, attrs.iter().map(ToString::to_string).collect())
            }
            _ => return None,
        };
        Some(Self { of: FieldPath::at(of)?, names })
    }

    /// Returns the path of the tested field.
    pub(super) fn whole(&self) -> FieldPath {
        self.below(self.names.len())
    }

    fn below(&self, names: usize) -> FieldPath {
        let names = self.names.iter().take(names);
        FieldPath {
            root: self.of.root,
            names: self.of.names.iter().chain(names).cloned().collect(),
        }
    }
}

impl FieldPath {
    /// Returns the place that an expression reads.
    pub(super) fn read(expression: &Expr) -> Option<Self> {
        Self::at(expression).filter(|place| !place.names.is_empty())
    }

    fn at(expression: &Expr) -> Option<Self> {
        match expression.expr_kind() {
            ExprKind::Var(Var::Context) => Some(Self { root: Root::Context, names: Vec::new() }),
            ExprKind::Var(Var::Resource) => Some(Self { root: Root::Resource, names: Vec::new() }),
            ExprKind::GetAttr { expr, attr } => {
                let mut place = Self::at(expr)?;
                place.names.push(attr.to_string());
                Some(place)
            }
            _ => None,
        }
    }

    /// Returns the tested fields that a request may lack, outer fields first.
    pub(super) fn tested(expression: &Expr) -> Vec<Self> {
        if is_resource_type(expression) == Some(true) {
            return vec![Self { root: Root::Resource, names: Vec::new() }];
        }
        let Some(test) = Test::of(expression) else { return Vec::new() };
        let each = (1..=test.names.len()).map(|names| test.below(names));
        each.filter(Self::is_possible)
            .map(Self::or_resource)
            .filter(|one| !one.is_always())
            .collect()
    }

    /// Whether such a field can exist. Another check reports impossible fields.
    fn is_possible(&self) -> bool {
        let var = match self.root {
            Root::Context => Var::Context,
            Root::Resource => Var::Resource,
        };
        let known = schema::members(var);
        self.names.first().is_some_and(|name| known.contains(name))
    }

    /// Returns the resource itself in place of a field that every resource has.
    fn or_resource(mut self) -> Self {
        if self.root == Root::Resource && self.is_always() {
            self.names.clear();
        }
        self
    }

    /// Whether the field is always present with the context, or with any resource.
    pub(super) fn is_always(&self) -> bool {
        match (self.root, self.names.as_slice()) {
            (Root::Context, [first, _]) if first == "local" => true,
            (Root::Context, [name]) => GIVEN.contains(&name.as_str()),
            (Root::Resource, [name]) => OF_RESOURCES.contains(&name.as_str()),
            _ => false,
        }
    }

    /// Whether `other` is this place or below it.
    pub(super) fn is_within_or(&self, other: &Self) -> bool {
        self.root == other.root && other.names.starts_with(&self.names)
    }

    pub(super) fn is_root(&self) -> bool {
        self.names.is_empty()
    }

    /// Whether a place at the resource is the resource itself; `None` for the context.
    pub(super) fn as_resource(&self) -> Option<bool> {
        (self.root == Root::Resource).then_some(self.names.is_empty())
    }

    pub(super) fn depth(&self) -> usize {
        self.names.len()
    }

    /// Returns the path of a field below `context.input`.
    ///
    /// This includes the standard fields that a request sets in its context.
    pub(super) fn input(&self) -> Option<&[String]> {
        match (self.root, self.names.as_slice()) {
            (Root::Context, [first, rest @ ..]) if first == "input" => Some(rest),
            (Root::Context, [name]) if OWN.contains(&name.as_str()) => Some(&self.names),
            _ => None,
        }
    }

    /// Returns the field's name in a tool's `requires`, if it can be listed there.
    pub(super) fn required_as(&self) -> Option<&str> {
        match (self.root, self.input()) {
            (_, Some([name])) => Some(name),
            (Root::Resource, None) if self.is_root() => Some("resource_id"),
            _ => None,
        }
    }

    /// Returns the Cedar test for the field's presence.
    pub(super) fn test(&self) -> String {
        match (self.root, self.names.split_last()) {
            (Root::Resource, None) => "resource is Svc::Resource".to_owned(),
            (_, None) => "true".to_owned(),
            (root, Some((name, of))) => {
                format!("{} has {name}", Self { root, names: of.to_vec() }.path())
            }
        }
    }

    fn path(&self) -> String {
        let root = match self.root {
            Root::Context => "context",
            Root::Resource => "resource",
        };
        self.names.iter().fold(root.to_owned(), |path, name| path + "." + name)
    }
}

impl fmt::Display for FieldPath {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_root() { to.write_str("a resource") } else { write!(to, "`{}`", self.path()) }
    }
}

/// Returns the result of a test of the resource's type: `Some(false)` for the tenant, which
/// represents an absent resource.
pub(super) fn is_resource_type(expression: &Expr) -> Option<bool> {
    let ExprKind::Is { expr, entity_type } = expression.expr_kind() else { return None };
    let is_it = matches!(expr.expr_kind(), ExprKind::Var(Var::Resource));
    match entity_type.to_string().as_str() {
        "Svc::Resource" if is_it => Some(true),
        "Svc::Tenant" if is_it => Some(false),
        _ => None,
    }
}
