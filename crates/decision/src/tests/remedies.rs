//! Tests the changes that a denial's remedy suggests, for each kind of change.

use serde_json::Value;

use super::*;
use crate::{
    CompiledPolicy, PolicyReference,
    facts::bounds::{MaxTotalAmount, MaxUses},
    levels::RiskTier,
    verdict::remedy::{Change, Kind, Remedy, smallest},
};

fn remedy(world: &World) -> Option<Remedy> {
    let facts = world.facts();
    let around = |other: &Request| {
        let mut gathered = Gathered::clone(&facts.gathered);
        let known = |slug: &&String| ["payroll", "refunds"].contains(&slug.as_str());
        gathered.purpose = other.purpose.as_ref().filter(known).map(|slug| {
            let sound = sound_facts().purpose.unwrap();
            Purpose { slug: slug.clone(), ..Purpose::clone(&sound) }.into()
        });
        Some(Facts { gathered: gathered.into(), ..facts.clone() })
    };
    smallest(&Request::new(world.draft.clone()).unwrap(), &facts, now(), &around, &|| true)
}

/// Spoils the sound world, and returns the only change that the remedy of the denial suggests.
fn told(spoil: impl FnOnce(&mut World)) -> Named {
    let mut world = World::sound();
    spoil(&mut world);
    let denied = world.decide();
    assert_eq!(denied.decision, Decision::Deny, "{denied:#?}");
    let found = remedy(&world).unwrap_or_else(|| panic!("no remedy for {denied:#?}"));
    assert_ne!(found.decision, Decision::Deny);
    let [only] = found.changes.as_slice() else { panic!("expected one change: {found:#?}") };
    assert!(only.sentence.len() > 10, "{found:#?}");
    named(only)
}

type Named = (Kind, String, Option<String>, Option<String>);

fn named(change: &Change) -> Named {
    let Change { kind, member, value, id, .. } = change.clone();
    (kind, member.unwrap_or_default(), value, id)
}

/// Like [`told`], for a remedy with several changes. Returns them sorted by kind.
fn all(spoil: impl FnOnce(&mut World)) -> Vec<Named> {
    let mut world = World::sound();
    spoil(&mut world);
    assert_eq!(world.decide().decision, Decision::Deny);
    let found = remedy(&world).unwrap_or_else(|| panic!("no remedy for {:#?}", world.decide()));
    assert_ne!(found.decision, Decision::Deny);
    let mut changes: Vec<_> = found.changes.iter().map(named).collect();
    changes.sort();
    changes
}

fn is(kind: Kind, member: &str, value: Option<&str>, id: Option<&str>) -> Named {
    (kind, member.to_owned(), value.map(str::to_owned), id.map(str::to_owned))
}

fn amount(text: &str) -> super::super::Amount {
    text.parse().unwrap()
}

fn forbid(world: &mut World, condition: &str) {
    let reference = PolicyReference {
        id: "pol-1".into(),
        version: 1,
        sha256: String::new(),
        applies_to: Vec::new(),
        effective: Window::default(),
    };
    let text = format!("forbid(principal, action, resource) when {{ {condition} }};");
    world.gathered.policies.push(CompiledPolicy::compile(reference, &text).unwrap().into());
}

#[test]
fn another_purpose_that_the_delegation_is_bound_to() {
    let bound = |w: &mut World| {
        w.link(1).bounds.purposes = vec!["travel".to_owned(), "refunds".to_owned()];
    };
    let refunds = is(Kind::Purpose, "purpose", Some("refunds"), None);
    assert_eq!(told(bound), refunds);
    let none = |w: &mut World| {
        bound(w);
        w.draft.purpose = None;
    };
    assert_eq!(told(none), refunds);
}

#[test]
fn the_largest_amount_that_passes() {
    let at_most = |text| is(Kind::Amount, "context.amount", Some(text), None);
    let bound = |w: &mut World| w.link(1).bounds.max_amount = Some(amount("50.5"));
    assert_eq!(told(bound), at_most("50.5"));
    let total = |w: &mut World| {
        let max = MaxTotalAmount { amount: amount("80"), window_seconds: 3600 };
        w.link(0).bounds.max_total_amount = Some(max);
        w.spent = Some(299_999);
    };
    assert_eq!(told(total), at_most("50.0001"));
    let over = |text: &str| format!("context.amount.greaterThan(decimal(\"{text}\"))");
    assert_eq!(told(|w| forbid(w, &over("42.1234"))), at_most("42.1234"));
    let both = |w: &mut World| {
        bound(w);
        forbid(w, &over("7.0"));
    };
    assert_eq!(told(both), at_most("7"));
    // A double cannot represent every ten-thousandth here.
    let huge = |w: &mut World| {
        w.draft.context.insert("amount".to_owned(), 900_000_000_000_000_i64.into());
        w.link(0).bounds.max_amount = Some(amount("800000000000000.1234"));
    };
    assert_eq!(told(huge), at_most("800000000000000"));
}

