//! In every random world, a denial's remedy works if its published fields alone are applied.

use std::{cell::RefCell, collections::BTreeMap, sync::Arc};

use authority_decision::{
    Amount, Bounds, Decision, Draft, Facts, Gathered, Pattern, Request, Verdict, counters_needed,
    decide,
    facts::{ActsIn, Constraints, Delegation, Grant, Purpose, Used, Uses, UsesRow},
    levels::{AccessLevel, DelegationState, RiskTier},
    moment::Window,
    remedy::{Change, Kind, Remedy, smallest},
};
use authority_ids::EntityRef;
use chrono::{DateTime, Utc};
use proptest::{collection::vec, prelude::any};
use serde_json::{Value, json};

use super::{
    agree::{cases, runner},
    worlds::{self, World},
};

/// Returns a purpose that permits every action, for a slug that the world's request does not use.
fn open(slug: &str) -> Arc<Purpose> {
    Arc::new(Purpose {
        id: format!("open-{slug}").into(),
        slug: slug.to_owned(),
        active: true,
        allowed_actions: vec![Pattern::All],
        principal_classes: Vec::new(),
        jurisdictions: Vec::new(),
        window: Window::default(),
    })
}

/// Returns the world's facts for a request that may name another purpose.
fn around(world: &World, other: &Draft) -> Facts {
    let mut gathered = Gathered::clone(&world.facts.gathered);
    if other.purpose != world.draft.purpose {
        gathered.purpose = other.purpose.as_deref().map(open);
    }
    Facts { gathered: gathered.into(), ..world.facts.clone() }
}

/// A world to which changes of a remedy are applied, from their published fields alone.
#[derive(Clone)]
struct After<'w> {
    world: &'w World,
    draft: Draft,
    facts: Facts,
    at: DateTime<Utc>,
    given: Vec<Change>,
}

impl<'w> After<'w> {
    fn all(world: &'w World, changes: &[Change]) -> Self {
        let (draft, facts) = (world.draft.clone(), world.facts.clone());
        let mut after = Self { world, draft, facts, at: world.at, given: Vec::new() };
        changes.iter().for_each(|change| after.make(change));
        after
    }

    fn make(&mut self, change: &Change) {
        if change.kind == Kind::Wait {
            self.at = change.value.as_ref().unwrap().parse().unwrap();
            assert!(self.at > self.world.at, "{change:?}");
        } else if matches!(
            change.kind,
            Kind::Purpose
                | Kind::Amount
                | Kind::Jurisdiction
                | Kind::Delegation
                | Kind::Context
                | Kind::Declaration
        ) {
            say(&mut self.draft, change);
            self.facts = Facts { approval: None, ..around(self.world, &self.draft) };
        } else {
            self.given.push(change.clone());
        }
    }

    fn judged(&self) -> Verdict {
        let mut gathered = Gathered::clone(&self.facts.gathered);
        self.given.iter().for_each(|change| give(&mut gathered, self.world, change));
        let mut facts = Facts { gathered: gathered.into(), ..self.facts.clone() };
        // A window that begins after the denial is unused.
        for key in counters_needed(&facts.gathered, self.at) {
            if key.window_start > self.world.at.timestamp() {
                facts.spent.0.entry(key).or_insert(0);
            }
        }
        decide(&Request::new(self.draft.clone()).unwrap(), &facts, self.at)
    }
}

/// Applies a change that callers make to their request.
fn say(draft: &mut Draft, told: &Change) {
    let value = told.value.clone();
    match told.member.as_deref().unwrap() {
        "purpose" => draft.purpose = value,
        "delegation_id" => draft.delegation_id = value.map(Into::into),
        "resource_id" => draft.resource_id = Some(value.as_deref().unwrap_or("x").into()),
        "workspace_id" => draft.workspace_id = Some(value.as_deref().unwrap_or("x").into()),
        "action_risk_classification.risk_tier" => {
            let mut classified = draft.action_risk_classification.unwrap_or_default();
            classified.risk_tier = RiskTier::from_word(&value.unwrap());
            draft.action_risk_classification = Some(classified);
        }
        "context.amount" => {
            let amount = value.map_or(Amount::from_ten_thousandths(10_000), |v| v.parse().unwrap());
            draft.context.insert("amount".to_owned(), Value::Number(amount.to_number()));
        }
        member => {
            let name = member.strip_prefix("context.").unwrap().to_owned();
            let unknown = match name.as_str() {
                "currency" => "XXX",
                "jurisdiction" => "BV",
                _ => "x",
            };
            draft.context.insert(name, json!(value.as_deref().unwrap_or(unknown)));
        }
    }
}

fn edit(gathered: &mut Gathered, id: &str, change: impl Fn(&mut Delegation)) {
    let links = gathered.delegations.iter_mut().flat_map(|chain| &mut chain.0);
    links.filter(|link| link.id == id).for_each(|link| change(Arc::make_mut(link)));
}

