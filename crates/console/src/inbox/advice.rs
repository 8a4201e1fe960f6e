//! Advice for a request that would be denied now. Waiting helps only if the reason can go away.

use authority_model::proto::{approval::Approval, registry::GetPrincipalRequest};

use super::would_be::WouldBe;
use crate::kit::prelude::*;

const WAIT: &str = "Wait until the reason is gone, or decline it.";

/// The advice if an approval would only make the request void; otherwise empty.
pub(super) async fn advice(view: &View, approval: &Approval, would_be: Option<&WouldBe>) -> String {
    let Some(would_be) = would_be.filter(|would_be| would_be.voids()) else {
        return String::new();
    };
    let agent = short(&approval.subject);
    match would_be.code.as_str() {
        "subject_suspended" => of_state(agent, &state(view, &approval.subject).await),
        "subject_unknown" => format!("{agent} no longer exists. Decline the request."),
        "delegation_revoked" => {
            "A revoked delegation does not come back. Decline it, unless the agent is given \
                                 another one."
                .to_owned()
        }
        "delegation_expired" => {
            "Decline it, unless the delegation is prolonged or the agent is given another one."
                .to_owned()
        }
        _ => WAIT.to_owned(),
    }
}

fn of_state(agent: &str, state: &str) -> String {
    match state {
        "revoked" => {
            format!("{agent} is revoked, and that is final: waiting does not help. Decline it.")
        }
        "suspended" => {
            format!("{agent} is suspended. Wait until it is active again, or decline it.")
        }
        "pending" => format!("{agent} is not active yet. Wait until it is, or decline it."),
        _ => WAIT.to_owned(),
    }
}

/// The present state of a principal; empty if it cannot be read.
async fn state(view: &View, id: &str) -> String {
    let request = GetPrincipalRequest { id: id.to_owned(), ..GetPrincipalRequest::default() };
    let read = view.calls.call(&request).await;
    read.ok().and_then(|principal| principal.state).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_told_to_wait_for_what_is_final() {
        assert!(of_state("bank-bot", "revoked").contains("waiting does not help"));
        assert!(of_state("bank-bot", "suspended").contains("Wait until it is active again"));
        assert_eq!(of_state("bank-bot", ""), WAIT);
    }
}
