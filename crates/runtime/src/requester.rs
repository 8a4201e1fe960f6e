//! The requester of a held decision, the people behind a caller, and whether a user could approve.

use authority_model::proto::approval::Asker;

use authority_api::identity::{Caller, CallerKind};
use authority_decision::{Request, Verdict};
use authority_graph::{Graph, Persons, ProposedAction, TenantHandle};

/// The value of `eligible` if no user could approve.
pub(super) const NOBODY: &str = "none";

/// The requester of a held decision.
#[derive(Clone)]
pub struct Requester {
    pub(super) by: Asker,
    /// The e-mail address, if the requester is a person.
    pub(super) email: Option<String>,
    /// Whether no person registered in the tenant could approve the request.
    pub(super) nobody_eligible: bool,
}

/// Returns the requester, if the verdict needs approvals.
pub(super) fn requester(
    graph: &Graph,
    caller: &Caller,
    handle: Option<&TenantHandle>,
    request: &Request,
    verdict: &Verdict,
) -> Option<Requester> {
    let needed = verdict.approvals_needed.as_ref()?;
    let by = asker(caller)?;
    let people = people_of(graph, caller);
    let chain = verdict.authority.as_ref().map_or(&[][..], |used| &used.chain);
    let proposed = ProposedAction { subject: &request.subject, chain, requesters: &people };
    let nobody_eligible = handle.is_some_and(|handle| {
        let tenant = handle.read();
        let self_approves = tenant.profile.self_approval && needed.count == 1;
        tenant.nobody_may_approve(proposed, self_approves)
    });
    let email = caller.email().map(str::to_owned);
    Some(Requester { by, email, nobody_eligible })
}

/// Returns the caller as a requester, or `None` without a credential.
pub(super) fn asker(caller: &Caller) -> Option<Asker> {
    let kind = match &caller.kind {
        CallerKind::Key { .. } => "api_key",
        CallerKind::Owner { .. } | CallerKind::Member { .. } => "person",
        CallerKind::Anonymous => return None,
    };
    Some(Asker { kind: kind.to_owned(), id: caller.identity() })
}

/// Returns the people behind a caller. For an API key, these are the people who created or rotated
/// it.
pub(super) fn people_of(graph: &Graph, caller: &Caller) -> Persons {
    match &caller.kind {
        CallerKind::Key { key_id, .. } => {
            let key = graph.api_key(key_id.public_id());
            key.map(|key| Persons::clone(&key.people)).unwrap_or_default()
        }
        CallerKind::Anonymous | CallerKind::Owner { .. } | CallerKind::Member { .. } => {
            let person = caller.person();
            let email = person.as_ref().and(caller.email()).map(str::to_owned);
            Persons { identities: Vec::from_iter(person), emails: Vec::from_iter(email) }
        }
    }
}
