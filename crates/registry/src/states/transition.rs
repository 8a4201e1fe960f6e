//! Makes one move. It locks the record's head, checks the machine and the move's terms, and writes
//! an event. Concurrent moves of one record are serialised.

use std::sync::Arc;

use authority_model::{
    proto::{
        approval::ApprovalAct,
        states::{CreateStateTransitionRequest, StateEvent, StateMachine, StateRule},
    },
    schema::{
        approvals, decisions, record_versions, state_events, state_heads, state_machines,
        state_proposals,
    },
    wire::Time,
};
use chrono::{DateTime, TimeDelta, Utc};
use diesel::dsl::exists;

use super::{
    step::{AllowedMove, RequestedMove, initial, missing, step},
    two_people::TwoPeople,
};
use crate::flow::{digest::digest, prelude::*, version::tagged};
use authority_api::identity::{Caller, CallerKind};
use authority_evidence::pack::decision_of;
use authority_graph::{Graph, Person, actor};
use authority_ids::{IdParts, RecordId};
use authority_process::clock::Clock;

/// How long a first person's request waits for a second person.
const SECOND_PERSON_WITHIN: TimeDelta = TimeDelta::hours(24);

/// Whether `id` belongs to the tenant, or to a record of another system.
async fn is_of(db: &mut Db, tenant: &TenantId, id: &str) -> QueryResult<bool> {
    let Some(parts) = IdParts::of(id) else { return Ok(true) };
    if parts.tenant_slug.is_some() {
        return Ok(parts.tenant_slug == Some(tenant.slug()));
    }
    // Other IDs do not contain their tenant.
    let decision = decision_of(id).map(String::from).unwrap_or_default();
    let decided = decisions::table.filter(decisions::id.eq(decision));
    let held = approvals::table.filter(approvals::id.eq(id));
    let machine = state_machines::table.filter(state_machines::id.eq(id));
    let event = state_events::table.filter(state_events::id.eq(id));
    let kept = record_versions::table.filter(record_versions::entity_id.eq(id));
    let tenant_id = tenant.as_str();
    let found = diesel::select(
        exists(decided.filter(decisions::tenant_id.eq(tenant_id)))
            .or(exists(held.filter(approvals::tenant_id.eq(tenant_id))))
            .or(exists(machine.filter(state_machines::tenant_id.eq(tenant_id))))
            .or(exists(event.filter(state_events::tenant_id.eq(tenant_id))))
            .or(exists(kept.filter(record_versions::tenant_id.eq(tenant_id)))),
    );
    found.get_result(db).await
}

/// The current state of a record.
#[derive(Queryable, Selectable)]
#[diesel(table_name = state_heads)]
struct RecordHead {
    state: Option<String>,
    sequence: i32,
    digest: Option<String>,
}

/// The request of a first person.
#[derive(Queryable, Selectable)]
#[diesel(table_name = state_proposals)]
struct Proposal {
    sequence: i32,
    trigger: String,
    actor: String,
    person: String,
    compensates_event_id: Option<String>,
    evidence_refs: Vec<String>,
    created_at: DateTime<Utc>,
}

impl Proposal {
    /// Returns the request as an act of the person who made it.
    fn act(&self) -> ApprovalAct {
        let (by, name) = (self.person.clone(), self.actor.clone());
        ApprovalAct { by, name, ..ApprovalAct::default() }
    }
}

pub(super) async fn make(
    registry: &Registry,
    caller: Caller,
    key: Option<IdempotencyKey>,
    request: CreateStateTransitionRequest,
) -> Reply<StateEvent> {
    if request.to_state.is_none() && request.trigger.is_none() {
        return Err(Error::field("to_state", "is required, or `trigger`").into());
    }
    let (clock, by, graph) = (registry.clock.clone(), caller.clone(), Arc::clone(&registry.graph));
    let moved = registry.idempotent(&caller, key, async move |db| {
        Move { db, caller: &by, asked: request, clock: &clock, graph: &graph }.make().await
    });
    let moved = moved.await?;
    // The waiting request is stored, and a repetition gets the same response.
    if moved.message.id.is_empty() {
        return Err(Error::SecondApprover(moved.message.reason.unwrap_or_default()).into());
    }
    Ok(tagged(moved.reply()))
}

fn waiting(rule: &StateRule, actor: &str) -> String {
    format!(
        "`{}` needs two people: waits up to 24 hours for the same request from someone other than {actor}",
        rule.trigger
    )
}

/// Returns a placeholder event without an ID, for a request that waits for a second person.
fn waits(why: String) -> StateEvent {
    StateEvent { reason: Some(why), ..StateEvent::default() }
}

struct Move<'a> {
    db: &'a mut Db,
    caller: &'a Caller,
    asked: CreateStateTransitionRequest,
    /// Read only after the head is locked. The times are then in the order of the events.
    clock: &'a Clock,
    graph: &'a Graph,
}

