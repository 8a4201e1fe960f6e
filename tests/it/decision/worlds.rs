//! Random worlds: a request and the facts about it, both read from random bytes.
//!
//! A zero byte always gives the harmless value. A failing world therefore shrinks to a world in
//! which only the cause of the failure is not harmless.

mod dice;
mod inputs;
mod surroundings;

use std::{collections::BTreeSet, sync::Arc};

use authority_decision::{
    Amount, Bounds, CompiledPolicy, Draft, Facts, Gathered, JoinedTerms, Pattern, Request,
    bounds::{MaxTotalAmount, MaxUses},
    counters_needed,
    facts::*,
    gate::{Tightening, Undoing},
    levels::*,
    moment::Window,
    reality::*,
    request::{ActionDeclaration, ActionRiskClassification},
    time_zone::ZoneOffset,
};
use authority_ids::EntityRef;
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Map, Value, json};

pub(super) use self::inputs::SCHEMAS;
use self::{dice::Dice, surroundings::*};
use super::templates;

pub(super) const SUBJECT: &str = "svc:agent:t:a";
pub(super) const TENANT: &str = "svc:tenant:t";
const ACTIONS: [&str; 4] =
    ["payment.execute", "payment.refund.partial", "report.read", "email.send"];
const PATTERNS: [&str; 10] = [
    "*",
    "payment.*",
    "payment.execute",
    "report.*",
    "payment.refund.*",
    "report.read",
    "email.send",
    "email.*",
    "payment.refund.partial",
    "other.*",
];
const HUMANS: [&str; 2] = ["svc:ent:t:principal:h1", "svc:ent:t:principal:h2"];
const AGENTS: [&str; 2] = ["svc:agent:t:b", "svc:agent:t:c"];

/// The digests of definitions of tools.
pub(super) const DIGESTS: [&str; 2] = [
    "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
];

/// The zone of some hours. Its offset is 5 hours and 45 minutes.
const ZONE: &str = "Asia/Kathmandu";

/// Monday, 5 January 2026, 10:30, in UTC.
pub(super) fn noonish() -> DateTime<Utc> {
    "2026-01-05T10:30:00.25Z".parse().unwrap()
}

pub(super) struct World {
    pub draft: Draft,
    pub facts: Facts,
    pub at: DateTime<Utc>,
    /// All tools of the tenant.
    pub tools: Vec<Arc<Tool>>,
}

impl World {
    pub(super) fn request(&self) -> Request {
        Request::new(self.draft.clone()).unwrap()
    }

    /// Returns the facts for a request that may name another tool or no tool.
    pub(super) fn facts_with_tools(&self, facts: &Facts, draft: &Draft) -> Facts {
        let mut gathered = Gathered::clone(&facts.gathered);
        look_up_tools(&self.tools, draft, &mut gathered);
        Facts { gathered: gathered.into(), ..facts.clone() }
    }
}

/// Returns any anchor and any drift event, read from these bytes.
pub(super) fn drawn_reality(bytes: &[u8], at: DateTime<Utc>) -> (Anchor, Drift) {
    let dice = &mut Dice::new(bytes);
    (anchor(dice, at, 0), drift(dice, at))
}

/// Adds the named tool to the facts. If no tool is named, adds the combined terms of all active
/// tools that perform the action.
fn look_up_tools(tools: &[Arc<Tool>], draft: &Draft, gathered: &mut Gathered) {
    let performs = |tool: &&Arc<Tool>| {
        tool.live && tool.actions.iter().any(|pattern| pattern.covers(&draft.action))
    };
    let named = |id: &EntityRef| tools.iter().find(|tool| tool.id == *id).cloned();
    inputs::look_up(tools, performs, gathered);
    gathered.tool = draft.tool_id.as_ref().and_then(named);
    gathered.joined_terms = match draft.tool_id {
        Some(_) => None,
        None => JoinedTerms::all(tools.iter().filter(performs).map(AsRef::as_ref)).map(Arc::new),
    };
}

