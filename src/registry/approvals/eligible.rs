//! Who may act: nobody approves for themselves. Judged on authority that stays as it is until the act has
//! committed, so that a suspension, a rotated key or an asker that commits before binds.

use authority_model::{
    proto::approval::{Approval, Asker},
    schema::decisions,
};
use chrono::{DateTime, Utc};

use super::{super::prelude::*, judge};
use authority_decision::{Draft, verdict::AuthorityUsed};
use authority_engine::{
    evidence::sealed,
    graph::{Approver, Asked, Cell, Graph},
    identity::{Standing, api_key},
};

/// What is acted on, as far as it says who may.
pub(in super::super) struct Eligibility {
    /// The principal that would act.
    pub(in super::super) subject: String,
    /// The delegations that it would act under.
    pub(in super::super) chain: Vec<String>,
    pub(in super::super) requested_by: Vec<Asker>,
    /// How many people are needed; a delegation's standing approval is for a need of one at least.
    pub(in super::super) needed: i32,
    /// Roles that must be among them.
    pub(in super::super) roles: Vec<String>,
}

impl Eligibility {
    /// That of a held question: under the delegations that it was held under, and those that it would be
    /// asked under at present.
    pub(super) async fn of(
        db: &mut Db,
        graph: &Graph,
        approval: &Approval,
        now: DateTime<Utc>,
    ) -> Result<Self, Error> {
        let (record, context): (Vec<u8>, Vec<u8>) = decisions::table
            .find(&approval.decision_id)
            .select((decisions::record, decisions::context))
            .first(db)
            .await?;
        let mut chain = sealed::authority(&record)?.chain;
        // A question that was erased is asked under nothing any more, and nobody can approve it.
        if let Ok(held) = sealed::request(&record, &context) {
            let held = Draft { approval_id: None, ..held.into_draft() };
            // Counters too: what is spent by now, or free again, moves a question to another authority.
            let (asked, facts) = judge::at_present(db, graph, held, now).await?;
            let present: Option<AuthorityUsed> =
                authority_decision::decide(&asked, &facts, now).authority;
            chain.extend(present.into_iter().flat_map(|used| used.chain));
        }
        Ok(Self {
            subject: approval.subject.clone(),
            chain,
            requested_by: approval.requested_by.clone(),
            needed: approval.needed,
            roles: approval.roles.clone(),
        })
    }

    /// Whether the caller may act, and whether they do so in their own interest, which the tenant's
    /// `self_approval` lets them.
    pub(super) fn may_act(
        &self,
        graph: &Graph,
        cell: Option<&Cell>,
        caller: &Caller,
    ) -> Result<bool, Error> {
        let (Standing::Owner { subject, email, .. } | Standing::Member { subject, email, .. }) =
            &caller.standing
        else {
            return Err(Error::Role("only a person approves or declines".to_owned()));
        };
        let cell = cell.ok_or_else(|| self.refuse("the tenant is not there"))?;
        let asked_by = people(graph, &self.requested_by);
        let asked_by = asked_by.ok_or_else(|| self.refuse("an API key that asked is not there"))?;
        let identity = caller.identity();
        let who = Approver { identity: &identity, subject, email: email.as_deref() };
        let asked = Asked { subject: &self.subject, chain: &self.chain, by: &asked_by };
        let tenant = cell.read();
        let Some(barrier) = tenant.barrier(asked, who) else { return Ok(false) };
        let self_approves = tenant.profile.self_approval && barrier.is_own_interest();
        if self_approves && self.needed == 1 {
            return Ok(true);
        }
        let mut rule = barrier.to_string();
        if self_approves {
            rule += "; the tenant's `self_approval` is for where one approval is needed";
        }
        Err(self.refuse(&rule))
    }

    /// Says which rule, and who could instead: roles, no names.
    pub(super) fn refuse(&self, rule: &str) -> Error {
        let mut text = format!(
            "{rule}; it takes somebody else: a person of the tenant in the role approver, legal or \
             admin, or the installation's owner, who neither asked nor made or rotated the API key \
             that did, who is not the agent, owns none in the chain and delegated nothing in it"
        );
        for role in &self.roles {
            text.push_str("; one of those who approve must be in the role ");
            text.push_str(role);
        }
        Error::NotEligible(text)
    }
}

/// For whom the askers stand; none where one of them cannot be told.
pub(super) fn people(graph: &Graph, askers: &[Asker]) -> Option<Vec<String>> {
    let mut people = Vec::new();
    for asker in askers {
        if asker.kind == "person" {
            people.push(asker.id.clone());
        } else {
            let key = graph.api_key(api_key::public_id(&asker.id))?;
            people.extend(key.people.iter().cloned());
        }
    }
    Some(people)
}
