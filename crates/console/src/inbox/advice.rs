//! Advice for a request that would be denied now. Waiting helps only if the reason can go away.

use authority_model::proto::{approval::Approval, registry::GetPrincipalRequest};

use super::would_be::WouldBe;
use crate::kit::prelude::*;

/// The advice if an approval would only make the request void; otherwise empty.
pub(super) async fn advice(view: &View, approval: &Approval, would_be: Option<&WouldBe>) -> String {
    let Some(would_be) = would_be.filter(|would_be| would_be.voids()) else {
        return String::new();
    };
    let agent = short(&approval.subject);
    match would_be.code.as_str() {
        "subject_suspended" => of_state(agent, &state(view, &approval.subject).await),
        "subject_unknown" => t::inbox::agent_gone(agent),
        "delegation_revoked" => t::inbox::DELEGATION_REVOKED.to_owned(),
        "delegation_expired" => t::inbox::DELEGATION_EXPIRED.to_owned(),
        _ => t::inbox::WAIT.to_owned(),
    }
}

fn of_state(agent: &str, state: &str) -> String {
    match state {
        "revoked" => t::inbox::agent_revoked(agent),
        "suspended" => t::inbox::agent_suspended(agent),
        "pending" => t::inbox::agent_pending(agent),
        _ => t::inbox::WAIT.to_owned(),
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
        assert_eq!(of_state("bank-bot", ""), t::inbox::WAIT);
    }
}
