//! Composes the stages of a decision: authority, purpose, rules, verdict.

use chrono::{DateTime, TimeDelta, Utc};

use super::{
    asked_before::Refusal,
    outcome::{Claims, Verdict},
    trace, unsupported,
};
use crate::{
    authority::{
        case::Case,
        choose::{self, Choice},
        exceeded,
        limits::{self, counters_needed},
        used::AuthorityUsed,
    },
    facts::{
        gathered::{Facts, Spent},
        records::default_validity,
    },
    levels::Decision,
    reason::Reason,
    request::draft::Request,
    rules::{
        combined::{self, Rules},
        evaluation,
        needed::ApprovalsNeeded,
    },
};

/// Decides whether the action is permitted at `at`, given the facts.
///
/// The same arguments always give the same verdict.
pub fn decide(request: &Request, facts: &Facts, at: DateTime<Utc>) -> Verdict {
    let case = Case::new(request, facts, at);
    verdict(&case, &choose::choose(&case))
}

/// Judges a permission again on current facts.
///
/// Decides whether the request that was permitted at `evaluated_at` would be permitted at `at`,
/// under the same authority. Hours, `now` and `local` are judged at `evaluated_at`, everything else
/// at `at`. `facts` has the zones' offsets at `evaluated_at`.
/// Counters include only this permission's spending, and ignore later spending by others. The
/// approval in `facts` is the approval that the permission spent.
pub fn judge_again(
    request: &Request,
    used: &AuthorityUsed,
    facts: &Facts,
    evaluated_at: DateTime<Utc>,
    at: DateTime<Utc>,
) -> Verdict {
    let counters = counters_needed(&facts.gathered, at).into_iter().map(|key| (key, 0));
    let facts = Facts { spent: Spent(counters.collect()), ..facts.clone() };
    let case = Case { asked_at: evaluated_at, ..Case::new(request, &facts, at) };
    verdict(&case, &choose::choose_again(&case, used))
}

fn verdict<'a>(case: &Case<'a>, choice: &Choice<'a>) -> Verdict {
    let request = case.request;
    // A refusal is final. The rules are still evaluated if the whole trace was requested.
    let rules = match choice.refusal {
        Some(_) if !request.explain => Rules::default(),
        _ => combined::evaluate(case, &choice.candidate),
    };
    let trace = request.explain.then(|| trace::stages(case, choice, &rules));
    let verdict = match choice.refusal {
        Some(refusal) => Verdict {
            exceeded_budgets: exceeded::budgets(case, &choice.candidate, refusal.reason),
            ..denied(vec![refusal.reason])
        },
        None if !rules.denials.is_empty() => denied_by(&rules),
        None if unsupported::obligations(case, &rules).next().is_some() => {
            denied(vec![Reason::ObligationUnsupported])
        }
        None if !rules.holds.is_empty() => match Refusal::of(case, &rules) {
            Some(refusal) => denied(vec![refusal.reason()]),
            None => held(choice, &rules),
        },
        None => permitted(case, choice, &rules),
    };
    Verdict { trace, ..verdict }
}

fn denied(reasons: Vec<Reason>) -> Verdict {
    let reason_code = reasons.first().copied().unwrap_or(Reason::RuleError);
    Verdict {
        decision: Decision::Deny,
        reason_code,
        reasons,
        obligations: Vec::new(),
        stop_conditions: Vec::new(),
        approvals_needed: None,
        authority: None,
        tool_id: None,
        claims: Claims::default(),
        valid_until: None,
        advice: Vec::new(),
        held_by: Vec::new(),
        held_by_reality: Vec::new(),
        exceeded_budgets: Vec::new(),
        trace: None,
    }
}

fn denied_by(rules: &Rules<'_>) -> Verdict {
    Verdict { advice: owned(&rules.advice), ..denied(rules.denials.clone()) }
}

fn held(choice: &Choice<'_>, rules: &Rules<'_>) -> Verdict {
    let approvals_needed: Option<ApprovalsNeeded> = rules.needed.approvals_needed();
    Verdict {
        decision: Decision::RequireApproval,
        approvals_needed,
        authority: choice.candidate.used(),
        tool_id: choice.candidate.tool_id(),
        advice: owned(&rules.advice),
        held_by: rules.held_by.clone(),
        held_by_reality: rules.held_by_reality.clone(),
        ..denied(rules.holds.clone())
    }
}

fn permitted(case: &Case<'_>, choice: &Choice<'_>, rules: &Rules<'_>) -> Verdict {
    let candidate = &choice.candidate;
    let mut obligations = vec!["audit.emit"];
    obligations.extend(&rules.obligations);
    let mut stop_conditions = vec!["actor.stop_signal"];
    stop_conditions.extend(candidate.delegation_id().map(|_| "delegation.revoked"));
    stop_conditions.extend(&rules.stop_conditions);
    evaluation::distinct(&mut obligations);
    evaluation::distinct(&mut stop_conditions);
    let claims =
        Claims { approval_id: rules.approval.cloned(), counters: limits::claims(case, candidate) };
    Verdict {
        // Every permission has these constraints, and is therefore never a plain allow.
        decision: Decision::AllowWithConstraints,
        obligations: owned(&obligations),
        stop_conditions: owned(&stop_conditions),
        authority: candidate.used(),
        tool_id: candidate.tool_id(),
        claims,
        valid_until: Some(valid_until(case, choice, rules)),
        advice: owned(&rules.advice),
        held_by_reality: rules.held_by_reality.clone(),
        ..denied(vec![Reason::PermissionGranted])
    }
}

/// Returns the end of the verdict's validity.
///
/// This is the end of the tenant's validity, counted from the decision's time. It is earlier if
/// something that the decision depends on ends earlier: the authority or its hours, the membership
/// of a workspace, the time until a denial, the purpose, a matching policy, or the freshness of an
/// anchor.
fn valid_until(case: &Case<'_>, choice: &Choice<'_>, rules: &Rules<'_>) -> DateTime<Utc> {
    let tenant = case.gathered.tenant.as_deref();
    let seconds = tenant.map_or(default_validity(), |tenant| tenant.valid_for_seconds);
    let span = case.at.checked_add_signed(TimeDelta::seconds(seconds.into()));
    let purpose = case.purpose().and_then(|purpose| purpose.window.until);
    let membership = choose::membership_until(case);
    let denied = choose::denied_from(case, &choice.candidate);
    let ends =
        [choice.candidate.until(), membership, denied, purpose, rules.until, rules.coupled_until];
    let end = ends.into_iter().flatten().fold(span.unwrap_or(case.at), Ord::min);
    limits::hours_end(case, &choice.candidate, end).unwrap_or(end)
}

fn owned(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}