/// Applies a change that users make to the records.
#[track_caller]
fn give(gathered: &mut Gathered, world: &World, told: &Change) {
    let (id, value) = (told.id.clone().unwrap_or_default(), told.value.clone());
    let id = id.as_str();
    let (own, window) = (EntityRef::default(), Window::default());
    match (told.kind, told.member.as_deref().unwrap_or_default()) {
        (Kind::Grant, "granted_access_to") => gathered.grants.push(Arc::new(Grant {
            id: own,
            resource_id: id.into(),
            grantee_id: world.draft.subject.to_string(),
            grantee_kind: "principal".to_owned(),
            access_level: AccessLevel::from_word(&value.unwrap()).unwrap(),
        })),
        (Kind::Grant, "acts_in") => {
            let row = ActsIn { id: own, workspace_id: id.into(), window, allowed_actions: None };
            gathered.acts_in.push(row.into());
        }
        (Kind::Grant, "action") => {
            let constraints = Constraints::Bounds(Bounds::default().into());
            let row = UsesRow { id: own, allowed: true, window, constraints };
            let used = Used::Action(Pattern::Exact(value.unwrap()));
            gathered.uses.push(Uses { row: row.into(), used });
        }
        (Kind::Grant, "actions") => {
            let action = Pattern::Exact(value.unwrap());
            edit(gathered, id, |link| link.actions.push(action.clone()));
        }
        (Kind::Link, "uses") => {
            for uses in gathered.uses.iter_mut().filter(|uses| uses.row.id == id) {
                Arc::make_mut(&mut uses.row).window = window;
            }
        }
        (Kind::Link, "acts_in") => {
            for row in gathered.acts_in.iter_mut().filter(|row| row.id == id) {
                Arc::make_mut(row).window = window;
            }
        }
        (Kind::Link, _) => edit(gathered, id, |link| {
            (link.state, link.window) = (DelegationState::Active, window);
        }),
        (Kind::Principal, _) => {
            let known = gathered.subject.iter_mut().chain(&mut gathered.principals);
            for principal in known.filter(|principal| principal.id == id) {
                Arc::make_mut(principal).active = true;
            }
        }
        (Kind::Stop, _) => gathered.stop_signals.retain(|signal| signal.id != id),
        (Kind::Quarantine, _) => gathered.quarantines.retain(|one| one.id != id),
        (Kind::Denial, _) => {
            gathered.uses.retain(|uses| uses.row.id != id);
            gathered.chain_denials.retain(|row| row.denial.row.id != id);
        }
        other => panic!("{other:?} is not for people"),
    }
}

#[test]
fn a_remedy_turns_the_denial() {
    let seen = RefCell::new(BTreeMap::<Vec<Kind>, usize>::new());
    let outcome = runner(cases(7_000, 300_000)).run(&vec(any::<u8>(), 0..700), |bytes| {
        let world = worlds::draw(&bytes);
        let verdict = After::all(&world, &[]).judged();
        let looked_up = |other: &Request| Some(around(&world, other));
        let told = smallest(&world.request(), &world.facts, world.at, &looked_up, &|| true);
        if verdict.decision != Decision::Deny {
            assert_eq!(told, None);
            return Ok(());
        }
        let kinds = told.iter().flat_map(|told| &told.changes).map(|change| change.kind);
        *seen.borrow_mut().entry(kinds.collect()).or_default() += 1;
        let Some(told) = told else { return Ok(()) };
        check(&world, &told);
        Ok(())
    });
    if let Err(why) = outcome {
        panic!("{why}");
    }
    let seen = seen.into_inner();
    eprintln!("{seen:#?}");
    // In few worlds a stop signal, a quarantine or a budget is the only obstacle. The core's own tests
    // cover them.
    let rare = |kind: &&Kind| !matches!(kind, Kind::Stop | Kind::Quarantine | Kind::Wait);
    for kind in Kind::ALL.iter().filter(rare) {
        assert!(seen.contains_key([*kind].as_slice()), "no world was turned by `{kind}` alone");
    }
    for size in 2..=3 {
        assert!(seen.keys().any(|kinds| kinds.len() == size), "no world needed {size} changes");
    }
}

/// Checks that the changes help, that each one is necessary, and that a larger amount would be
/// denied.
#[track_caller]
fn check(world: &World, told: &Remedy) {
    let then = After::all(world, &told.changes).judged();
    assert_ne!(then.decision, Decision::Deny, "{told:#?}");
    assert_eq!((then.decision, then.reason_code), (told.decision, told.reason_code));
    assert!((1..=3).contains(&told.changes.len()), "{told:#?}");
    for place in 0..told.changes.len() {
        let mut fewer = told.changes.clone();
        fewer.remove(place);
        let without = After::all(world, &fewer).judged();
        assert_eq!(without.decision, Decision::Deny, "change {place} is unnecessary: {told:#?}");
    }
    let last = told.changes.last().unwrap();
    if last.kind == Kind::Amount {
        let units = last.value.as_ref().unwrap().parse::<Amount>().unwrap().ten_thousandths();
        let above = Amount::from_ten_thousandths(units + 1).to_string();
        let mut more = told.changes.clone();
        more.last_mut().unwrap().value = Some(above);
        let verdict = After::all(world, &more).judged();
        assert_eq!(verdict.decision, Decision::Deny, "{told:#?}");
    }
}
