//! Tests each row of stage 1's table.

use super::*;
use crate::{
    Amount,
    authority::used::AuthorityKind,
    facts::bounds::{MaxTotalAmount, MaxUses},
    levels::RiskTier,
    request::draft::{ActionDeclaration, ActionRiskClassification},
};

fn edit<T: Clone>(shared: &mut Option<Arc<T>>, change: impl FnOnce(&mut T)) {
    change(Arc::make_mut(shared.as_mut().unwrap()));
}

#[test]
fn tenant_and_subject() {
    assert_eq!(code(|w| w.gathered.tenant = None), Reason::TenantInactive);
    assert_eq!(
        code(|w| edit(&mut w.gathered.tenant, |t| t.active = false)),
        Reason::TenantInactive
    );
    let foreign = |t: &mut Tenant| t.id = "svc:tenant:other".into();
    assert_eq!(code(|w| edit(&mut w.gathered.tenant, foreign)), Reason::TenantInactive);
    assert_eq!(code(|w| w.gathered.subject = None), Reason::SubjectUnknown);
    let suspend = |s: &mut Principal| s.active = false;
    assert_eq!(code(|w| edit(&mut w.gathered.subject, suspend)), Reason::SubjectSuspended);
}

#[test]
fn stop_signals() {
    let stop = |actor: &str| {
        let actor_id = actor.into();
        code(|w| w.gathered.stop_signals = vec![StopSignal { id: "s".into(), actor_id }.into()])
    };
    assert_eq!(stop(SUBJECT), Reason::ActorStopped);
    assert_eq!(stop(PARENT_AGENT), Reason::ActorStopped);
    assert_eq!(stop(HUMAN), Reason::ActorStopped);
    assert_eq!(stop("svc:agent:t:x"), Reason::PermissionGranted);
}

#[test]
fn quarantines() {
    let quarantine = |subject: Option<&str>, action: Option<&str>, delegation: Option<&str>| {
        let quarantine = Quarantine {
            id: "q".into(),
            subject_id: subject.map(Into::into),
            action: action.map(|text| text.parse().unwrap()),
            delegation_id: delegation.map(Into::into),
        };
        code(|w| w.gathered.quarantines = vec![quarantine.into()])
    };
    let quarantined = Reason::CapabilityQuarantined;
    assert_eq!(quarantine(Some(SUBJECT), None, None), quarantined);
    assert_eq!(quarantine(Some(PARENT_AGENT), None, None), quarantined);
    assert_eq!(quarantine(None, Some("payment.*"), None), quarantined);
    assert_eq!(quarantine(None, None, Some("del-0")), quarantined);
    assert_eq!(quarantine(Some(SUBJECT), Some("payment.*"), Some("del-1")), quarantined);
    assert_eq!(quarantine(None, None, None), quarantined);
    let granted = Reason::PermissionGranted;
    assert_eq!(quarantine(Some(SUBJECT), Some("report.*"), None), granted);
    assert_eq!(quarantine(Some("svc:agent:t:x"), None, None), granted);
    assert_eq!(quarantine(None, None, Some("del-9")), granted);
}

#[test]
fn the_delegation_named() {
    let unknown = |w: &mut World| w.draft.delegation_id = Some("anything".into());
    assert_eq!(code(unknown), Reason::DelegationUnknown);
    let other = |w: &mut World| w.link(0).delegate_id = PARENT_AGENT.into();
    assert_eq!(code(other), Reason::DelegationMismatch);
}

#[test]
fn every_link_is_in_force() {
    let (past, future) = ("2026-01-05T10:30:00Z", "2026-01-05T10:30:01Z");
    for place in [0, 1] {
        let windowed = |from, until| code(|w| w.link(place).window = window(from, until));
        assert_eq!(windowed(Some(past), Some(future)), Reason::PermissionGranted);
        assert_eq!(windowed(Some(future), None), Reason::DelegationNotYetValid);
        assert_eq!(windowed(None, Some(past)), Reason::DelegationExpired);
        let state = |state| code(|w| w.link(place).state = state);
        assert_eq!(state(DelegationState::Revoked), Reason::DelegationRevoked);
        assert_eq!(state(DelegationState::Suspended), Reason::DelegationSuspended);
    }
    let retire =
        |place: usize| code(|w| Arc::make_mut(&mut w.gathered.principals[place]).active = false);
    assert_eq!(retire(0), Reason::DelegatorInactive);
    assert_eq!(retire(1), Reason::DelegatorInactive);
    assert_eq!(code(|w| w.gathered.principals.clear()), Reason::DelegatorInactive);
}

