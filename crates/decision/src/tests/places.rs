//! Tests places, objects of other workspaces, people anywhere in a chain, and amounts below zero.

use super::*;
use crate::{
    CompiledPolicy, PolicyReference,
    facts::{delegation::exceeds, records::StopSignal},
};

fn at(world: &mut World, place: &str) {
    world.draft.context.insert("jurisdiction".to_owned(), json!(place));
}

#[test]
fn a_country_covers_its_subdivisions_in_bounds_and_purposes() {
    let bound = |code: &str, place: &str| {
        code_of(|w| w.link(1).bounds.jurisdictions = vec![code.to_owned()], place)
    };
    assert_eq!(bound("DE", "DE-BY"), Reason::PermissionGranted);
    assert_eq!(bound("DE-BY", "DE-BY"), Reason::PermissionGranted);
    assert_eq!(bound("DE-BY", "DE"), Reason::JurisdictionUnsupported);
    assert_eq!(bound("DE-BY", "DE-BE"), Reason::JurisdictionUnsupported);
    assert_eq!(bound("FR", "DE-BY"), Reason::JurisdictionUnsupported);
    let admitted = |code: &str, place: &str| {
        let list = vec![code.to_owned()];
        code_of(|w| Arc::make_mut(w.gathered.purpose.as_mut().unwrap()).jurisdictions = list, place)
    };
    assert_eq!(admitted("DE", "DE-BY"), Reason::PermissionGranted);
    assert_eq!(admitted("DE-BY", "DE"), Reason::JurisdictionUnsupported);
}

fn code_of(spoil: impl FnOnce(&mut World), place: &str) -> Reason {
    code(|world| {
        at(world, place);
        spoil(world);
    })
}

#[test]
fn a_child_may_be_bound_to_a_part_of_its_parents_country() {
    let excess = |parent: &[&str], child: &[&str]| {
        let list = |codes: &[&str]| codes.iter().map(|code| (*code).to_owned()).collect();
        let mut above = link("del-0", None, HUMAN, PARENT_AGENT);
        let mut below = link("del-1", Some("del-0"), PARENT_AGENT, SUBJECT);
        above.bounds.jurisdictions = list(parent);
        below.bounds.jurisdictions = list(child);
        !exceeds(&above, &below, &|_| Vec::new()).is_empty()
    };
    assert!(!excess(&["DE"], &["DE-BY"]) && !excess(&["DE", "FR"], &["DE-BY", "FR"]));
    assert!(excess(&["DE-BY"], &["DE"]) && excess(&["DE-BY"], &["DE-BE"]));
    assert!(excess(&["DE"], &[]) && !excess(&[], &["DE"]));
}

fn policy(target: &str, text: &str) -> Arc<CompiledPolicy> {
    let reference = PolicyReference {
        id: "pol-1".into(),
        version: 1,
        sha256: String::new(),
        applies_to: vec![target.parse().unwrap()],
        effective: Window::default(),
    };
    CompiledPolicy::compile(reference, text).unwrap().into()
}

#[test]
fn a_place_in_a_target_matches_where_either_covers_the_other() {
    let denied = |target: &str, place: Option<&str>| {
        code(|w| {
            w.gathered.policies = vec![policy(target, "forbid(principal, action, resource);")];
            w.draft.context.remove("jurisdiction");
            if let Some(place) = place {
                at(w, place);
            }
        }) == Reason::PolicyDenied
    };
    assert!(denied("jurisdiction:DE", Some("DE-BY")) && denied("jurisdiction:DE", Some("DE")));
    assert!(denied("jurisdiction:DE-BY", Some("DE")) && denied("jurisdiction:DE-BY", None));
    assert!(!denied("jurisdiction:DE-BY", Some("DE-BE")));
    assert!(!denied("jurisdiction:DE", Some("FR-75")));
    assert!(denied("jurisdiction:DEU", Some("FR")), "a stored target of another form matches");
}

#[test]
fn policies_see_the_country_and_the_subdivision() {
    let judged = |condition: &str, place: &str| {
        let text = format!("forbid(principal, action, resource) when {{ {condition} }};");
        code(|w| {
            at(w, place);
            w.gathered.policies = vec![policy("*", &text)];
        })
    };
    let (country, part) = (
        "context.jurisdiction == \"DE\"",
        "context has subdivision && \
        context.subdivision == \"DE-BY\"",
    );
    assert_eq!(judged(country, "DE-BY"), Reason::PolicyDenied);
    assert_eq!(judged(country, "FR"), Reason::PermissionGranted);
    assert_eq!(judged(part, "DE-BY"), Reason::PolicyDenied);
    assert_eq!(judged(part, "DE"), Reason::PermissionGranted);
    // A policy stored before such texts were refused on write. It cannot have its apparent meaning.
    let never = "context.jurisdiction == \"DE-BY\"";
    assert_eq!(judged(never, "FR"), Reason::RuleError);
    let text = format!(
        "permit(principal, action, resource);\nforbid(principal, action, resource) \
        when {{ {never} }};"
    );
    let reference = policy("*", "permit(principal, action, resource);").reference.clone();
    let refused = CompiledPolicy::check(reference, &text).unwrap_err();
    assert_eq!(refused.line, 2);
    assert!(refused.problem.contains("context.subdivision"), "{refused}");
}

