//! The surroundings of an authority in a random world: resources, policies, anchors.

use super::*;

pub(super) fn things(
    dice: &mut Dice<'_>,
    at: DateTime<Utc>,
    draft: &Draft,
    gathered: &mut Gathered,
) {
    if let Some(id) = &draft.resource_id
        && !dice.rarely(20)
    {
        gathered.resource = Some(Arc::new(Resource {
            id: id.clone(),
            kind: dice.of(&["ledger", "bank_account"]).to_owned(),
            name: "thing".to_owned(),
            sensitivity: None,
            live: !dice.rarely(20),
            workspace_id: dice.maybe(10, |dice| dice.of(&["ws-1", "ws-2"]).into()),
        }));
    }
    if let Some(id) = &draft.workspace_id
        && !dice.rarely(20)
    {
        gathered.workspace = Some(Arc::new(Workspace { id: id.clone(), live: !dice.rarely(20) }));
    }
    if let Some(id) = &draft.project_id
        && !dice.rarely(20)
    {
        gathered.project = Some(Arc::new(Project {
            id: id.clone(),
            live: !dice.rarely(20),
            workspace_id: dice.maybe(2, |dice| dice.of(&["ws-1", "ws-2"]).into()),
            visible_in_workspaces: dice.texts(2, &["ws-1", "ws-2", "ws-3"]),
        }));
    }
    for thing in ["res-1", "res-2", "proj-1"] {
        for number in 0..=dice.below(3) {
            let (kind, id) = dice.of(&[
                ("principal", SUBJECT),
                ("principal", HUMANS[0]),
                ("principal", HUMANS[1]),
                ("team", "team-1"),
                ("team", "team-2"),
                ("principal", "team-2"),
            ]);
            gathered.grants.push(Arc::new(Grant {
                id: format!("grant-{thing}-{number}").into(),
                resource_id: thing.into(),
                grantee_id: id.into(),
                grantee_kind: kind.to_owned(),
                access_level: dice.of(&[
                    AccessLevel::Owner,
                    AccessLevel::Execute,
                    AccessLevel::Write,
                    AccessLevel::Read,
                ]),
            }));
        }
    }
    if let Some(slug) = &draft.purpose
        && !dice.rarely(12)
    {
        gathered.purpose = Some(Arc::new(Purpose {
            id: format!("id-of-{slug}").into(),
            slug: slug.clone(),
            active: !dice.rarely(20),
            allowed_actions: if dice.rarely(3) { dice.patterns() } else { vec![Pattern::All] },
            principal_classes: dice
                .maybe(6, |dice| vec![dice.of(&[PrincipalClass::Agent, PrincipalClass::Human])])
                .unwrap_or_default(),
            jurisdictions: dice.texts(6, &["DE", "FR", "DE-BY"]),
            window: dice.window(at),
        }));
    }
}

pub(super) fn rules(dice: &mut Dice<'_>, at: DateTime<Utc>, gathered: &mut Gathered) {
    let mut policies = dice.few(4, |dice| {
        let mut statements = vec![dice.below(templates::TEXTS.len())];
        statements.extend(dice.few(1, |dice| dice.below(templates::TEXTS.len())));
        let rows = dice.few(2, |dice| dice.below(templates::TARGETS.len()));
        let hour = TimeDelta::hours(1);
        let effective = match dice.below(10) {
            1 => Window { from: None, until: Some(at - hour) },
            2 => Window { from: Some(at - hour), until: None },
            _ => Window::default(),
        };
        templates::policy(&statements, &rows, effective)
    });
    // Two policies of a tenant never share an id. Repeated ids are therefore removed.
    policies.sort_by(|one, other| one.reference.id.cmp(&other.reference.id));
    policies.dedup_by(|one, other| one.reference.id == other.reference.id);
    gathered.policies = policies;
    gathered.reality = reality(dice, at).into();
}

/// Returns anchors that may ground any action, with overrides and drift events about them.
fn reality(dice: &mut Dice<'_>, at: DateTime<Utc>) -> Reality {
    let mut reality = Reality::default();
    if !dice.rarely(4) {
        return reality;
    }
    let count = dice.below(3);
    reality.anchors = (0..count).map(|number| anchor(dice, at, number).into()).collect();
    if dice.rarely(2) {
        reality.drifts.push(drift(dice, at).into());
    }
    if dice.rarely(2) {
        reality.overrides.push(lifting(dice, at, &reality).into());
    }
    reality
}

