//! Tests a valid world, and the outcome of each single change to it.

mod access_level;
mod again;
mod approvals;
mod asked_before;
mod attenuation;
mod authority_rows;
mod definitions;
mod denials;
mod exceeded;
mod input;
mod input_speed;
mod joined_terms;
mod nesting;
mod obligations;
mod observing;
mod on_behalf_of;
mod places;
mod purposes;
mod raised;
mod reality_rows;
mod remedies;
mod renewed;
mod requests;
mod typed_input;

use std::sync::Arc;

use chrono::{DateTime, Utc};
use serde_json::json;

use super::{
    Draft, Facts, Gathered, Pattern, Reason, Request, Verdict, counters_needed,
    facts::*,
    levels::{AccessLevel, Decision, DelegationState, PrincipalClass},
    moment::Window,
};
use crate::verdict::decide::decide;

const TENANT: &str = "svc:tenant:t";
const HUMAN: &str = "svc:ent:t:principal:h";
const PARENT_AGENT: &str = "svc:agent:t:b";
const SUBJECT: &str = "svc:agent:t:a";

/// A Monday morning.
fn now() -> DateTime<Utc> {
    "2026-01-05T10:30:00Z".parse().unwrap()
}

fn moment(text: &str) -> DateTime<Utc> {
    text.parse().unwrap()
}

fn window(from: Option<&str>, until: Option<&str>) -> Window {
    Window { from: from.map(moment), until: until.map(moment) }
}

fn patterns(texts: &[&str]) -> Vec<Pattern> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

/// A request and its facts, which tests change.
struct World {
    draft: Draft,
    gathered: Gathered,
    spent: Option<i64>,
    approval: Option<Approval>,
}

impl World {
    /// Returns a world that names a delegation of depth two, a tool, purpose, resource, workspace
    /// and project.
    fn sound() -> Self {
        let draft = Draft {
            tenant_id: TENANT.into(),
            subject: SUBJECT.into(),
            delegation_id: Some("del-1".into()),
            action: "payment.execute".to_owned(),
            tool_id: Some("tool-1".into()),
            purpose: Some("payroll".to_owned()),
            resource_id: Some("res-1".into()),
            workspace_id: Some("ws-1".into()),
            project_id: Some("proj-1".into()),
            context: json!({"amount": 100, "currency": "EUR", "jurisdiction": "DE"})
                .as_object()
                .cloned()
                .unwrap(),
            ..Draft::default()
        };
        Self { draft, gathered: sound_facts(), spent: Some(0), approval: None }
    }

    fn facts(&self) -> Facts {
        let mut facts = Facts::new(self.gathered.clone().into());
        for key in counters_needed(&facts.gathered, now()) {
            facts.spent.0.extend(self.spent.map(|used| (key, used)));
        }
        facts.approval.clone_from(&self.approval);
        facts
    }

    fn decide(&self) -> Verdict {
        decide(&Request::new(self.draft.clone()).unwrap(), &self.facts(), now())
    }

    fn link(&mut self, place: usize) -> &mut Delegation {
        Arc::make_mut(&mut self.gathered.delegations[0].0[place])
    }

    fn uses(&mut self, id: &str, used: Used) -> &mut UsesRow {
        let constraints = Constraints::Bounds(Box::default());
        let id = id.into();
        let row = UsesRow { id, allowed: true, window: Window::default(), constraints };
        self.gathered.uses.push(Uses { row: row.into(), used });
        let last = self.gathered.uses.len() - 1;
        Arc::make_mut(&mut self.gathered.uses[last].row)
    }
}

fn sound_facts() -> Gathered {
    let principal = |id: &str, class| {
        Arc::new(Principal { id: id.into(), class, name: "x".to_owned(), active: true })
    };
    let tenant = Tenant {
        id: TENANT.into(),
        active: true,
        require_declaration: false,
        gate: Vec::new(),
        valid_for_seconds: 60,
        context_schema: None,
        time_zone: None,
    };
    Gathered {
        revision: 1,
        tenant: Some(tenant.into()),
        subject: Some(principal(SUBJECT, PrincipalClass::Agent)),
        delegations: vec![Chain(vec![
            link("del-1", Some("del-0"), PARENT_AGENT, SUBJECT).into(),
            link("del-0", None, HUMAN, PARENT_AGENT).into(),
        ])],
        principals: vec![
            principal(HUMAN, PrincipalClass::Human),
            principal(PARENT_AGENT, PrincipalClass::Agent),
        ],
        purpose: Some(Arc::new(Purpose {
            id: "purpose-1".into(),
            slug: "payroll".to_owned(),
            active: true,
            allowed_actions: patterns(&["payment.*"]),
            principal_classes: Vec::new(),
            jurisdictions: Vec::new(),
            window: Window::default(),
        })),
        tool: Some(tool("tool-1").into()),
        ..places()
    }
}

/// Returns a resource, workspace and project, with the rows that give access to them.
fn places() -> Gathered {
    let grant = |id: &str, resource_id: &str, grantee_id: &str| {
        let grantee_kind = "principal".to_owned();
        let access_level = AccessLevel::Execute;
        let (id, resource_id) = (id.into(), resource_id.into());
        let grantee_id = grantee_id.into();
        Arc::new(Grant { id, resource_id, grantee_id, grantee_kind, access_level })
    };
    Gathered {
        resource: Some(Arc::new(Resource {
            id: "res-1".into(),
            kind: "bank_account".to_owned(),
            name: "giro".to_owned(),
            sensitivity: None,
            live: true,
            workspace_id: None,
        })),
        workspace: Some(Arc::new(Workspace { id: "ws-1".into(), live: true })),
        project: Some(Arc::new(Project {
            id: "proj-1".into(),
            live: true,
            workspace_id: None,
            visible_in_workspaces: vec!["ws-1".into()],
        })),
        acts_in: vec![Arc::new(ActsIn {
            id: "acts-1".into(),
            workspace_id: "ws-1".into(),
            window: Window::default(),
            allowed_actions: None,
        })],
        grants: vec![grant("grant-1", "res-1", HUMAN), grant("grant-2", "proj-1", SUBJECT)],
        ..Gathered::default()
    }
}

