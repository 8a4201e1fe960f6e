//! The agents that know about a stop, because a request since then was refused.

use std::collections::HashMap;

use authority_model::{
    proto::runtime::{ListDecisionsRequest, ListDecisionsResponse},
    wire::Time,
};
use tonic::Status;

use super::{blast::covers, scope::StopScope};
use crate::{
    calls::some_at_once,
    names::{Named, Names},
    rpc,
    show::Moment,
    view::View,
};

/// The maximum number of agents that are examined.
pub(super) const MOST: usize = 12;
/// The number of the tenant's refusals that are read at once. If those are not enough, the number
/// for each agent.
const OF_TENANT: i32 = 500;
const OF_AGENT: i32 = 100;

/// An agent that a stop concerns.
pub(super) struct Agent {
    pub(super) named: Named,
    pub(super) refused: Refused,
}

/// The refusals of an agent since the stop.
pub(super) enum Refused {
    Never,
    /// The number in words, and the time of the last refusal.
    Times(String, Moment),
    /// The newest decisions contain no refusal, and older ones were not read.
    Unknown,
}

/// The number of each agent's refusals, and the time of the last one.
struct Refusals {
    of: HashMap<String, (usize, Option<Time>)>,
    /// Whether there are older refusals.
    cut: bool,
}

/// The state of each agent, as far as the caller may read decisions.
pub(super) async fn of(view: &View, scope: &StopScope) -> Result<Vec<Agent>, Status> {
    let names = Names::to_call(view, scope.agents.clone()).await;
    let all = refusals(view, scope, None, OF_TENANT).await?;
    let known = scope.agents.iter().take(MOST).map(|id| async {
        let refused = match refused(view, &all, id) {
            // Decisions of other agents may have filled the page.
            Refused::Unknown => {
                refused(view, &refusals(view, scope, Some(id), OF_AGENT).await?, id)
            }
            known => known,
        };
        Ok::<_, Status>(Agent { named: names.called(id.clone()), refused })
    });
    some_at_once(known).await.into_iter().collect()
}

async fn refusals(
    view: &View,
    scope: &StopScope,
    subject: Option<&str>,
    limit: i32,
) -> Result<Refusals, Status> {
    let request = ListDecisionsRequest {
        tenant_id: Some(scope.tenant_id.clone()),
        subject: subject.map(str::to_owned),
        reason_code: Some(scope.reason_code.to_owned()),
        since: Some(scope.since.into()),
        until: scope.until.map(Into::into),
        limit: Some(limit),
        ..ListDecisionsRequest::default()
    };
    let listed: ListDecisionsResponse = view.calls.call(rpc::LIST_DECISIONS, &request).await?;
    let mut of = HashMap::<String, (usize, Option<Time>)>::new();
    // The list has the newest decision first.
    for decision in listed.decisions.into_iter().filter(|one| covers(&scope.actions, one)) {
        let (count, _) = of.entry(decision.subject).or_insert((0, decision.evaluated_at));
        *count += 1;
    }
    Ok(Refusals { of, cut: listed.next_page_token.is_some() })
}

fn refused(view: &View, refusals: &Refusals, id: &str) -> Refused {
    let found = refusals.of.get(id);
    let found = found.and_then(|(count, at)| Some((*count, Moment::of_time(*at, view.now)?)));
    match found {
        None if refusals.cut => Refused::Unknown,
        None => Refused::Never,
        Some((count, at)) if refusals.cut => Refused::Times(format!("{count} times or more"), at),
        Some((1, at)) => Refused::Times("once".to_owned(), at),
        Some((count, at)) => Refused::Times(format!("{count} times"), at),
    }
}