#[test]
fn a_broken_chain_proves_nothing() {
    let cut = |w: &mut World| drop(w.gathered.delegations[0].0.pop());
    assert_eq!(code(cut), Reason::DelegationUnknown);
    let swapped = |w: &mut World| w.link(0).delegator_id = HUMAN.into();
    assert_eq!(code(swapped), Reason::DelegationUnknown);
    let loops = |w: &mut World| {
        let link = link("del-1", Some("del-1"), SUBJECT, SUBJECT);
        w.gathered.delegations[0].0 = std::iter::repeat_n(Arc::new(link), 17).collect();
    };
    assert_eq!(code(loops), Reason::DelegationUnknown);
}

#[test]
fn the_action_is_covered_by_every_link() {
    for place in [0, 1] {
        let narrow = |w: &mut World| w.link(place).actions = patterns(&["payment.refund"]);
        assert_eq!(code(narrow), Reason::PermissionMissing);
        let empty = |w: &mut World| w.link(place).actions.clear();
        assert_eq!(code(empty), Reason::PermissionMissing);
    }
    assert_eq!(code(|w| w.link(1).can_delegate = false), Reason::PermissionMissing);
    assert_eq!(code(|w| w.link(0).can_delegate = false), Reason::PermissionGranted);
}

/// If no authority is named, the first candidate that passes is used. The most specific is tried
/// first, then the lowest id.
#[test]
fn candidates_are_tried_in_order() {
    let mut world = World::sound();
    world.draft.delegation_id = None;
    Arc::make_mut(&mut world.gathered.grants[0]).grantee_id = SUBJECT.into();
    let exact = Used::Action("payment.execute".parse().unwrap());
    world.uses("uses-9", exact.clone());
    world.uses("uses-8", exact);
    world.uses("uses-1", Used::Action(Pattern::All));
    let used = |world: &World| world.decide().authority.unwrap();
    assert_eq!(used(&world).id, "uses-8");
    Arc::make_mut(&mut world.gathered.uses[1].row).window =
        window(None, Some("2026-01-01T00:00:00Z"));
    assert_eq!(used(&world).id, "uses-9");
    world.gathered.uses.remove(0);
    // The delegator's grant gives access to the resource only under the delegation.
    Arc::make_mut(&mut world.gathered.grants[0]).grantee_id = HUMAN.into();
    assert_eq!((used(&world).kind, used(&world).id.as_str()), (AuthorityKind::Delegation, "del-1"));
    world.gathered.delegations.clear();
    assert_eq!(world.decide().reason_code, Reason::ResourceAccessMissing);
    world.gathered.uses.remove(1);
    assert_eq!(world.decide().reason_code, Reason::DelegationExpired);
    world.gathered.uses.clear();
    assert_eq!(world.decide().reason_code, Reason::PermissionMissing);
    let row = Arc::make_mut(&mut world.gathered.acts_in[0]);
    row.allowed_actions = Some(patterns(&["payment.*"]));
    world.draft.resource_id = None;
    assert_eq!(used(&world).kind, AuthorityKind::ActsIn);
}

#[test]
fn a_tools_terms_bind_whether_or_not_it_is_named() {
    let risky =
        ActionRiskClassification { risk_tier: Some(RiskTier::Prohibited), ..<_>::default() };
    let by_tool = |change: fn(&mut Tool), named: Option<&str>| {
        let mut world = World::sound();
        let mut tool = tool("tool-7");
        change(&mut tool);
        world.draft.delegation_id = None;
        world.draft.resource_id = None;
        world.draft.tool_id = named.map(Into::into);
        world.gathered.delegations.clear();
        world.gathered.tool = Some(tool.clone().into());
        world.uses("uses-1", Used::Tool(tool.into()));
        world.decide().reason_code
    };
    for named in [None, Some("tool-7")] {
        assert_eq!(by_tool(|_| {}, named), Reason::PermissionGranted);
        assert_eq!(
            by_tool(|t| t.requires = vec!["iban".to_owned()], named),
            Reason::ContextIncomplete
        );
        assert_eq!(by_tool(|t| t.live = false, named), Reason::PermissionMissing);
    }
    assert_eq!(by_tool(|_| {}, Some("tool-8")), Reason::PermissionMissing);
    let mut world = World::sound();
    edit(&mut world.gathered.tool, |tool| tool.action_risk_classification = Some(risky));
    assert_eq!(world.decide().reason_code, Reason::RiskProhibited);
}

