//! Budgets and exceeded bounds in responses.

use authority_model::proto::runtime::{Budget, ExceededBound};

use authority_decision::{budget, trace};

/// Returns a budget as the API has it.
pub(super) fn budget(budget: &budget::Budget) -> Budget {
    let text = |value: i64| budget.text(value);
    Budget {
        bound: budget.bound().to_owned(),
        holder: budget.holder_id.clone(),
        limit: text(budget.limit),
        used: budget.used.map(text),
        left: budget.left().map(text),
        currency: budget.currency.clone(),
        window_seconds: budget.key.window_seconds,
        resets_at: budget.resets_at().map(Into::into),
    }
}

/// Returns an exceeded bound as the API has it.
pub(super) fn exceeded(exceeded: &trace::ExceededBound) -> ExceededBound {
    ExceededBound {
        bound: exceeded.bound.clone(),
        holder: exceeded.holder.clone(),
        limit: exceeded.limit.clone(),
        currency: exceeded.currency.clone(),
        asked: exceeded.asked.clone(),
        budget: exceeded.budget.as_ref().map(budget),
    }
}