/// Returns the world that these bytes describe.
pub(super) fn draw(bytes: &[u8]) -> World {
    let dice = &mut Dice::new(bytes);
    let at = noonish();
    let draft = draft(dice);
    let mut gathered = Gathered::<Arc<CompiledPolicy>> {
        revision: 7,
        tenant: (!dice.rarely(60)).then(|| tenant(dice).into()),
        subject: (!dice.rarely(60)).then(|| subject(dice).into()),
        model: dice.maybe(6, |dice| model(dice, "model-1").into()),
        memberships: dice.few(2, |dice| {
            let team_id = dice.of(&["team-2", "team-1"]).into();
            Arc::new(Membership { team_id, window: dice.window(at) })
        }),
        ..Gathered::default()
    };
    gathered.principals = principals(dice);
    // A short text ends early, and all later choices are harmless. The later stages are therefore
    // read first.
    rules(dice, at, &mut gathered);
    things(dice, at, &draft, &mut gathered);
    let mut tools: Vec<Arc<Tool>> = Vec::new();
    for id in ["tool-1", "tool-2", "tool-3"] {
        if !dice.rarely(4) {
            tools.push(tool(dice, id).into());
        }
    }
    authority(dice, at, &tools, &mut gathered);
    look_up_tools(&tools, &draft, &mut gathered);
    let mut facts = Facts::new(gathered.into());
    for key in counters_needed(&facts.gathered, at) {
        if !dice.rarely(30) {
            let used = match key.counts {
                Counts::Uses => dice.of(&[0, 1, 2, 3]),
                Counts::Amount => dice.of(&[0, 10_000, 6_000_000]),
            };
            facts.spent.0.insert(key, used);
        }
    }
    if draft.approval_id.is_some() && !dice.rarely(10) {
        facts.approval = Some(Approval {
            id: dice.of(&["approval-1", "approval-1", "approval-1", "approval-2"]).into(),
            state: if dice.rarely(5) {
                dice.of(ApprovalState::ALL)
            } else {
                ApprovalState::Approved
            },
            same_question: !dice.rarely(8),
            same_subject: true,
            given: dice.signatures(at),
            expires_at: if dice.rarely(10) { at } else { at + TimeDelta::hours(5) },
        });
    }
    if dice.rarely(5) {
        facts.declined =
            Some(Declined { approval_id: "approval-3".into(), at: at - TimeDelta::hours(1) });
    }
    if dice.rarely(5) {
        facts.open_requests =
            Some(OpenRequests { pending: dice.of(&[500, 499, 501, 0]), limit: 500 });
    }
    if !dice.rarely(10) {
        let (data, name) = ("2026f".to_owned(), ZONE.to_owned());
        facts.zones.push(ZoneOffset { data, name, next: None, offset_seconds: 20_700 });
    }
    World { draft, facts, at, tools }
}

fn draft(dice: &mut Dice<'_>) -> Draft {
    let text = |text: &str| text.to_owned();
    let mut context = Map::new();
    let mut put = |name: &str, value: Option<Value>| {
        context.extend(value.map(|value| (name.to_owned(), value)));
    };
    put("amount", dice.maybe(2, |d| d.of(&[99, 550, 1200, 3000, -5]).into()));
    put("currency", dice.maybe(2, |d| d.of(&["EUR", "EUR", "USD"]).into()));
    put("jurisdiction", dice.maybe(2, |d| d.of(&["DE", "FR", "RU", "DE-BY"]).into()));
    let flags = [json!(false), json!(true), json!("x")];
    put("flagged", dice.maybe(5, |d| flags[d.below(3)].clone()));
    put("note", dice.maybe(3, |_| json!({"text": "hello", "parts": [1, 2.5, null]})));
    Draft {
        tenant_id: TENANT.into(),
        subject: SUBJECT.into(),
        delegation_id: dice
            .maybe(3, |d| d.of(&["del-0", "del-0", "del-0", "del-1", "del-9"]).into()),
        action: text(dice.of(&ACTIONS)),
        tool_id: dice.maybe(3, |d| d.of(&["tool-1", "tool-2"]).into()),
        purpose: dice.maybe(2, |d| text(d.of(&["payroll", "payroll", "refunds"]))),
        resource_id: dice.maybe(3, |d| d.of(&["res-1", "res-1", "res-2"]).into()),
        workspace_id: dice.maybe(3, |d| d.of(&["ws-1", "ws-1", "ws-2"]).into()),
        project_id: dice.maybe(6, |_| "proj-1".into()),
        context,
        action_declaration: dice.maybe(2, Dice::declaration),
        action_risk_classification: dice.maybe(2, Dice::classification),
        approval_id: dice.maybe(3, |_| "approval-1".into()),
        on_behalf_of: dice.maybe(8, |d| {
            let anyone = [HUMANS[0], HUMANS[0], HUMANS[1], AGENTS[0], "svc:agent:t:stranger"];
            d.of(&anyone).into()
        }),
        supported_obligations: dice
            .maybe(5, |d| d.few(3, |d| text(d.of(&["log.full", "notify.owner", "review.after"])))),
        justification: None,
        client_nonce: None,
        tool_definition_digest: dice
            .maybe(2, |d| text(d.of(&[DIGESTS[0], DIGESTS[0], DIGESTS[1]]))),
        include_record: false,
        explain: dice.rarely(8),
        at_least_revision: None,
    }
}

