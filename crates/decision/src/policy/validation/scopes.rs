//! Finds the actions that a statement is about.

use cedar_policy_core::ast::{BinaryOp, Expr, ExprKind, Literal, Var};

use crate::policy::statement::ActionScope;

/// Returns the action scopes of the statement's scope and conditions. The statement concerns an
/// action only if all scopes admit it.
pub(super) fn action_scopes(condition: &Expr) -> Vec<ActionScope> {
    let (mut found, mut left) = (vec![ActionScope::Any], vec![condition]);
    while let Some(expression) = left.pop() {
        match expression.expr_kind() {
            ExprKind::And { left: one, right: other } => left.extend([&**one, &**other]),
            ExprKind::BinaryApp { op, arg1, arg2 } if is_action(arg1) => {
                found.extend(scope_of(*op, arg2));
            }
            _ => {}
        }
    }
    found
}

fn is_action(expression: &Expr) -> bool {
    matches!(expression.expr_kind(), ExprKind::Var(Var::Action))
}

fn scope_of(op: BinaryOp, named: &Expr) -> Option<ActionScope> {
    let name = |one: &Expr| match one.expr_kind() {
        ExprKind::Lit(Literal::EntityUID(uid)) => Some(AsRef::<str>::as_ref(uid.eid()).to_owned()),
        _ => None,
    };
    match (op, named.expr_kind()) {
        (BinaryOp::Eq, _) => name(named).map(ActionScope::Eq),
        (BinaryOp::In, ExprKind::Set(items)) => {
            items.iter().map(name).collect::<Option<_>>().map(ActionScope::In)
        }
        (BinaryOp::In, _) => name(named).map(|one| ActionScope::In(vec![one])),
        _ => None,
    }
}
