//! The open business of agents that a stop would concern: pending requests for approval, and valid
//! permissions.

use std::collections::HashSet;

use authority_decision::Pattern;
use authority_model::{
    proto::approval::{Approval, ListApprovalsRequest, ListApprovalsResponse},
    wire::Time,
};
use tonic::Status;

use super::{
    blast::Blast,
    permits::{self, Permit},
    scope::StopScope,
    target::Target,
};
use crate::{
    calls::some_at_once,
    names::{Named, Names},
    rpc,
    show::counted,
    view::View,
};

/// The maximum number of agents that are examined, and of requests that are read for each.
const MOST: usize = 5;
const READ: i32 = 100;

/// The open business.
pub(super) struct Underway {
    /// The agents with business that ends, or may end.
    pub(super) agents: Vec<Busy>,
    /// The number of examined agents, and of further agents.
    pub(super) looked_at: usize,
    pub(super) more: usize,
    /// Whether there may be delegations, and with them permits and requests, that were not read.
    pub(super) cut: bool,
}

/// An agent with open business.
pub(super) struct Busy {
    pub(super) named: Named,
    /// Pending requests, and approved requests that are not used yet.
    pub(super) waiting: Requests,
    pub(super) approved: Requests,
    /// `None` if the role may not read decisions.
    pub(super) permits: Option<Permits>,
}

/// Requests that have not ended.
#[derive(Default)]
pub(super) struct Requests {
    count: usize,
    /// Whether there are further requests that were not read.
    cut: bool,
}

pub(super) struct Permits {
    pub(super) valid: Vec<Permit>,
    /// Whether there may be older permits that were not read.
    pub(super) cut: bool,
}

/// The part of an agent's authority that ends.
struct Ends<'a> {
    actions: &'a [String],
    /// The delegations that end; `None` if all of the agent's authority ends.
    under: Option<&'a HashSet<String>>,
}

impl Ends<'_> {
    fn covers(&self, action: &str, chain: &[String]) -> bool {
        let covered =
            |text: &String| text.parse::<Pattern>().is_ok_and(|pattern| pattern.covers(action));
        let is_named = self.actions.is_empty() || self.actions.iter().any(covered);
        is_named && self.under.is_none_or(|ended| chain.iter().any(|id| ended.contains(id)))
    }
}

impl Requests {
    /// `2 requests`, `100 or more requests`; `None` if there is no request.
    pub(super) fn words(&self) -> Option<String> {
        match (self.count, self.cut) {
            (0, false) => None,
            (0, true) => Some("none of the 100 requests that end first; later ones".to_owned()),
            (count, false) => Some(counted(count, "request", "requests")),
            (count, true) => Some(format!("{count} or more requests")),
        }
    }
}

impl Busy {
    fn has_something(&self) -> bool {
        let open = self.permits.as_ref().is_some_and(|found| found.cut || !found.valid.is_empty());
        open || [&self.waiting, &self.approved].iter().any(|requests| requests.words().is_some())
    }
}

/// The open business of the concerned agents; `None` if none are known, or if it could not be read.
/// A stop is urgent: missing data does not prevent it.
pub(super) async fn of(view: &View, target: &Target, blast: &Blast) -> Option<Underway> {
    if !view.may(rpc::LIST_APPROVALS) || blast.concerned.is_empty() {
        return None;
    }
    let found = read(view, target, blast).await;
    found
        .inspect_err(|error| tracing::warn!(%error, "failed to read open requests and permissions"))
        .ok()
}