#[test]
fn a_uses_row_may_deny() {
    let denied = |used: Used| code(|w| w.uses("uses-1", used).allowed = false);
    assert_eq!(denied(Used::Action("payment.*".parse().unwrap())), Reason::CapabilityDenied);
    assert_eq!(denied(Used::Tool(tool("tool-1").into())), Reason::CapabilityDenied);
    assert_eq!(denied(Used::Tool(tool("tool-2").into())), Reason::PermissionGranted);
    assert_eq!(denied(Used::Resource("res-1".into())), Reason::CapabilityDenied);
    assert_eq!(denied(Used::Action("report.*".parse().unwrap())), Reason::PermissionGranted);
    let over = |w: &mut World| {
        let row = w.uses("uses-1", Used::Action(Pattern::All));
        row.allowed = false;
        row.window = window(None, Some("2026-01-05T10:30:00Z"));
    };
    assert_eq!(code(over), Reason::PermissionGranted);
}

#[test]
fn bounds_of_every_link() {
    let amount = |text: &str| text.parse::<Amount>().ok();
    for place in [0, 1] {
        let max = |text: &str| code(|w| w.link(place).bounds.max_amount = amount(text));
        assert_eq!(max("100"), Reason::PermissionGranted);
        assert_eq!(max("99.9999"), Reason::ConstraintExceeded);
        let currency = |text: &str| code(|w| w.link(place).bounds.currency = Some(text.to_owned()));
        assert_eq!(currency("EUR"), Reason::PermissionGranted);
        assert_eq!(currency("USD"), Reason::ConstraintExceeded);
        let resource = |id: &str| {
            let list = vec![id.into(), "proj-1".into()];
            code(|w| w.link(place).bounds.resource_ids = list)
        };
        assert_eq!(resource("res-1"), Reason::PermissionGranted);
        assert_eq!(resource("res-2"), Reason::ConstraintExceeded);
        let workspace = |id: &str| code(|w| w.link(place).bounds.workspace_ids = vec![id.into()]);
        assert_eq!(workspace("ws-1"), Reason::PermissionGranted);
        assert_eq!(workspace("ws-2"), Reason::ConstraintExceeded);
        let hours = |to: &str| {
            let hours = json!({"days": ["mon"], "from": "09:00", "to": to});
            code(|w| w.link(place).bounds.hours = serde_json::from_value(hours).ok())
        };
        assert_eq!(hours("10:31"), Reason::PermissionGranted);
        assert_eq!(hours("10:30"), Reason::ConstraintExceeded);
        let place_bound =
            |code_of: &str| code(|w| w.link(place).bounds.jurisdictions = vec![code_of.to_owned()]);
        assert_eq!(place_bound("DE"), Reason::PermissionGranted);
        assert_eq!(place_bound("FR"), Reason::JurisdictionUnsupported);
    }
    for member in ["amount", "currency"] {
        let lacking = |w: &mut World| {
            w.link(1).bounds.max_amount = amount("1000");
            w.link(1).bounds.currency = Some("EUR".to_owned());
            w.draft.context.remove(member);
        };
        assert_eq!(code(lacking), Reason::ConstraintExceeded);
    }
    let negative = |w: &mut World| {
        w.link(0).bounds.max_amount = amount("1000");
        w.draft.context.insert("amount".to_owned(), json!(-1));
    };
    assert_eq!(code(negative), Reason::ConstraintExceeded);
    let unplaced = |w: &mut World| {
        w.link(0).bounds.jurisdictions = vec!["DE".to_owned()];
        w.draft.context.remove("jurisdiction");
    };
    assert_eq!(code(unplaced), Reason::JurisdictionUnsupported);
    let malformed = |w: &mut World| {
        w.draft.delegation_id = None;
        w.draft.resource_id = None;
        w.gathered.delegations.clear();
        w.uses("uses-1", Used::Action(Pattern::All)).constraints =
            Constraints::Malformed("{".to_owned());
    };
    assert_eq!(code(malformed), Reason::ConstraintExceeded);
}

#[test]
fn counters_of_every_ancestor() {
    let counted = |used: Option<i64>, count: u32| {
        let mut world = World::sound();
        world.spent = used;
        world.link(0).bounds.max_uses = Some(MaxUses { count: 1000, window_seconds: 60 });
        world.link(1).bounds.max_uses = Some(MaxUses { count, window_seconds: 3600 });
        world.decide()
    };
    assert_eq!(counted(Some(2), 2).reason_code, Reason::ConstraintExceeded);
    assert_eq!(counted(None, 2).reason_code, Reason::ConstraintExceeded, "unknown leaves no room");
    let claims = counted(Some(1), 2).claims.counters;
    let claimed: Vec<_> =
        claims.iter().map(|c| (c.key.holder_id.as_str(), c.add, c.limit)).collect();
    assert_eq!(claimed, [("del-1", 1, 1000), ("del-0", 1, 2)]);
    assert_eq!(claims[1].key.window_start, moment("2026-01-05T10:00:00Z").timestamp());
    let total = |used: i64| {
        let mut world = World::sound();
        world.spent = Some(used);
        let amount = "150".parse().unwrap();
        world.link(1).bounds.max_total_amount = Some(MaxTotalAmount { amount, window_seconds: 60 });
        world.decide()
    };
    assert_eq!(total(500_000).claims.counters[0].add, 1_000_000);
    assert_eq!(total(500_001).reason_code, Reason::ConstraintExceeded);
    assert_eq!(total(i64::MAX).reason_code, Reason::ConstraintExceeded);
}