pub(super) fn drift(dice: &mut Dice<'_>, at: DateTime<Utc>) -> Drift {
    Drift {
        id: "drift-1".into(),
        drift_type: dice.of(&["stable_drift", "cross_border_drift"]).to_owned(),
        actor_id: dice.maybe(2, |dice| dice.of(&[SUBJECT, AGENTS[0]]).into()),
        action: dice.maybe(2, |dice| dice.of(&PATTERNS).parse().unwrap()),
        effect: dice.of(RuntimeEffect::ALL),
        obligations: dice.texts(4, &["notify.treasury"]),
        since: at - TimeDelta::seconds(dice.of(&[600, 10])),
        until_fresh: dice.few(1, |dice| Observed {
            anchor_id: dice.of(&["anchor-0", "anchor-1"]).into(),
            sampled_at: dice.maybe(2, |dice| at - TimeDelta::seconds(dice.of(&[65, 10]))),
            max_age_seconds: dice.maybe(2, |dice| dice.of(&[5, 90])),
        }),
    }
}

/// Returns the finding that a check of this anchor would make now.
fn found_of(anchor: &Anchor) -> CheckedState {
    let newest = anchor.newest.as_ref();
    CheckedState {
        anchor_id: anchor.id.clone(),
        snapshot_id: newest.map(|newest| newest.id.clone()),
        contested: newest.is_some_and(|newest| newest.contested),
    }
}

/// Returns an override of anchors and drift events. It usually cites their current findings.
fn lifting(dice: &mut Dice<'_>, at: DateTime<Utc>, reality: &Reality) -> Override {
    let mut lifts: Vec<Lifted> = Vec::new();
    for anchor in &reality.anchors {
        let found = anchor.judge(at).drift_type.map_or("stable_drift", DriftType::word);
        lifts.push(Lifted {
            source_id: anchor.id.clone(),
            drift_type: if dice.rarely(8) { "assumption_expired" } else { found }.to_owned(),
            found: vec![found_of(anchor)],
        });
    }
    lifts.extend(reality.drifts.iter().map(|drift| Lifted {
        source_id: drift.id.clone(),
        drift_type: drift.drift_type.clone(),
        found: reality.anchors.iter().map(|anchor| found_of(anchor)).collect(),
    }));
    for found in lifts.iter_mut().flat_map(|lifted| &mut lifted.found) {
        if dice.rarely(8) {
            found.snapshot_id = Some("another".into());
        }
    }
    Override {
        check_id: "check-1".into(),
        action: dice.of(&ACTIONS).to_owned(),
        actor_id: dice.maybe(2, |dice| dice.of(&[SUBJECT, AGENTS[0]]).into()),
        until: at + TimeDelta::seconds(dice.of(&[60, 600, 0])),
        lifts,
    }
}

pub(super) fn anchor(dice: &mut Dice<'_>, at: DateTime<Utc>, number: usize) -> Anchor {
    Anchor {
        id: format!("anchor-{number}").into(),
        version: 1,
        anchor_type: dice.of(AnchorType::ALL),
        active: !dice.rarely(10),
        grounds_actions: dice.patterns(),
        grounds_profiles: dice.texts(4, &["payroll", "refunds"]),
        freshness: dice.maybe(2, |dice| FreshnessContract {
            max_staleness_seconds: dice.of(&[3600, 60]),
            expected_refresh_seconds: dice.maybe(2, |dice| dice.of(&[30, 600])),
            stale_runtime_effect: dice.maybe(2, |dice| dice.of(RuntimeEffect::ALL)),
            missing_runtime_effect: dice.maybe(2, |dice| dice.of(RuntimeEffect::ALL)),
        }),
        unreadable: dice.rarely(20),
        changed_at: at - TimeDelta::seconds(dice.of(&[4000, 30, 5])),
        newest: (!dice.rarely(8)).then(|| Snapshot {
            id: format!("snap-{number}").into(),
            sampled_at: at - TimeDelta::seconds(dice.of(&[10, 0, 61, 60, 700, 4000, -30, -90])),
            valid_until: dice.maybe(5, |dice| at + TimeDelta::seconds(dice.of(&[60, 0]))),
            content_hash: format!("sha256:{number}"),
            contested: dice.rarely(20),
        }),
    }
}