/// Ten uses an hour, and one a day.
fn exhausted(w: &mut World, daily: u32) {
    w.link(0).bounds.max_uses = Some(MaxUses { count: 10, window_seconds: 3600 });
    w.link(1).bounds.max_uses = Some(MaxUses { count: daily, window_seconds: 86_400 });
    w.spent = Some(10);
}

#[test]
fn waiting_for_the_first_window_that_helps() {
    let at = |text| is(Kind::Wait, "", Some(text), None);
    assert_eq!(told(|w| exhausted(w, 100)), at("2026-01-05T11:00:00Z"));
    assert_eq!(told(|w| exhausted(w, 10)), at("2026-01-06T00:00:00Z"));
    // The delegation has expired by then, or its hours are over.
    let late = |w: &mut World| {
        exhausted(w, 10);
        w.link(0).window.until = Some(moment("2026-01-05T23:59:59Z"));
    };
    let closed = |w: &mut World| {
        exhausted(w, 10);
        let hours =
            json!({"utc_offset": "Z", "days": ["mon", "tue"], "from": "08:00", "to": "18:00"});
        w.link(1).bounds.hours = serde_json::from_value(hours).unwrap();
    };
    // No window permits a use.
    let never = |w: &mut World| {
        exhausted(w, 0);
    };
    for spoil in [late, closed, never] {
        let mut world = World::sound();
        spoil(&mut world);
        assert_eq!(world.decide().reason_code, Reason::ConstraintExceeded);
        let found = remedy(&world);
        let waits = found.iter().flat_map(|found| &found.changes);
        assert!(!waits.clone().any(|change| change.kind == Kind::Wait), "{found:#?}");
    }
}

#[test]
fn a_jurisdiction_of_all_of_them() {
    let spoilt = |w: &mut World| {
        w.link(1).bounds.jurisdictions = vec!["GB".to_owned(), "FR".to_owned()];
        Arc::make_mut(w.gathered.purpose.as_mut().unwrap()).jurisdictions = vec!["FR".to_owned()];
    };
    assert_eq!(told(spoilt), is(Kind::Jurisdiction, "context.jurisdiction", Some("FR"), None));
}

#[test]
fn another_delegation_of_the_subjects() {
    let other = |w: &mut World, delegate: &str| {
        w.link(0).state = DelegationState::Revoked;
        let other = link("del-9", None, HUMAN, delegate);
        w.gathered.delegations.push(Chain(vec![other.into()]));
    };
    let found = told(|w| other(w, SUBJECT));
    assert_eq!(found, is(Kind::Delegation, "delegation_id", Some("del-9"), Some("del-9")));
    // A delegation of another agent is never proposed.
    assert_eq!(told(|w| other(w, PARENT_AGENT)).0, Kind::Link);
    let beside = |w: &mut World| {
        w.link(0).state = DelegationState::Revoked;
        w.draft.resource_id = None;
        w.uses("uses-1", Used::Action(Pattern::All));
    };
    assert_eq!(told(beside), is(Kind::Delegation, "delegation_id", None, None));
}

#[test]
fn access_at_the_least_level() {
    let without = |id: &'static str| {
        move |w: &mut World| w.gathered.grants.retain(|grant| grant.resource_id != id)
    };
    let grant = |value, id| is(Kind::Grant, "granted_access_to", Some(value), Some(id));
    assert_eq!(told(without("res-1")), grant("execute", "res-1"));
    assert_eq!(told(without("proj-1")), grant("execute", "proj-1"));
    let level = |w: &mut World| {
        without("res-1")(w);
        Arc::make_mut(w.gathered.tool.as_mut().unwrap()).access_level = Some(AccessLevel::Read);
    };
    assert_eq!(told(level), grant("read", "res-1"));
    let workspace = |w: &mut World| w.gathered.acts_in.clear();
    assert_eq!(told(workspace), is(Kind::Grant, "acts_in", None, Some("ws-1")));
}

#[test]
fn the_action_where_nothing_covers_it() {
    let action = Some("payment.execute");
    let nothing = |w: &mut World| {
        w.gathered.delegations.clear();
        (w.draft.delegation_id, w.draft.resource_id) = (None, None);
    };
    assert_eq!(told(nothing), is(Kind::Grant, "action", action, None));
    let elsewhere = |w: &mut World| w.link(1).actions = patterns(&["report.*"]);
    assert_eq!(told(elsewhere), is(Kind::Grant, "actions", action, Some("del-0")));
}

