//! Runs a check on its stored anchors, at the database's current time.

use authority_decision::reality::{
    Assumption, Checked, CheckedAnchor, CouplingResult, Finding, FindingKind, Tolerated, judge,
};
use authority_ids::EntityRef;
use authority_model::{
    proto::reality::{CheckFinding, CheckRun, CouplingCheck, RunCouplingCheckRequest},
    schema::reality_coupling_checks as checks,
    wire::Time,
};
use serde_json::Value;

use super::{
    assumed::{ENGINE, assumptions},
    drift_found, freshness, overriding, refers, stored,
};
use crate::flow::{
    operations::or_not_found,
    prelude::*,
    version::{IfMatch, tagged},
};

/// The number of runs in a check's history.
const HISTORY: usize = 100;
/// The reason of a run that consulted no anchor.
const NO_ANCHOR: &str = "no_anchor_consulted";

pub(super) async fn check(
    registry: &Registry,
    call: Request<RunCouplingCheckRequest>,
) -> Reply<CouplingCheck> {
    let (if_match, key) = (IfMatch::of(call.metadata()), IdempotencyKey::of(&call)?);
    let (caller, request) = admitted(call)?;
    let by = caller.clone();
    let ran = registry.idempotent(&caller, key, async move |db| {
        let id = &request.id;
        let was = or_not_found(CouplingCheck::lock(db, by.tenant(), id).await, id)?;
        if_match.check(&was)?;
        let (ran, _) = run(db, &was, &by.actor).await?;
        Ok::<_, Error>(ran)
    });
    let ran = ran.await?;
    registry.wait_for_graph::<CouplingCheck>().await;
    Ok(tagged(ran.reply()))
}

/// Runs a locked check: ends its override, stores the findings and opens drift events.
pub(super) async fn run(
    db: &mut Db,
    check: &CouplingCheck,
    actor: &str,
) -> Result<(CouplingCheck, CouplingResult), Error> {
    overriding::end(db, check).await?;
    let now = freshness::database_now(db).await?;
    let consulted = consulted(db, check).await?;
    let anchors = stored::checked(db, &check.tenant_id, &consulted).await?;
    let tolerated = tolerated(db, check).await?;
    let assumed = assumptions(check);
    let judged = judge(&anchors, &assumed, &tolerated, freshness::moment(now));
    let findings = findings(&anchors, &assumed, &judged);
    let drift = drift_found::keep(db, check, &findings, now, actor).await?;
    let reasons = reasons(&judged);
    let mut history = check.history.clone();
    history.push(CheckRun {
        evaluated_at: Some(now),
        coupling_result: judged.result.to_string(),
        runtime_effect: judged.effect.to_string(),
        reason_codes: reasons.clone(),
    });
    history.drain(..history.len().saturating_sub(HISTORY));
    let snapshots: Vec<String> =
        findings.iter().filter_map(|finding| finding.snapshot_id.clone()).collect();
    let severity = judged.result.severity().map(|severity| severity.to_string());
    let ran = diesel::update(checks::table.find(&check.id))
        .filter(checks::tenant_id.eq(&check.tenant_id))
        .set((
            checks::coupling_result.eq(judged.result.to_string()),
            checks::runtime_effect.eq(judged.effect.to_string()),
            checks::evaluated_at.eq(now),
            checks::severity.eq(severity),
            checks::reason_codes.eq(reasons),
            checks::snapshot_refs.eq(snapshots),
            checks::drift_event_id.eq(drift),
            checks::result_source.eq(ENGINE),
            checks::findings.eq(findings),
            checks::history.eq(history),
            checks::updated_at.eq(clock_timestamp()),
        ))
        .returning(CouplingCheck::as_returning())
        .get_result(db)
        .await?;
    Ok((ran, judged.result))
}

/// Returns the anchors that the check consults. These are the anchors that it names or, if it names
/// none, the anchors that ground its action. The anchors in its assumptions are added.
async fn consulted(db: &mut Db, check: &CouplingCheck) -> Result<Vec<EntityRef>, Error> {
    let named = check.anchors_consulted.iter();
    let mut ids: Vec<EntityRef> = named.map(|id| id.as_str().into()).collect();
    if ids.is_empty() {
        let tenant = &check.tenant_id;
        let subject =
            refers::subject(db, CouplingCheck::KIND, &row_id(tenant)?, &check.action_id).await?;
        ids = stored::grounding(db, tenant, &check.action, subject.purpose.as_ref()).await?;
    }
    for assumed in assumptions(check) {
        if !ids.contains(&assumed.anchor_id) {
            ids.push(assumed.anchor_id);
        }
    }
    Ok(ids)
}

/// Returns the findings tolerated in this check.
async fn tolerated(db: &mut Db, check: &CouplingCheck) -> Result<Vec<Tolerated>, Error> {
    let stored: Value = checks::table.find(&check.id).select(checks::tolerated).first(db).await?;
    // If the stored value can't be read, no finding is tolerated.
    Ok(serde_json::from_value(stored).unwrap_or_default())
}

fn findings(
    anchors: &[CheckedAnchor],
    assumed: &[Assumption],
    judged: &Checked,
) -> Vec<CheckFinding> {
    let of = |id: &EntityRef| anchors.iter().find(|checked| checked.id == *id);
    let drift_types = |id: &EntityRef| {
        let own = judged.drifts.iter().filter(|(anchor_id, _)| anchor_id == id);
        own.map(|(_, found)| found.to_string()).collect()
    };
    let one = |(id, finding): &(EntityRef, Finding)| {
        let newest = of(id).and_then(|checked| checked.anchor.as_ref()?.newest.as_ref());
        let observed = of(id).filter(|_| newest.is_some()).into_iter();
        let mismatched = observed.flat_map(|checked| checked.mismatched_paths(assumed));
        CheckFinding {
            anchor_id: id.clone().into(),
            coupling_result: finding.result.to_string(),
            runtime_effect: finding.effect.to_string(),
            drift_type: finding.drift_type.map(|found| found.to_string()),
            snapshot_id: newest.map(|newest| newest.id.clone().into()),
            sampled_at: newest.map(|newest| Time::from(newest.sampled_at)),
            content_hash: newest.map(|newest| newest.content_hash.clone()),
            drift_types: drift_types(id),
            mismatched_paths: mismatched.cloned().collect(),
            of_age: matches!(
                finding.kind,
                FindingKind::Missing | FindingKind::Stale | FindingKind::AssumptionExpired
            ),
        }
    };
    judged.findings.iter().map(one).collect()
}

/// Returns the types of drift that were found, without duplicates.
fn reasons(judged: &Checked) -> Vec<String> {
    if judged.findings.is_empty() {
        return vec![NO_ANCHOR.to_owned()];
    }
    let mut found: Vec<_> =
        judged.findings.iter().filter_map(|(_, finding)| finding.drift_type).collect();
    found.sort_unstable();
    found.dedup();
    found.iter().map(ToString::to_string).collect()
}