async fn read(view: &View, target: &Target, blast: &Blast) -> Result<Underway, Status> {
    let ended: HashSet<String> = blast.delegations.iter().map(|ended| ended.id.clone()).collect();
    let cut = blast.delegation_total > ended.len();
    let scope = StopScope::before(view, target, blast.concerned.clone());
    let stopped = target.subject.as_ref().map(|subject| subject.id.as_str());
    let names = Names::to_call(view, scope.agents.clone()).await;
    let read = scope.agents.iter().take(MOST).map(|id| {
        // A stopped agent loses all authority. Other agents lose only the authority from ended
        // delegations.
        let is_whole = target.delegation.is_none() && stopped.is_none_or(|stopped| stopped == id);
        let ends = Ends { actions: &target.actions, under: (!is_whole).then_some(&ended) };
        busy(view, &scope, names.called(id.clone()), ends)
    });
    let read: Result<Vec<_>, _> = some_at_once(read).await.into_iter().collect();
    let agents: Vec<_> = read?.into_iter().filter(Busy::has_something).collect();
    let looked_at = scope.agents.len().min(MOST);
    // The list of agents may be incomplete, but the total counts all of them.
    let is_part = target.subject.is_some() && target.delegation.is_some();
    let counted = if is_part { 0 } else { blast.agent_total + usize::from(stopped.is_some()) };
    let more = scope.agents.len().max(counted) - looked_at;
    Ok(Underway { agents, looked_at, more, cut })
}

async fn busy(
    view: &View,
    scope: &StopScope,
    named: Named,
    ends: Ends<'_>,
) -> Result<Busy, Status> {
    let permits = async {
        if !view.may(rpc::LIST_DECISIONS) {
            return Ok(None);
        }
        let (mut valid, cut) = permits::open(view, &named.id, scope).await?;
        valid.retain(|permit| ends.covers(&permit.action, &permit.chain));
        Ok(Some(Permits { valid, cut }))
    };
    let requests = |state| requests(view, scope, &named.id, state, &ends);
    let (waiting, approved, permits) =
        tokio::try_join!(requests("pending"), requests("approved"), permits)?;
    Ok(Busy { named, waiting, approved, permits })
}

async fn requests(
    view: &View,
    scope: &StopScope,
    id: &str,
    state: &str,
    ends: &Ends<'_>,
) -> Result<Requests, Status> {
    let request = ListApprovalsRequest {
        tenant_id: Some(scope.tenant_id.clone()),
        state: Some(state.to_owned()),
        subject: Some(id.to_owned()),
        order: Some("expiry".to_owned()),
        limit: Some(READ),
        ..ListApprovalsRequest::default()
    };
    let listed: ListApprovalsResponse = view.calls.call(rpc::LIST_APPROVALS, &request).await?;
    let is_open = |approval: &&Approval| {
        let ends_at = approval.expires_at.and_then(Time::moment);
        let chain = approval.authority.as_ref().map(|used| used.chain.as_slice());
        ends_at.is_some_and(|end| end > view.now)
            && ends.covers(&approval.action, chain.unwrap_or_default())
    };
    let count = listed.approvals.iter().filter(is_open).count();
    Ok(Requests { count, cut: listed.next_page_token.is_some() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_cut_list_knows_is_all_that_is_said() {
        let words = |count, cut| Requests { count, cut }.words();
        assert_eq!(words(0, false), None);
        assert_eq!(words(1, false).as_deref(), Some("1 request"));
        assert_eq!(words(100, true).as_deref(), Some("100 or more requests"));
        assert!(words(0, true).is_some_and(|words| words.starts_with("none of the 100")));
    }

    #[test]
    fn of_others_only_what_comes_from_an_ended_delegation_ends() {
        let ended = HashSet::from(["svc:del:acme:1".to_owned()]);
        let actions = ["payment.*".to_owned()];
        let (inside, outside) = (["svc:del:acme:1".to_owned()], ["svc:del:acme:2".to_owned()]);
        for (under, action, chain, expected) in [
            (None, "payment.execute", &outside, true),
            (None, "invoice.read", &outside, false),
            (Some(&ended), "payment.execute", &inside, true),
            (Some(&ended), "payment.execute", &outside, false),
        ] {
            let ends = Ends { actions: &actions, under };
            assert_eq!(ends.covers(action, chain), expected, "{action} {chain:?}");
        }
    }
}
