//! Stage 3: policies, then reality, then the gate. A denial comes before a hold.
//!
//! All three are evaluated before the outcome: a refusal by any of them overrides a hold by
//! another.

use authority_ids::ApprovalRef;
use chrono::{DateTime, Utc};

use super::{
    evaluation::{HeldBy, Policies, distinct},
    needed::Needed,
    people,
    reality::{Coupling, HeldByReality},
};
use crate::{
    authority::{
        candidate::Candidate,
        case::Case,
        trace_step::{Outcome, TraceStep},
    },
    levels::Oversight,
    policy::statement::{Effect, Statement},
    reason::Reason,
};

/// The outcome of the rules.
#[derive(Debug, Default)]
pub(crate) struct Rules<'a> {
    /// The refusals, in order. The first is the decision's code.
    pub denials: Vec<Reason>,
    /// The unmet holds, in order.
    pub holds: Vec<Reason>,
    /// The people that the holds require.
    pub needed: Needed,
    pub obligations: Vec<&'a str>,
    pub stop_conditions: Vec<&'a str>,
    pub advice: Vec<&'a str>,
    /// The statements of unmet holds.
    pub held_by: Vec<HeldBy>,
    /// The causes of the holds of reality, met or unmet.
    pub held_by_reality: Vec<HeldByReality>,
    /// The earliest end of the matching policies.
    pub until: Option<DateTime<Utc>>,
    /// When a consulted anchor goes stale, or a used override ends.
    pub coupled_until: Option<DateTime<Utc>>,
    /// The cited approval, if it is enough for the holds.
    pub approval: Option<&'a ApprovalRef>,
    /// The steps for `explain`.
    pub steps: Vec<TraceStep>,
}

pub(crate) fn evaluate<'a>(case: &Case<'a>, candidate: &Candidate<'a>) -> Rules<'a> {
    let policies = Policies::evaluate(case, candidate);
    let reality = Coupling::evaluate(case, candidate);
    let gate = Gate::evaluate(case, candidate);
    let mut needed = policies.needed;
    needed.take(reality.needed);
    needed.take(gate.needed);
    let cited = people::cited_approval(case);
    let approval = cited.and_then(Result::ok);
    let (advice, until) = (policies.advice(), policies.until(case));
    // An approval that is not needed is not spent.
    let met =
        !needed.is_nobody() && approval.is_some_and(|approval| needed.is_met_by(&approval.given));
    let mut rules = Rules {
        denials: first_nonempty([policies.denials, reality.denials, gate.denials]),
        approval: approval.filter(|_| met).map(|approval| &approval.id),
        needed: if met { Needed::default() } else { needed },
        steps: [policies.steps, reality.steps, gate.steps, approved(case, needed, met)].concat(),
        ..Rules::default()
    };
    if !met {
        rules.held_by =
            policies.matched.iter().filter_map(|statement| held_by(statement)).collect();
        rules.holds.extend(policies.holds);
    }
    rules.holds.extend(reality.unapprovable);
    if !met {
        rules.holds.extend(reality.holds);
        rules.holds.extend(gate.holds);
    }
    distinct(&mut rules.holds);
    for statement in policies.matched {
        rules.obligations.extend(statement.obligations.iter().map(String::as_str));
        rules.stop_conditions.extend(statement.stop_conditions.iter().map(String::as_str));
    }
    rules.advice = advice;
    rules.until = until;
    rules.obligations.extend(reality.obligations);
    rules.stop_conditions.extend(reality.consulted.then_some("reality.decoupled"));
    rules.coupled_until = reality.until;
    rules.held_by_reality = reality.held_by;
    rules
}

/// Explains whether the cited approval counts, for `explain`.
fn approved(case: &Case<'_>, needed: Needed, met: bool) -> Vec<TraceStep> {
    let cited = case.request.approval_id.as_ref().filter(|_| case.request.explain);
    let (Some(id), Some(cited)) = (cited, people::cited_approval(case)) else { return Vec::new() };
    let (outcome, detail) = match cited {
        Err(why) if needed.is_nobody() => (Outcome::Pass, why.to_owned()),
        Err(why) => (Outcome::Hold, why.to_owned()),
        Ok(_) if met => (Outcome::Pass, "counts: it is what the holds ask for".to_owned()),
        Ok(_) if needed.is_nobody() => {
            (Outcome::Pass, "is not needed and not spent: nothing asks for people".to_owned())
        }
        Ok(_) => {
            let legal = if needed.legal { ", one of them in the role legal" } else { "" };
            let count = needed.count;
            (Outcome::Hold, format!("does not suffice: it takes {count} people{legal}"))
        }
    };
    vec![TraceStep::new("approval", id, outcome, None, detail)]
}

fn held_by(statement: &Statement) -> Option<HeldBy> {
    matches!(statement.effect, Effect::Hold(..)).then(|| HeldBy {
        policy_id: statement.policy_id.clone(),
        statement: statement.id.clone(),
        advice: statement.advice.clone(),
    })
}

/// Returns the first list that is not empty.
fn first_nonempty(parts: [Vec<Reason>; 3]) -> Vec<Reason> {
    parts.into_iter().find(|part| !part.is_empty()).unwrap_or_default()
}

#[derive(Default)]
struct Gate {
    denials: Vec<Reason>,
    holds: Vec<Reason>,
    needed: Needed,
    steps: Vec<TraceStep>,
}

impl Gate {
    fn evaluate(case: &Case<'_>, candidate: &Candidate<'_>) -> Self {
        let tenant = case.gathered.tenant.as_deref();
        let declared = &candidate.declared;
        let tightening = tenant.map_or(&[][..], |tenant| &tenant.gate);
        let standing = people::standing_is_missing(candidate);
        let mut oversight = declared.counted.oversight(tightening);
        if standing {
            oversight = oversight.max(Oversight::SingleApprover);
        }
        let mut gate = Self::default();
        let needed = Needed::oversight(oversight);
        let (outcome, reason) = if oversight == Oversight::Prohibited {
            gate.denials.push(Reason::RiskProhibited);
            (Outcome::Refuse, Some(Reason::RiskProhibited))
        } else if !declared.is_declared && tenant.is_some_and(|t| t.require_declaration) {
            gate.denials.push(Reason::DeclarationRequired);
            (Outcome::Refuse, Some(Reason::DeclarationRequired))
        } else if people::is_met_by_standing(candidate, needed) {
            (Outcome::Pass, None)
        } else {
            gate.holds.push(Reason::OversightRequired);
            gate.needed = needed;
            (Outcome::Hold, Some(Reason::OversightRequired))
        };
        if case.request.explain {
            let detail = format!("least oversight: {oversight}");
            gate.steps.push(TraceStep::new("gate", "", outcome, reason, detail));
        }
        gate
    }
}