fn tenant(dice: &mut Dice<'_>) -> Tenant {
    Tenant {
        id: TENANT.into(),
        active: !dice.rarely(60),
        require_declaration: dice.rarely(8),
        gate: dice
            .maybe(4, |dice| {
                dice.few(2, |dice| Tightening {
                    risk_tier: dice.of(RiskTier::ALL),
                    effect_class: dice.of(EffectClass::ALL),
                    undoing: dice.of(&[Undoing::Undone, Undoing::Compensated, Undoing::Final]),
                    oversight: dice.of(Oversight::ALL),
                })
            })
            .unwrap_or_default(),
        valid_for_seconds: 60,
        context_schema: inputs::declared(dice),
        time_zone: None,
    }
}

fn subject(dice: &mut Dice<'_>) -> Principal {
    Principal {
        id: SUBJECT.into(),
        class: if dice.rarely(6) { PrincipalClass::Human } else { PrincipalClass::Agent },
        name: "a".to_owned(),
        active: !dice.rarely(60),
    }
}

fn principals(dice: &mut Dice<'_>) -> Vec<Arc<Principal>> {
    let everyone = HUMANS.iter().chain(&AGENTS).chain([&SUBJECT]);
    everyone
        .filter_map(|id| {
            let class = PrincipalClass::Human;
            let (known, active) = (!dice.rarely(60), !dice.rarely(60));
            known.then(|| Principal { id: (*id).into(), class, name: String::new(), active }.into())
        })
        .collect()
}

fn model(dice: &mut Dice<'_>, id: &str) -> Model {
    Model {
        id: id.into(),
        live: !dice.rarely(8),
        risk_tier: dice
            .maybe(3, |dice| dice.of(&[RiskTier::Minimal, RiskTier::Limited, RiskTier::High])),
        actions: dice.patterns(),
    }
}

fn tool(dice: &mut Dice<'_>, id: &str) -> Tool {
    Tool {
        id: id.into(),
        live: !dice.rarely(15),
        workspace_id: dice.maybe(10, |dice| dice.of(&["ws-1", "ws-2"]).into()),
        actions: dice.patterns(),
        requires: dice.texts(8, &["amount", "resource_id", "workspace_id", "note"]),
        access_level: dice.maybe(3, |dice| dice.of(AccessLevel::ALL)),
        action_declaration: dice.maybe(4, Dice::declaration),
        action_risk_classification: dice.maybe(4, Dice::classification),
        input: inputs::drawn(dice),
        definition: dice.maybe(6, |dice| {
            if dice.rarely(3) {
                Definition::Unpinned
            } else {
                Definition::Pinned(dice.of(&DIGESTS).to_owned())
            }
        }),
    }
}

