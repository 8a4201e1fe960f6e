//! Budgets of delegations and grants: the remaining part, and the end of the current window.

use authority_ids::PrincipalRef;
use authority_model::proto::runtime::{Budget, GetAuthorityRequest, GetAuthorityResponse};

use crate::kit::prelude::*;

/// A budget, for people.
pub(crate) struct BudgetLine {
    pub(crate) text: String,
    pub(crate) resets: Option<Moment>,
    /// The delegation above with the budget. `None` if the grant itself has the budget.
    pub(crate) above: Option<String>,
}

/// The budgets of a grant.
#[derive(Default)]
pub(crate) struct Budgets {
    pub(crate) lines: Vec<BudgetLine>,
    /// Whether the budgets could not be read now.
    pub(crate) is_unread: bool,
}

impl Budgets {
    /// Reads the budgets of a grant of this principal.
    pub(crate) async fn read(view: &View, principal_id: PrincipalRef, grant_id: &str) -> Self {
        if !view.may(rpc::GET_AUTHORITY) {
            return Self::default();
        }
        let request = GetAuthorityRequest { entity_id: principal_id.into() };
        let read: Result<GetAuthorityResponse, _> = view.calls.call(&request).await;
        match read {
            Ok(held) => {
                let grant = held.grants.into_iter().find(|grant| grant.id == grant_id);
                let budgets = grant.map(|grant| grant.budgets).unwrap_or_default();
                Self { lines: lines(view, grant_id, budgets), is_unread: false }
            }
            Err(status) => Self { lines: Vec::new(), is_unread: !is_absent(&status) },
        }
    }
}

/// Returns the budgets that permissions under this grant use.
pub(crate) fn lines(view: &View, grant_id: &str, budgets: Vec<Budget>) -> Vec<BudgetLine> {
    let line = |budget: Budget| BudgetLine {
        text: sentence(&budget),
        resets: Moment::of_time(budget.resets_at, view.now),
        above: Some(budget.holder).filter(|holder| holder != grant_id),
    };
    budgets.into_iter().map(line).collect()
}

/// Describes the used and the remaining part: `400.00 of 450.50 EUR used, 50.50 EUR left.`
pub(crate) fn sentence(budget: &Budget) -> String {
    let with_unit = |number: &str| match (budget.bound.as_str(), &budget.currency) {
        ("max_uses", _) => t::agents::uses(number),
        (_, Some(currency)) => format!("{number} {currency}"),
        (_, None) => number.to_owned(),
    };
    let limit = with_unit(&budget.limit);
    match (&budget.used, &budget.left) {
        (Some(used), Some(left)) => t::agents::budget(used, limit, with_unit(left)),
        _ => t::agents::budget_unknown(limit),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_names_what_is_left() {
        let text = |text: &str| Some(text.to_owned());
        let uses = Budget {
            bound: "max_uses".to_owned(),
            limit: "20".to_owned(),
            used: text("17"),
            left: text("3"),
            ..Budget::default()
        };
        assert_eq!(sentence(&uses), "17 of 20 uses used, 3 uses left.");
        let money = Budget {
            bound: "max_total_amount".to_owned(),
            limit: "450.50".to_owned(),
            used: text("450.50"),
            left: text("0.00"),
            currency: text("EUR"),
            ..Budget::default()
        };
        assert_eq!(sentence(&money), "450.50 of 450.50 EUR used, 0.00 EUR left.");
        let unknown = Budget { used: None, left: None, ..money };
        assert_eq!(sentence(&unknown), "450.50 EUR; the used part is unknown.");
    }
}
