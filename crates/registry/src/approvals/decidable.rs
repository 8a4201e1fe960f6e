//! Whether the caller may decide the requests of a list now.
//!
//! [`Eligibility::of`] evaluates a request on current authority, which takes several queries. The
//! graph alone has the answer for most requests: a further delegation can only exclude more people.
//! A person who is excluded by the delegations of the held decision is therefore excluded. A person
//! may decide if all delegations of the agent for the action do not exclude them. Only the remaining
//! requests are evaluated.

use std::collections::HashMap;

use authority_graph::{Graph, TenantHandle, revision};
use authority_model::{
    proto::approval::{Approval, Asker},
    schema::approvals,
    state::ApprovalState,
    wire::Time,
};
use chrono::{DateTime, Utc};

use super::eligible::{APPROVE, APPROVERS, Eligibility, READS, shown};
use crate::flow::{
    ineligible::{Ineligible, IneligibleReason},
    prelude::*,
};
use authority_api::identity::may_call;

/// A caller, and the authority by which they may decide.
pub(super) struct Decider<'a> {
    pub(super) graph: &'a Graph,
    pub(super) caller: &'a Caller,
    pub(super) now: DateTime<Utc>,
}

impl Decider<'_> {
    /// Returns the ids of the requests of `query` that the caller may decide now.
    pub(super) async fn decidable(
        &self,
        db: &mut Db,
        query: approvals::BoxedQuery<'_, Pg>,
    ) -> Result<Vec<String>, Error> {
        if !may_call(APPROVE, self.caller) {
            return Ok(Vec::new());
        }
        let waiting = query.filter(approvals::expires_at.gt(Time::from(self.now)));
        let rows: Vec<Approval> = waiting.select(Approval::as_select()).load(db).await?;
        let all = self.ineligible(db, &rows).await?;
        let decidable = rows.into_iter().zip(all).filter(|(_, why)| why.is_none());
        Ok(decidable.map(|(row, _)| row.id).collect())
    }

    /// Fills in why the caller may not decide pending requests.
    pub(super) async fn fill(&self, db: &mut Db, rows: &mut [Approval]) -> Result<(), Error> {
        let all = self.ineligible(db, rows).await?;
        for (row, why) in rows.iter_mut().zip(all) {
            row.not_eligible = why.as_ref().map(ToString::to_string);
            row.ineligibility = why.map(shown);
        }
        Ok(())
    }

    /// Returns why the caller may not decide each request. `None` if they may, or if the request is
    /// not pending.
    async fn ineligible(
        &self,
        db: &mut Db,
        rows: &[Approval],
    ) -> Result<Vec<Option<Ineligible>>, Error> {
        let (emails, tenants) = (emails(db, rows).await?, self.tenants(db, rows).await?);
        let mut found = Vec::with_capacity(rows.len());
        for row in rows {
            let emails = emails.get(&row.id).map(Vec::as_slice).unwrap_or_default();
            let tenant = tenants.get(&row.tenant_id).and_then(Option::as_ref);
            let is_pending = row.known_state() == Some(ApprovalState::Pending);
            found.push(if is_pending { self.of_one(db, tenant, row, emails).await? } else { None });
        }
        Ok(found)
    }

    async fn of_one(
        &self,
        db: &mut Db,
        tenant: Option<&TenantHandle>,
        row: &Approval,
        emails: &[String],
    ) -> Result<Option<Ineligible>, Error> {
        let mut eligibility = self.as_held(row, emails);
        if !may_call(APPROVE, self.caller) {
            return refusal(Err(eligibility.refuse(IneligibleReason::Role, READS)));
        }
        let may_act = |eligibility: &Eligibility| {
            refusal(eligibility.may_act(tenant, self.caller, &row.acts).map(drop))
        };
        if let Some(why) = may_act(&eligibility)? {
            return Ok(Some(why));
        }
        if let Some(tenant) = tenant {
            let further = tenant.read().delegations_for(&eligibility.subject, &row.action);
            eligibility.chain.extend(further);
        }
        if may_act(&eligibility)?.is_none() {
            return Ok(None);
        }
        may_act(&Eligibility::of(db, self.graph, row, self.now).await?)
    }

    /// The eligibility by the authority under which the request was held.
    fn as_held(&self, row: &Approval, emails: &[String]) -> Eligibility {
        let chain = row.authority.iter().flat_map(|used| &used.chain);
        let people = row.requested_by.iter().filter(|asker| asker.kind == "person");
        let people: Vec<Asker> = people.cloned().collect();
        Eligibility {
            subject: row.subject.as_str().into(),
            chain: chain.map(|id| id.as_str().into()).collect(),
            requesters: self.graph.persons(&row.requested_by, emails),
            askers: self.graph.persons(&people, emails).unwrap_or_default(),
            needed: row.needed,
            roles: row.roles.clone(),
            actors: APPROVERS,
        }
    }

    /// The authority of the requests' tenants, at least as recent as the transaction's snapshot.
    async fn tenants(
        &self,
        db: &mut Db,
        rows: &[Approval],
    ) -> Result<HashMap<String, Option<TenantHandle>>, Error> {
        let mut tenants = HashMap::new();
        for row in rows {
            if !tenants.contains_key(&row.tenant_id) {
                let id = row_id(&row.tenant_id)?;
                let revision = revision(db, &id).await?;
                let tenant = self.graph.tenant_at(&id, revision).await?;
                tenants.insert(row.tenant_id.clone(), tenant);
            }
        }
        Ok(tenants)
    }
}

/// Returns the reason of a refusal. Other errors stay errors.
fn refusal(result: Result<(), Error>) -> Result<Option<Ineligible>, Error> {
    match result {
        Ok(()) => Ok(None),
        Err(Error::NotEligible(why)) => Ok(Some(why)),
        Err(error) => Err(error),
    }
}

/// Returns the e-mail addresses of the people who made each request.
async fn emails(db: &mut Db, rows: &[Approval]) -> QueryResult<HashMap<String, Vec<String>>> {
    let ids: Vec<&str> = rows.iter().map(|row| row.id.as_str()).collect();
    let rows: Vec<(String, Vec<String>)> = approvals::table
        .filter(approvals::id.eq_any(ids))
        .select((approvals::id, approvals::asker_emails))
        .load(db)
        .await?;
    Ok(rows.into_iter().collect())
}