fn chain(dice: &mut Dice<'_>, at: DateTime<Utc>, number: usize) -> Chain {
    let depth = if dice.rarely(80) { 17 } else { dice.of(&[1, 1, 2, 3]) };
    let own = if dice.rarely(15) { AGENTS[0] } else { SUBJECT };
    let mut delegate = own;
    let mut links = Vec::new();
    for level in 0..depth {
        let last = level + 1 == depth;
        let delegator = if last { dice.of(&HUMANS) } else { dice.of(&AGENTS) };
        let id = |level: usize| {
            if level == 0 { format!("del-{number}") } else { format!("del-{number}-{level}") }
        };
        let parent = (!last).then(|| id(level + 1));
        let torn = dice.rarely(60);
        links.push(Arc::new(Delegation {
            id: id(level).into(),
            version: 1,
            parent_id: if torn { Some("del-lost".into()) } else { parent.map(Into::into) },
            delegator_id: delegator.into(),
            delegate_id: if dice.rarely(80) { HUMANS[0] } else { delegate }.into(),
            state: if dice.rarely(12) {
                dice.of(DelegationState::ALL)
            } else {
                DelegationState::Active
            },
            window: dice.window(at),
            actions: dice.patterns(),
            bounds: dice.bounds(true),
            can_delegate: !dice.rarely(20),
            needs_standing_approval: dice.rarely(12),
            standing: dice.signatures(at),
            line_id: None,
        }));
        delegate = delegator;
    }
    Chain(links)
}

fn uses(dice: &mut Dice<'_>, at: DateTime<Utc>, tools: &[Arc<Tool>], number: usize) -> Uses {
    let used = match dice.below(8) {
        0..=2 => Used::Action(dice.of(&PATTERNS).parse().unwrap()),
        3 | 4 => {
            let id = dice.of(&["tool-1", "tool-2", "tool-3"]);
            let known = tools.iter().find(|tool| tool.id == id);
            known.map_or_else(|| Used::Missing(id.to_owned()), |tool| Used::Tool(tool.clone()))
        }
        5 => Used::Model(model(dice, "model-2").into()),
        6 => Used::ExternalApp(Arc::new(ExternalApp {
            id: "app-1".into(),
            live: !dice.rarely(8),
            actions: dice.patterns(),
        })),
        _ if dice.rarely(2) => Used::Resource(dice.of(&["res-1", "res-2"]).into()),
        _ => Used::Missing("tool-2".to_owned()),
    };
    let constraints = if dice.rarely(20) {
        Constraints::Malformed("{".to_owned())
    } else {
        Constraints::Bounds(dice.bounds(false).into())
    };
    let row = UsesRow {
        id: format!("uses-{number}").into(),
        allowed: !dice.rarely(8),
        window: dice.window(at),
        constraints,
    };
    Uses { row: row.into(), used }
}

fn authority(dice: &mut Dice<'_>, at: DateTime<Utc>, tools: &[Arc<Tool>], gathered: &mut Gathered) {
    // Most worlds have at least one authority.
    let chains = if dice.rarely(5) { 0 } else { 1 + dice.below(3) };
    gathered.delegations = (0..chains).map(|number| chain(dice, at, number)).collect();
    let rows = dice.below(4);
    gathered.uses = (0..rows).map(|number| uses(dice, at, tools, number)).collect();
    for (number, id) in AGENTS.iter().chain(&HUMANS[..1]).enumerate() {
        if dice.rarely(8) {
            let mut denial = uses(dice, at, tools, 10 + number);
            Arc::make_mut(&mut denial.row).allowed = false;
            gathered.chain_denials.push(ChainDenial { principal_id: (*id).into(), denial });
        }
    }
    let ids = ["ws-1", "ws-2"];
    for (number, id) in ids.iter().enumerate() {
        if !dice.rarely(5) {
            gathered.acts_in.push(Arc::new(ActsIn {
                id: format!("acts-{number}").into(),
                workspace_id: (*id).into(),
                window: dice.window(at),
                allowed_actions: dice
                    .maybe(3, |dice| if dice.rarely(4) { Vec::new() } else { dice.patterns() }),
            }));
        }
    }
    if dice.rarely(25) {
        let actor_id = dice.of(&[SUBJECT, AGENTS[0], AGENTS[1], HUMANS[0]]).into();
        gathered.stop_signals.push(Arc::new(StopSignal { id: "stop-1".into(), actor_id }));
    }
    if dice.rarely(20) {
        gathered.quarantines.push(Arc::new(Quarantine {
            id: "quarantine-1".into(),
            subject_id: dice.maybe(2, |dice| dice.of(&[SUBJECT, AGENTS[0], "x"]).into()),
            action: dice.maybe(2, |dice| dice.of(&PATTERNS).parse().unwrap()),
            delegation_id: dice.maybe(2, |dice| dice.of(&["del-0", "del-1", "del-0-1"]).into()),
        }));
    }
}