#[test]
fn the_risk_ceiling() {
    let ceiling = |tier: Option<RiskTier>| {
        code(|w| {
            w.link(1).bounds.max_risk_tier = Some(RiskTier::Limited);
            let rollback_available = Some(true);
            w.draft.action_declaration =
                Some(ActionDeclaration { rollback_available, ..<_>::default() });
            w.draft.action_risk_classification =
                Some(ActionRiskClassification { risk_tier: tier, ..<_>::default() });
        })
    };
    assert_eq!(ceiling(Some(RiskTier::Limited)), Reason::PermissionGranted);
    assert_eq!(ceiling(Some(RiskTier::High)), Reason::RiskExceedsDelegation);
    assert_eq!(ceiling(None), Reason::RiskExceedsDelegation);
}

#[test]
fn workspace_resource_and_project() {
    let workspace = Reason::WorkspaceAccessMissing;
    assert_eq!(code(|w| w.gathered.workspace = None), workspace);
    assert_eq!(code(|w| edit(&mut w.gathered.workspace, |ws| ws.live = false)), workspace);
    assert_eq!(code(|w| w.gathered.acts_in.clear()), workspace);
    let acts =
        |change: fn(&mut ActsIn)| code(|w| change(Arc::make_mut(&mut w.gathered.acts_in[0])));
    assert_eq!(acts(|row| row.allowed_actions = Some(Vec::new())), workspace);
    assert_eq!(acts(|row| row.window.until = Some(now())), workspace);
    assert_eq!(
        acts(|row| row.allowed_actions = Some(patterns(&["payment.*"]))),
        Reason::PermissionGranted
    );
    let resource = Reason::ResourceAccessMissing;
    assert_eq!(code(|w| w.gathered.resource = None), resource);
    assert_eq!(code(|w| edit(&mut w.gathered.resource, |r| r.live = false)), resource);
    let grant = |change: fn(&mut Grant)| code(|w| change(Arc::make_mut(&mut w.gathered.grants[0])));
    assert_eq!(grant(|grant| grant.access_level = AccessLevel::Write), resource);
    assert_eq!(grant(|grant| grant.grantee_id = "svc:agent:t:x".to_owned()), resource);
    assert_eq!(grant(|grant| grant.grantee_id = PARENT_AGENT.into()), Reason::PermissionGranted);
    let project = Reason::ProjectAccessMissing;
    assert_eq!(code(|w| w.gathered.project = None), project);
    assert_eq!(code(|w| drop(w.gathered.grants.pop())), project);
    let reach = |ids: &[&str]| {
        let ids = ids.iter().map(|id| (*id).into()).collect();
        code(|w| edit(&mut w.gathered.project, |p| p.visible_in_workspaces = ids))
    };
    assert_eq!(reach(&["ws-2"]), project);
    assert_eq!(reach(&["ws-2", "ws-1"]), Reason::PermissionGranted);
}

#[test]
fn a_teams_grant_counts_while_the_subject_is_in_it() {
    let team = |until: Option<DateTime<Utc>>| {
        code(|w| {
            let grant = Arc::make_mut(&mut w.gathered.grants[0]);
            (grant.grantee_kind, grant.grantee_id) = ("team".to_owned(), "team-1".to_owned());
            let window = Window { from: None, until };
            w.gathered.memberships = vec![Membership { team_id: "team-1".into(), window }.into()];
        })
    };
    assert_eq!(team(None), Reason::PermissionGranted);
    assert_eq!(team(Some(now())), Reason::ResourceAccessMissing);
}

#[test]
fn the_tool_and_what_it_requires() {
    assert_eq!(code(|w| w.gathered.tool = None), Reason::ToolMismatch);
    assert_eq!(code(|w| edit(&mut w.gathered.tool, |t| t.live = false)), Reason::ToolMismatch);
    assert_eq!(code(|w| edit(&mut w.gathered.tool, |t| t.actions.clear())), Reason::ToolMismatch);
    let requires = |member: &str| {
        code(|w| edit(&mut w.gathered.tool, |tool| tool.requires = vec![member.to_owned()]))
    };
    assert_eq!(requires("iban"), Reason::ContextIncomplete);
    for member in ["amount", "resource_id", "workspace_id"] {
        assert_eq!(requires(member), Reason::PermissionGranted);
    }
}
