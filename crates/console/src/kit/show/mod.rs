//! How values are shown to people.

mod moment;
mod request;

pub(crate) use authority_presentation::{Amount, Sums};
pub(crate) use moment::Moment;
pub(crate) use request::{Argument, arguments};

use authority_model::proto::runtime::DecisionSummary;
use serde_json::{Map, Number, Value};

/// The last part of an id, by which people know it: `invoice-bot` of `svc:agent:acme:invoice-bot`.
pub(crate) fn short(id: &str) -> &str {
    id.rsplit(':').next().unwrap_or(id)
}

/// The amount of a decision's request.
pub(crate) fn decided_amount(decision: &DecisionSummary) -> Option<Amount> {
    let amount: Number = decision.amount.as_ref()?.parse().ok()?;
    let mut context = Map::from_iter([("amount".to_owned(), Value::from(amount))]);
    context.extend(decision.currency.clone().map(|code| ("currency".to_owned(), code.into())));
    Amount::of(&context)
}

/// A count and its noun.
pub(crate) fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