#[test]
fn a_link_that_is_not_in_force() {
    let found = |member| is(Kind::Link, member, None, Some("del-0"));
    let (early, late) = (moment("2026-01-01T00:00:00Z"), moment("2027-01-01T00:00:00Z"));
    assert_eq!(told(|w| w.link(1).window.until = Some(early)), found("expires_at"));
    assert_eq!(told(|w| w.link(1).window.from = Some(late)), found("not_before"));
    assert_eq!(told(|w| w.link(1).state = DelegationState::Suspended), found("state"));
    assert_eq!(told(|w| w.link(1).state = DelegationState::Revoked), found("state"));
    let expired = |w: &mut World| {
        w.gathered.delegations.clear();
        (w.draft.delegation_id, w.draft.resource_id) = (None, None);
        w.uses("uses-1", Used::Action(Pattern::All)).window.until = Some(early);
    };
    assert_eq!(told(expired), is(Kind::Link, "uses", None, Some("uses-1")));
    let left = |w: &mut World| {
        Arc::make_mut(&mut w.gathered.acts_in[0]).window.until = Some(early);
        w.draft.workspace_id = None;
        w.draft.project_id = None;
        w.draft.resource_id = None;
        w.draft.delegation_id = None;
        w.gathered.delegations.clear();
        Arc::make_mut(&mut w.gathered.acts_in[0]).allowed_actions = Some(patterns(&["*"]));
        w.draft.workspace_id = Some("ws-1".into());
    };
    // A new membership does not give authority. The old one did.
    assert_eq!(told(left), is(Kind::Link, "acts_in", None, Some("acts-1")));
}

#[test]
fn somebody_who_is_not_active() {
    let found = |id| is(Kind::Principal, "state", Some("active"), Some(id));
    let suspended = |w: &mut World| {
        Arc::make_mut(w.gathered.subject.as_mut().unwrap()).active = false;
    };
    assert_eq!(told(suspended), found(SUBJECT));
    let left = |w: &mut World| Arc::make_mut(&mut w.gathered.principals[0]).active = false;
    assert_eq!(told(left), found(HUMAN));
}

#[test]
fn a_member_that_is_missing() {
    let missing = |member, value| is(Kind::Context, member, value, None);
    let requires = |name: &'static str| {
        told(move |w| {
            let tool = Arc::make_mut(w.gathered.tool.as_mut().unwrap());
            tool.requires = vec!["amount".to_owned(), name.to_owned()];
        })
    };
    assert_eq!(requires("iban"), missing("context.iban", None));
    let no_amount = |w: &mut World| {
        w.draft.context.remove("amount");
        w.link(0).bounds.max_amount = Some(amount("50"));
    };
    assert_eq!(told(no_amount), missing("context.amount", Some("50")));
    let currency = |w: &mut World| w.link(0).bounds.currency = Some("USD".to_owned());
    assert_eq!(told(currency), missing("context.currency", Some("USD")));
    let untold = |w: &mut World| {
        w.draft.workspace_id = None;
        w.link(0).bounds.workspace_ids = vec!["ws-2".into(), "ws-1".into()];
    };
    assert_eq!(told(untold), missing("workspace_id", Some("ws-1")));
}

#[test]
fn a_risk_that_is_not_declared() {
    let ceiling = |w: &mut World| w.link(0).bounds.max_risk_tier = Some(RiskTier::Limited);
    let member = "action_risk_classification.risk_tier";
    assert_eq!(told(ceiling), is(Kind::Declaration, member, Some("limited"), None));
}

#[test]
fn what_people_have_forbidden() {
    let signal = |id: &str| {
        let (id, actor_id) = (id.into(), SUBJECT.into());
        Arc::new(StopSignal { id, actor_id })
    };
    let stopped = |w: &mut World| w.gathered.stop_signals.push(signal("stop-1"));
    assert_eq!(told(stopped), is(Kind::Stop, "", None, Some("stop-1")));
    let set_aside = |w: &mut World| {
        let (id, subject_id) = ("q-1".into(), Some(SUBJECT.into()));
        let quarantine = Quarantine { id, subject_id, action: None, delegation_id: None };
        w.gathered.quarantines.push(quarantine.into());
    };
    assert_eq!(told(set_aside), is(Kind::Quarantine, "", None, Some("q-1")));
    let denied = |w: &mut World| {
        w.uses("uses-1", Used::Action(Pattern::All)).allowed = false;
    };
    assert_eq!(told(denied), is(Kind::Denial, "uses", None, Some("uses-1")));
}

