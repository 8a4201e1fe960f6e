//! How values are shown to people.

mod moment;
mod request;

pub(crate) use authority_presentation::{Amount, Sums};
pub(crate) use moment::Moment;
pub(crate) use request::{Argument, arguments};

use authority_model::proto::runtime::{Decision, DecisionSummary};
use serde_json::{Map, Number, Value};

use super::text::{outcome, policy, reason};
use crate::texts as t;

/// The last part of an id, by which people know it: `invoice-bot` of `svc:agent:acme:invoice-bot`.
pub(crate) fn short(id: &str) -> &str {
    id.rsplit(':').next().unwrap_or(id)
}

/// A decision of a list.
pub(crate) struct Decided {
    pub(crate) amount: Option<Amount>,
    /// The outcome.
    pub(crate) word: &'static str,
    /// The policies that decided, or the sentence of the reason code.
    pub(crate) reason: String,
    pub(crate) decision: DecisionSummary,
}

impl From<DecisionSummary> for Decided {
    fn from(decision: DecisionSummary) -> Self {
        Self {
            amount: amount(&decision),
            word: outcome(decision.decision),
            reason: decided_by(&decision),
            decision,
        }
    }
}

fn amount(decision: &DecisionSummary) -> Option<Amount> {
    let amount: Number = decision.amount.as_ref()?.parse().ok()?;
    let mut context = Map::from_iter([("amount".to_owned(), Value::from(amount))]);
    context.extend(decision.currency.clone().map(|code| ("currency".to_owned(), code.into())));
    Amount::of(&context)
}

fn decided_by(decision: &DecisionSummary) -> String {
    let names = decision.policies.iter().map(|name| policy(name, None));
    let names = names.collect::<Vec<_>>().join(", ");
    match decision.decision {
        _ if names.is_empty() => reason(&decision.reason_code),
        denied if denied == i32::from(Decision::Deny) => t::denied_by(names),
        _ => t::held_by(names),
    }
}
