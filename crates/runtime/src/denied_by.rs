//! The names of the policies that denied decisions.
//!
//! A record has only the reason code. A list therefore makes the denied decisions again, on their
//! recorded facts. Recording a decision stays as fast as before.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use authority_api::identity::Caller;
use authority_decision::{Draft, Request, decide, trace};
use authority_evidence::{self as evidence, sealed::Outcome};
use authority_ids::{EntityRef, TenantId};
use authority_ledger::stored_decisions::{DecisionRow, Stored, complete};
use authority_model::schema::{decisions, policies};
use authority_store::{self as store, Db, RunQueryDsl};
use diesel::prelude::*;

use super::{
    decision_filter::limit,
    decision_summary::{DecisionSummaryRow, Policies},
    find::DecisionQueries,
    sealed_facts::SealedFacts,
};

/// The place in the queue of the compute pool for lists of several tenants.
const PLACE: &str = "decision_lists";
/// The longest time that a list waits for the names, which are optional.
const LONGEST: Duration = Duration::from_millis(500);
/// The maximum number of decisions that a list makes again, from its first.
const MOST: usize = 100;

/// The policies that denied a decision.
struct Denied {
    decision_id: String,
    tenant_id: TenantId,
    /// In the order of their statements.
    policies: Vec<EntityRef>,
}

impl DecisionQueries {
    /// Returns the current names of the policies that denied decisions, by the decision's id.
    ///
    /// Leaves out decisions that cannot be made again, such as erased ones, or not in time. Returns
    /// no names if they can't be read: the list is more important.
    pub(super) async fn denied_by(&self, caller: &Caller, rows: &[DecisionSummaryRow]) -> Policies {
        self.find_denying(caller, rows).await.unwrap_or_else(|error| {
            tracing::debug!(%error, "failed to read the policies that denied decisions");
            Policies::new()
        })
    }

    async fn find_denying(
        &self,
        caller: &Caller,
        rows: &[DecisionSummaryRow],
    ) -> Result<Policies, store::Error> {
        let ids = rows.iter().filter(|row| row.is_denied_by_policy()).map(|row| row.id.clone());
        let ids: Vec<String> = ids.take(MOST).collect();
        if ids.is_empty() {
            return Ok(Policies::new());
        }
        let read = async move |db: &mut Db| {
            limit(db).await?;
            let query = decisions::table.filter(decisions::id.eq_any(ids));
            let rows: Vec<DecisionRow> = query.select(DecisionRow::as_select()).load(db).await?;
            Ok::<_, store::Error>(complete(db, rows).await?)
        };
        let stored: Vec<Stored> = self.store.read_tx(&caller.scope(), read).await?;
        let place = caller.tenant().map_or(PLACE, TenantId::as_str);
        let deciding = self.pool.run_within(place, LONGEST, move |turn| {
            let mut facts = SealedFacts::default();
            let in_time = stored.iter().take_while(|_| turn.is_wanted() && !turn.is_over());
            in_time.filter_map(|decision| denied(&mut facts, decision)).collect::<Vec<Denied>>()
        });
        match deciding.await {
            Ok(denied) => self.names(caller, denied).await,
            Err(error) => {
                tracing::debug!(%error, "failed to find the policies that denied decisions");
                Ok(Policies::new())
            }
        }
    }

    async fn names(&self, caller: &Caller, denied: Vec<Denied>) -> Result<Policies, store::Error> {
        let tenants: HashSet<String> =
            denied.iter().map(|one| one.tenant_id.as_str().to_owned()).collect();
        let ids = denied.iter().flat_map(|one| &one.policies);
        let ids: HashSet<String> = ids.map(|id| id.as_str().to_owned()).collect();
        if ids.is_empty() {
            return Ok(Policies::new());
        }
        let read = async move |db: &mut Db| {
            limit(db).await?;
            let named: Vec<(String, String, String)> = policies::table
                .filter(policies::tenant_id.eq_any(tenants))
                .filter(policies::id.eq_any(ids))
                .filter(policies::name.is_not_null())
                .select((policies::tenant_id, policies::id, policies::name.assume_not_null()))
                .load(db)
                .await?;
            Ok::<_, store::Error>(named)
        };
        let named: Vec<(String, String, String)> =
            self.store.read_tx(&caller.scope(), read).await?;
        let named: HashMap<(String, String), String> =
            named.into_iter().map(|(tenant, id, name)| ((tenant, id), name)).collect();
        let names = |denied: Denied| {
            let key = |id: EntityRef| (denied.tenant_id.as_str().to_owned(), String::from(id));
            let ids = denied.policies.iter().cloned();
            let names = ids.filter_map(|id| named.get(&key(id)).cloned()).collect();
            (denied.decision_id, names)
        };
        Ok(denied.into_iter().map(names).collect())
    }
}

/// Makes a decision again. `None` if its facts do not lead to its recorded outcome.
fn denied(facts: &mut SealedFacts, decision: &Stored) -> Option<Denied> {
    let policies = denying(facts, decision).inspect_err(|error| {
        tracing::debug!(
            %error,
            decision.id = decision.id.as_str(),
            "failed to find the policies that denied a decision"
        );
    });
    Some(Denied {
        decision_id: decision.id.as_str().to_owned(),
        tenant_id: decision.tenant_id.clone(),
        policies: policies.ok()?,
    })
}

fn denying(facts: &mut SealedFacts, decision: &Stored) -> Result<Vec<EntityRef>, evidence::Error> {
    let sealed = &decision.sealed;
    let recorded = sealed.recorded()?;
    let asked = Draft { explain: true, ..sealed.request()?.into_draft() };
    let unreadable = |_| evidence::Error::Unreadable("a stored request");
    let request = Request::new(asked).map_err(unreadable)?;
    let verdict = decide(&request, &facts.of(sealed)?, recorded.evaluated_at);
    if Outcome::from(&verdict) != recorded.outcome {
        return Err(evidence::Error::Unreadable("its outcome"));
    }
    let steps = verdict.trace.iter().flatten().flat_map(|stage| &stage.steps);
    let decisive = steps.filter(|step| {
        step.outcome == trace::Outcome::Refuse && step.reason_code == Some(verdict.reason_code)
    });
    let statements = decisive.filter_map(|step| step.statement.as_ref());
    Ok(statements.map(|statement| statement.policy_id.clone()).collect())
}