impl Move<'_> {
    async fn make(mut self) -> Result<StateEvent, Error> {
        let machine =
            StateMachine::find(self.db, self.caller.tenant(), &self.asked.machine_id, false);
        let machine = machine.await.optional()?;
        let machine =
            machine.ok_or_else(|| Error::unknown("machine_id", &self.asked.machine_id))?;
        self.names_its_own(&machine).await?;
        if let Some(state) = self.asked.to_state.as_ref().filter(|s| !machine.states.contains(*s)) {
            let problem = format!("`{state}` is not a state of the machine");
            return Err(Error::field("to_state", problem));
        }
        let head = self.head(&machine).await?;
        let here = head.state.as_deref();
        if let Some(believed) = &self.asked.from_state
            && Some(believed.as_str()) != Some(here.unwrap_or(initial(&machine)))
        {
            let here = here.unwrap_or(initial(&machine));
            return Err(Error::NotAllowed(format!("the record is `{here}`, not `{believed}`")));
        }
        let (trigger, to) = (self.asked.trigger.as_deref(), self.asked.to_state.as_deref());
        let step =
            step(&machine, here, RequestedMove { trigger, to }).map_err(Error::NotAllowed)?;
        let mut first_actor = None;
        if let Some(rule) = step.rule() {
            self.may(rule)?;
            let lacking = missing(rule, &self.asked.evidence_refs);
            if !lacking.is_empty() {
                return Err(Error::NotAllowed(format!(
                    "`{}` needs evidence_refs of these kinds: {}",
                    rule.trigger,
                    lacking
                        .iter()
                        .map(|kind| format!("`{kind}:<reference>`"))
                        .collect::<Vec<_>>()
                        .join(", ")
                )));
            }
            if rule.approvals.unwrap_or(1) > 1 {
                match self.seconds(&machine, &head, rule).await? {
                    Ok(first) => first_actor = Some(first),
                    Err(why) => return Ok(waits(why)),
                }
            }
        }
        let compensates = self.compensated(&machine, step).await?;
        self.write(&machine, &head, step, first_actor, compensates).await
    }

    /// Checks that the event refers only to records of the machine's tenant. IDs of another tenant
    /// count as unknown.
    async fn names_its_own(&mut self, machine: &StateMachine) -> Result<(), Error> {
        // A machine of the installation belongs to its owner, who may refer to any record.
        let Some(tenant_id) = machine.tenant_id.as_deref() else { return Ok(()) };
        let references = self.asked.evidence_refs.iter().enumerate();
        let references = references.map(|(place, reference)| {
            (format!("evidence_refs[{place}]"), IdParts::id_in(reference).unwrap_or_default())
        });
        let named = [("entity_id".to_owned(), self.asked.entity_id.as_str())];
        let tenant = row_id(tenant_id)?;
        for (member, id) in named.into_iter().chain(references) {
            if !is_of(self.db, &tenant, id).await? {
                return Err(Error::unknown(&member, id));
            }
        }
        Ok(())
    }

    /// Locks and returns the record's head. Creates the head of a new record.
    async fn head(&mut self, machine: &StateMachine) -> Result<RecordHead, Error> {
        diesel::insert_into(state_heads::table)
            .values((
                state_heads::machine_id.eq(&machine.id),
                state_heads::entity_id.eq(&self.asked.entity_id),
                state_heads::tenant_id.eq(&machine.tenant_id),
            ))
            .on_conflict_do_nothing()
            .execute(self.db)
            .await?;
        let head = state_heads::table.find((&machine.id, &self.asked.entity_id));
        Ok(head.for_update().select(RecordHead::as_select()).first(self.db).await?)
    }

    fn may(&self, rule: &StateRule) -> Result<(), Error> {
        let may = match &self.caller.kind {
            CallerKind::Owner { .. } => true,
            CallerKind::Member { role, .. } => {
                rule.roles.is_empty() || rule.roles.iter().any(|one| one == role.as_str())
            }
            CallerKind::Key { .. } | CallerKind::Anonymous => false,
        };
        if may {
            return Ok(());
        }
        Err(Error::Role(format!("`{}` is for {}", rule.trigger, rule.roles.join(", "))))
    }

    /// Returns the person who made the same request first. Otherwise stores the request, which then
    /// waits for a second person.
    async fn seconds(
        &mut self,
        machine: &StateMachine,
        head: &RecordHead,
        rule: &StateRule,
    ) -> Result<Result<String, String>, Error> {
        let (place, now) = ((&machine.id, &self.asked.entity_id), self.clock.now());
        let people = TwoPeople::of(self.db, self.graph, machine.tenant_id.as_deref()).await?;
        let identity = self.caller.identity();
        let who = Person { identity: &identity, email: self.caller.email() };
        people.admit(who)?;
        let first: Option<Proposal> = state_proposals::table
            .find(place)
            .select(Proposal::as_select())
            .first(self.db)
            .await
            .optional()?;
        let first = first.filter(|first| {
            first.sequence == head.sequence
                && first.trigger == rule.trigger
                && first.compensates_event_id == self.asked.compensates_event_id
                && now < first.created_at + SECOND_PERSON_WITHIN
                && people.counts(actor(&first.act()))
        });
        if let Some(first) = first {
            let refs = &mut self.asked.evidence_refs;
            // One person may appear under two names.
            let is_same = first.actor.eq_ignore_ascii_case(&self.caller.actor)
                || people.are_one(who, actor(&first.act()))?;
            if is_same {
                // The first request stays. One person with several names then does not count as
                // two.
                return Ok(Err(waiting(rule, &first.actor)));
            }
            let more = first.evidence_refs.into_iter().filter(|one| !refs.contains(one));
            let more: Vec<_> = more.collect();
            refs.extend(more);
            return Ok(Ok(first.actor));
        }
        let values = (
            state_proposals::machine_id.eq(&machine.id),
            state_proposals::entity_id.eq(&self.asked.entity_id),
            state_proposals::tenant_id.eq(&machine.tenant_id),
            state_proposals::sequence.eq(head.sequence),
            state_proposals::trigger.eq(&rule.trigger),
            state_proposals::actor.eq(&self.caller.actor),
            state_proposals::person.eq(&identity),
            state_proposals::compensates_event_id.eq(&self.asked.compensates_event_id),
            state_proposals::evidence_refs.eq(&self.asked.evidence_refs),
            state_proposals::created_at.eq(now),
        );
        diesel::delete(state_proposals::table.find(place)).execute(self.db).await?;
        diesel::insert_into(state_proposals::table).values(values).execute(self.db).await?;
        Ok(Err(waiting(rule, &self.caller.actor)))
    }

    /// Returns the event that the move compensates. It is the requested event, or the last event
    /// with the trigger that the rule names.
    async fn compensated(
        &mut self,
        machine: &StateMachine,
        step: AllowedMove<'_>,
    ) -> Result<Option<String>, Error> {
        let named = self.asked.compensates_event_id.as_deref();
        let wanted = step.rule().map(|rule| (&rule.trigger, rule.compensates.as_deref()));
        if let (Some(_), Some((trigger, None))) = (named, wanted) {
            return Err(Error::NotAllowed(format!("`{trigger}` does not take another move back")));
        }
        let wanted = wanted.and_then(|(_, wanted)| wanted);
        if named.is_none() && wanted.is_none() {
            return Ok(None);
        }
        let mut events = state_events::table
            .filter(state_events::machine_id.eq(&machine.id))
            .filter(state_events::entity_id.eq(&self.asked.entity_id))
            .into_boxed();
        if let Some(id) = named {
            events = events.filter(state_events::id.eq(id));
        }
        if let Some(trigger) = wanted {
            events = events.filter(state_events::trigger.eq(trigger));
        }
        let found = events
            .order(state_events::sequence.desc())
            .select(state_events::id)
            .first::<String>(self.db)
            .await
            .optional()?;
        match (found, named, wanted) {
            (Some(found), ..) => Ok(Some(found)),
            (None, Some(id), _) => Err(Error::field(
                "compensates_event_id",
                format!("`{id}` is not an event of this record that this move can take back"),
            )),
            (None, None, wanted) => Err(Error::NotAllowed(format!(
                "the record has no `{}` to take back",
                wanted.unwrap_or_default()
            ))),
        }
    }

    async fn write(
        &mut self,
        machine: &StateMachine,
        head: &RecordHead,
        step: AllowedMove<'_>,
        first_actor: Option<String>,
        compensates_event_id: Option<String>,
    ) -> Result<StateEvent, Error> {
        let from = match step {
            AllowedMove::Begin(_) => None,
            AllowedMove::Ruled(_) | AllowedMove::Free(_) => {
                Some(head.state.clone().unwrap_or_else(|| initial(machine).to_owned()))
            }
        };
        let mut event = StateEvent {
            id: RecordId::new(StateEvent::KIND, new_id()).into(),
            tenant_id: machine.tenant_id.clone(),
            machine_id: machine.id.clone(),
            entity_id: self.asked.entity_id.clone(),
            sequence: head.sequence.saturating_add(1),
            from_state: from,
            to_state: step.to().to_owned(),
            trigger: step.rule().map(|rule| rule.trigger.clone()),
            actor: self.caller.actor.clone(),
            first_actor,
            reason: self.asked.reason.clone(),
            evidence_refs: self.asked.evidence_refs.clone(),
            compensates_event_id,
            previous_digest: head.digest.clone(),
            digest: String::new(),
            created_at: Some(Time::from(self.clock.now())),
        };
        event.digest = hex::encode(digest(&event, &["digest"])?);
        let place = (&event.machine_id, &event.entity_id);
        diesel::insert_into(state_events::table).values(&event).execute(self.db).await?;
        diesel::update(state_heads::table.find(place))
            .set((
                state_heads::state.eq(&event.to_state),
                state_heads::sequence.eq(event.sequence),
                state_heads::digest.eq(&event.digest),
            ))
            .execute(self.db)
            .await?;
        // The move makes pending requests for this record void.
        diesel::delete(state_proposals::table.find(place)).execute(self.db).await?;
        Ok(event)
    }
}