#[test]
fn things_of_another_workspace_are_out_of_reach_where_one_is_named() {
    let resource = |own: Option<&str>, named: Option<&str>| {
        code(|w| {
            let own = own.map(Into::into);
            Arc::make_mut(w.gathered.resource.as_mut().unwrap()).workspace_id = own;
            w.draft.workspace_id = named.map(Into::into);
        })
    };
    assert_eq!(resource(Some("ws-1"), Some("ws-1")), Reason::PermissionGranted);
    assert_eq!(resource(Some("ws-2"), Some("ws-1")), Reason::ResourceAccessMissing);
    assert_eq!(resource(Some("ws-2"), None), Reason::PermissionGranted);
    let tool = |own: Option<&str>, named: Option<&str>| {
        code(|w| {
            let own = own.map(Into::into);
            Arc::make_mut(w.gathered.tool.as_mut().unwrap()).workspace_id = own;
            w.draft.workspace_id = named.map(Into::into);
        })
    };
    assert_eq!(tool(Some("ws-1"), Some("ws-1")), Reason::PermissionGranted);
    assert_eq!(tool(Some("ws-2"), Some("ws-1")), Reason::ToolMismatch);
    assert_eq!(tool(Some("ws-2"), None), Reason::PermissionGranted);
}

#[test]
fn listed_things_are_resources_and_projects() {
    let bound = |list: &[&str], resource: bool, project: bool| {
        code(|w| {
            w.link(0).bounds.resource_ids = list.iter().map(|id| (*id).into()).collect();
            w.draft.resource_id = w.draft.resource_id.take().filter(|_| resource);
            w.draft.project_id = w.draft.project_id.take().filter(|_| project);
        })
    };
    let (granted, exceeded) = (Reason::PermissionGranted, Reason::ConstraintExceeded);
    assert_eq!(bound(&["proj-1"], false, true), granted);
    assert_eq!(bound(&["res-1"], true, false), granted);
    assert_eq!(bound(&["res-1", "proj-1"], true, true), granted);
    assert_eq!(bound(&["proj-1"], true, true), exceeded);
    assert_eq!(bound(&["res-1"], true, true), exceeded);
    assert_eq!(bound(&["res-1", "proj-1"], false, false), exceeded);
}

#[test]
fn signals_and_quarantines_reach_anyone_in_the_chain() {
    let (granted, stopped) = (Reason::PermissionGranted, Reason::ActorStopped);
    for (who, found) in
        [(SUBJECT, stopped), (PARENT_AGENT, stopped), (HUMAN, stopped), ("svc:agent:t:x", granted)]
    {
        let signal = StopSignal { id: "stop-1".into(), actor_id: who.into() };
        assert_eq!(code(|w| w.gathered.stop_signals.push(signal.into())), found, "{who}");
        let quarantine = Quarantine {
            id: "quarantine-1".into(),
            subject_id: Some(who.into()),
            action: None,
            delegation_id: None,
        };
        let isolated = code(|w| w.gathered.quarantines.push(quarantine.into()));
        assert_eq!(isolated == Reason::CapabilityQuarantined, found == stopped, "{who}");
    }
}

#[test]
fn an_amount_below_zero_is_denied_whatever_the_bounds() {
    let asked = |amount: serde_json::Value| {
        code(|w| drop(w.draft.context.insert("amount".to_owned(), amount)))
    };
    assert_eq!(asked(json!(-0.0001)), Reason::ConstraintExceeded);
    assert_eq!(asked(json!(-1_000_000)), Reason::ConstraintExceeded);
    assert_eq!(asked(json!(0)), Reason::PermissionGranted);
    assert_eq!(asked(json!(-0.0)), Reason::PermissionGranted);
}

#[test]
fn a_code_of_another_list_is_denied_whatever_is_bound_and_no_bound_matches_it() {
    let unbound = |place: &str| code_of(|w| w.link(1).bounds.jurisdictions.clear(), place);
    let free = |place: &str| {
        code_of(
            |w| {
                w.gathered.delegations.iter_mut().for_each(|chain| {
                    chain
                        .0
                        .iter_mut()
                        .for_each(|link| Arc::make_mut(link).bounds.jurisdictions.clear());
                });
                Arc::make_mut(w.gathered.purpose.as_mut().unwrap()).jurisdictions.clear();
            },
            place,
        )
    };
    assert_eq!(free("GB"), Reason::PermissionGranted);
    for place in ["UK", "EL", "EU", "XX", "SU", "UK-SCT", "ZZ-1"] {
        assert_eq!(free(place), Reason::JurisdictionUnsupported, "{place}");
        assert_eq!(unbound(place), Reason::JurisdictionUnsupported, "{place}");
        let own = vec![place.to_owned()];
        let bound = code_of(|w| w.link(1).bounds.jurisdictions = own, place);
        assert_eq!(bound, Reason::JurisdictionUnsupported, "{place}");
    }
    // A stored target with such a code may mean any place. Its policy therefore applies.
    let denied = code(|w| {
        at(w, "FR");
        w.gathered.policies =
            vec![policy("jurisdiction:UK", "forbid(principal, action, resource);")];
    });
    assert_eq!(denied, Reason::PolicyDenied);
}

#[test]
fn what_stays_is_no_wider_even_if_it_means_nothing() {
    let mut stored = link("del-0", None, HUMAN, SUBJECT);
    stored.bounds.jurisdictions = vec!["UK".to_owned(), "DE".to_owned()];
    let mut tighter = stored.clone();
    tighter.can_delegate = false;
    let widens = |new: &_| crate::facts::delegation::widens(&stored, new, &|_| Vec::new());
    assert_eq!(widens(&tighter), []);
    tighter.bounds.jurisdictions = vec!["GB".to_owned()];
    assert_eq!(widens(&tighter).len(), 1);
}