fn link(id: &str, parent: Option<&str>, delegator: &str, delegate: &str) -> Delegation {
    Delegation {
        id: id.into(),
        version: 1,
        parent_id: parent.map(Into::into),
        delegator_id: delegator.into(),
        delegate_id: delegate.into(),
        state: DelegationState::Active,
        window: Window::default(),
        actions: patterns(&["payment.*"]),
        bounds: super::Bounds::default(),
        can_delegate: true,
        needs_standing_approval: false,
        standing: Vec::new(),
        line_id: None,
    }
}

fn tool(id: &str) -> Tool {
    Tool {
        id: id.into(),
        live: true,
        workspace_id: None,
        actions: patterns(&["payment.execute"]),
        requires: Vec::new(),
        access_level: None,
        action_declaration: None,
        action_risk_classification: None,
        input: None,
        definition: None,
    }
}

/// Returns the reason code of the decision after this change to the world.
fn code(spoil: impl FnOnce(&mut World)) -> Reason {
    let mut world = World::sound();
    spoil(&mut world);
    let verdict = world.decide();
    assert_eq!(verdict.reasons.first(), Some(&verdict.reason_code));
    let granted = verdict.reason_code == Reason::PermissionGranted;
    assert_eq!(granted, verdict.decision.permits());
    verdict.reason_code
}

#[test]
fn the_sound_world_is_permitted() {
    let verdict = World::sound().decide();
    assert_eq!(verdict.decision, Decision::AllowWithConstraints);
    assert_eq!(verdict.reasons, [Reason::PermissionGranted]);
    assert_eq!(verdict.obligations, ["audit.emit"]);
    assert_eq!(verdict.stop_conditions, ["actor.stop_signal", "delegation.revoked"]);
    assert_eq!(verdict.valid_until, Some(moment("2026-01-05T10:31:00Z")));
    let authority = verdict.authority.unwrap();
    assert_eq!((authority.id.as_str(), authority.chain.len()), ("del-1", 2));
}

#[test]
fn an_allow_is_good_until_the_first_end() {
    let mut world = World::sound();
    world.link(1).window.until = Some(moment("2026-01-05T10:30:20Z"));
    assert_eq!(world.decide().valid_until, Some(moment("2026-01-05T10:30:20Z")));
}

/// A permission never outlasts the records that it depends on besides its authority.
#[test]
fn an_allow_ends_with_the_membership_the_purpose_and_the_policy_that_were_used() {
    let end = moment("2026-01-05T10:30:20Z");
    let window = Window { from: None, until: Some(end) };
    let until = |spoil: fn(&mut World, Window)| {
        let mut world = World::sound();
        spoil(&mut world, window);
        let verdict = world.decide();
        assert_eq!(verdict.reason_code, Reason::PermissionGranted);
        verdict.valid_until
    };
    let member = |world: &mut World, window| {
        Arc::make_mut(&mut world.gathered.acts_in[0]).window = window;
    };
    assert_eq!(until(member), Some(end));
    // The request names a project but no workspace. The membership that gives access to it counts.
    let reached = |world: &mut World, window| {
        Arc::make_mut(&mut world.gathered.acts_in[0]).window = window;
        world.draft.workspace_id = None;
    };
    assert_eq!(until(reached), Some(end));
    let purpose = |world: &mut World, window| {
        Arc::make_mut(world.gathered.purpose.as_mut().unwrap()).window = window;
    };
    assert_eq!(until(purpose), Some(end));
    let policy = |world: &mut World, window| {
        let text = "@obligation(\"log\") permit(principal, action, resource);";
        let reference = super::PolicyReference {
            id: "policy-1".into(),
            version: 1,
            sha256: String::new(),
            applies_to: Vec::new(),
            effective: window,
        };
        let compiled = super::CompiledPolicy::compile(reference, text).unwrap();
        world.gathered.policies.push(compiled.into());
    };
    assert_eq!(until(policy), Some(end));
}

/// Without a named workspace, a permission ends with the membership that gave access to its
/// project.
#[test]
fn a_permission_ends_with_the_membership_that_reached_its_project() {
    let mut world = World::sound();
    world.draft.workspace_id = None;
    let used = world.decide().authority.unwrap();
    let judged = |world: &World| {
        let request = Request::new(world.draft.clone()).unwrap();
        super::PermissionStatus::judge(&request, &used, &world.facts(), now())
    };
    let end = moment("2026-01-05T10:30:20Z");
    Arc::make_mut(&mut world.gathered.acts_in[0]).window.until = Some(end);
    assert_eq!((judged(&world).stopped, judged(&world).until), (None, Some(end)));
    world.gathered.acts_in.clear();
    assert_eq!(judged(&world).stopped, Some(Reason::ProjectAccessMissing));
    let condition = super::StopCondition::of(Reason::ProjectAccessMissing, used.kind);
    assert_eq!(condition, super::StopCondition::AuthorityRevoked);
}