#[test]
fn two_things_that_are_wrong() {
    let at_most = |text| is(Kind::Amount, "context.amount", Some(text), None);
    let france = is(Kind::Jurisdiction, "context.jurisdiction", Some("FR"), None);
    let place = |w: &mut World| w.link(1).bounds.jurisdictions = vec!["FR".to_owned()];
    let amount_and_place = |w: &mut World| {
        place(w);
        w.link(0).bounds.max_amount = Some(amount("50"));
    };
    assert_eq!(all(amount_and_place), [at_most("50"), france.clone()]);
    // A policy's limit also counts.
    let policy_and_place = |w: &mut World| {
        place(w);
        forbid(w, "context.amount.greaterThan(decimal(\"42.5\"))");
    };
    assert_eq!(all(policy_and_place), [at_most("42.5"), france]);
    // A change of the request and a change of authority, with either check first.
    let early = moment("2026-01-01T00:00:00Z");
    let purpose = is(Kind::Purpose, "purpose", Some("refunds"), None);
    let expired = is(Kind::Link, "expires_at", None, Some("del-0"));
    let bound = |w: &mut World| w.link(0).bounds.purposes = vec!["refunds".to_owned()];
    let both = |w: &mut World| {
        bound(w);
        w.link(1).window.until = Some(early);
    };
    assert_eq!(all(both), [purpose.clone(), expired]);
    let without = |w: &mut World| {
        bound(w);
        w.gathered.grants.retain(|grant| grant.resource_id != "res-1");
    };
    let access = is(Kind::Grant, "granted_access_to", Some("execute"), Some("res-1"));
    assert_eq!(all(without), [purpose, access]);
    // Two changes of the same kind.
    let currency = |w: &mut World| {
        w.link(0).bounds.currency = Some("USD".to_owned());
        w.link(0).bounds.workspace_ids = vec!["ws-2".into()];
        w.draft.workspace_id = None;
        w.gathered.workspace = Some(Arc::new(Workspace { id: "ws-2".into(), live: true }));
        w.draft.project_id = None;
        let row = ActsIn::clone(&w.gathered.acts_in[0]);
        w.gathered.acts_in[0] = ActsIn { workspace_id: "ws-2".into(), ..row }.into();
    };
    let said = |member, value| is(Kind::Context, member, Some(value), None);
    assert_eq!(all(currency), [said("context.currency", "USD"), said("workspace_id", "ws-2")]);
    let signal = |id: &str| {
        let (id, actor_id) = (id.into(), SUBJECT.into());
        Arc::new(StopSignal { id, actor_id })
    };
    let stopped =
        |w: &mut World| w.gathered.stop_signals = vec![signal("stop-1"), signal("stop-2")];
    let lifted = |id| is(Kind::Stop, "", None, Some(id));
    assert_eq!(all(stopped), [lifted("stop-1"), lifted("stop-2")]);
}

#[test]
fn three_things_that_are_wrong_and_no_more() {
    let early = moment("2026-01-01T00:00:00Z");
    let three = |w: &mut World| {
        w.link(1).bounds.purposes = vec!["refunds".to_owned()];
        w.link(1).bounds.jurisdictions = vec!["FR".to_owned()];
        w.link(0).bounds.max_amount = Some(amount("50"));
    };
    let wanted = [
        is(Kind::Purpose, "purpose", Some("refunds"), None),
        is(Kind::Amount, "context.amount", Some("50"), None),
        is(Kind::Jurisdiction, "context.jurisdiction", Some("FR"), None),
    ];
    assert_eq!(all(three), wanted);
    let people = |w: &mut World| {
        w.link(0).state = DelegationState::Suspended;
        w.link(1).window.until = Some(early);
        Arc::make_mut(&mut w.gathered.principals[0]).active = false;
    };
    let wanted = [
        is(Kind::Link, "expires_at", None, Some("del-0")),
        is(Kind::Link, "state", None, Some("del-1")),
        is(Kind::Principal, "state", Some("active"), Some(HUMAN)),
    ];
    assert_eq!(all(people), wanted);
    let mut world = World::sound();
    three(&mut world);
    world.link(0).window.until = Some(early);
    assert_eq!(remedy(&world), None, "four changes are too many");
}

#[test]
fn remedies_do_not_circumvent_policies() {
    let mut world = World::sound();
    assert_eq!(remedy(&world), None, "it is permitted");
    forbid(&mut world, "true");
    assert_eq!(remedy(&world), None);
    world.draft.context.insert("note".to_owned(), Value::Null);
    world.draft.explain = true;
    assert_eq!(remedy(&world), None);
}
