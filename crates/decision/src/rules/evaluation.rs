//! Evaluates the policies that apply to one case.
//!
//! A request without a tool could be carried out with any tool that performs the action, and the
//! tools may have different declarations. A policy may test for a milder value, or for the absence
//! of a field. The strictest declaration alone is therefore not enough: each statement is evaluated
//! on the strictest declaration and on each tool's own, and the strictest outcome counts. For the
//! same reason, a request that raises what records declare is also evaluated without the raise.

use authority_ids::EntityRef;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use super::{
    cedar_request::{self, CedarRequest},
    needed::Needed,
};
use crate::{
    authority::{
        candidate::Candidate,
        case::Case,
        trace_step::{Outcome, PolicyStatement, TraceStep},
    },
    facts::gate::Effective,
    policy::{
        cost, stack,
        statement::{Effect, Evaluated, Statement},
        target::Aspects,
    },
    reason::Reason,
};

/// A policy statement that holds an action until people approve.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldBy {
    pub policy_id: EntityRef,
    /// The statement's `@id`, or the policy's id.
    pub statement: String,
    /// The statement's `@advice`.
    pub advice: Option<String>,
}

/// The maximum number of declarations to evaluate policies on. If there are more, the request must
/// name a tool. A request that raises them is evaluated on at most as many again.
const MOST_DECLARATIONS: usize = 64;

const UNSEEN: &str = "the request cannot be shown to policies";
const TOO_COSTLY: &str = "the patterns and comparisons of the policies would take too long on a \
    context of this size";
const TOO_MANY: &str = "the tools that perform this action declare more than 64 different things \
    that policies read; name the tool in `tool_id`";

/// The outcome of the policies that apply.
#[derive(Default)]
pub(crate) struct Policies<'a> {
    pub(crate) denials: Vec<Reason>,
    pub(crate) holds: Vec<Reason>,
    pub(crate) needed: Needed,
    /// The matching statements, in order.
    pub(crate) matched: Vec<&'a Statement>,
    pub(crate) steps: Vec<TraceStep>,
}

impl<'a> Policies<'a> {
    pub(crate) fn evaluate(case: &Case<'a>, candidate: &Candidate<'a>) -> Self {
        let mut heard: Vec<_> = evaluate(case, candidate);
        heard.sort_by(|(one, _), (other, _)| one.order().cmp(&other.order()));
        let mut policies = Self::default();
        for (statement, evaluated) in heard {
            if case.request.explain {
                policies.steps.push(step(statement, &evaluated));
            }
            match (evaluated, statement.effect) {
                (Evaluated::Silent, _) => continue,
                (Evaluated::Failed(_), _) => {
                    policies.denials.push(Reason::RuleError);
                    continue;
                }
                (Evaluated::Matches, Effect::Permit) => {}
                (Evaluated::Matches, Effect::Deny(reason)) => policies.denials.push(reason),
                (Evaluated::Matches, Effect::Hold(reason, count)) => {
                    policies.holds.push(reason);
                    policies.needed.take(Needed::people(count));
                }
            }
            policies.matched.push(statement);
        }
        distinct(&mut policies.denials);
        policies
    }

    /// Returns the earliest end of the matching policies.
    pub(crate) fn until(&self, case: &Case<'_>) -> Option<DateTime<Utc>> {
        let ending = case.gathered.policies.iter().map(|policy| &policy.reference);
        let ending = ending.filter_map(|policy| Some((&policy.id, policy.effective.until?)));
        let bind = |id: &EntityRef| self.matched.iter().any(|statement| statement.policy_id == *id);
        ending.filter(|(id, _)| bind(id)).map(|(_, until)| until).min()
    }

    /// Returns the advice of the strongest matching statements.
    pub(crate) fn advice(&self) -> Vec<&'a str> {
        let strength = |statement: &Statement| match statement.effect {
            Effect::Permit => 0,
            Effect::Hold(..) => 1,
            Effect::Deny(_) => 2,
        };
        let strongest = self.matched.iter().map(|statement| strength(statement)).max();
        let loudest = self.matched.iter().filter(|s| Some(strength(s)) == strongest);
        loudest.filter_map(|statement| statement.advice.as_deref()).collect()
    }
}

/// Evaluates every statement that can match.
fn evaluate<'a>(case: &Case<'a>, candidate: &Candidate<'a>) -> Vec<(&'a Statement, Evaluated)> {
    let action = case.request.action.as_str();
    if case.gathered.policies.is_empty() {
        return Vec::new();
    }
    let declared = candidate.declared.seen_by_policies(candidate.terms);
    let (effect_classes, risk_tiers) =
        (each(&declared, |one| one.effect_class), each(&declared, |one| one.risk_tier));
    let aspects = Aspects {
        action,
        effect_classes: &effect_classes,
        risk_tiers: &risk_tiers,
        principal_class: case.subject().map(|subject| subject.class),
        resource_kind: case.resource().map(|resource| resource.kind.as_str()),
        purpose: case.request.purpose.as_deref(),
        jurisdiction: case.request.jurisdiction(),
    };
    let policies = case
        .gathered
        .policies
        .iter()
        .filter(|policy| policy.reference.effective.holds(case.at) && policy.applies(&aspects));
    let statements: Vec<_> = policies.flat_map(|policy| policy.statements(action)).collect();
    if statements.is_empty() {
        return Vec::new();
    }
    let failed = |why: &str| -> Vec<_> {
        let failed = || Evaluated::Failed(why.to_owned());
        statements.iter().map(|statement| (*statement, failed())).collect()
    };
    let reads = |member: &str| statements.iter().any(|statement| statement.reads(member));
    let declared = read_of(declared, reads);
    // A raise must neither reach nor avoid the limit. It is counted only if it could matter.
    let unraised = || read_of(candidate.declared.without_raise(candidate.terms), reads).len();
    if declared.len() > MOST_DECLARATIONS && unraised() > MOST_DECLARATIONS {
        return failed(TOO_MANY);
    }
    // A statement that does not read the declaration is evaluated once.
    let times = |statement: &Statement| {
        let reads_declared = cedar_request::reads_declared(|member| statement.reads(member));
        if reads_declared { declared.len() } else { 1 }
    };
    let costs = statements.iter().map(|statement| statement.cost.times(times(statement)));
    if cost::is_too_much(costs, &case.request.context) {
        return failed(TOO_COSTLY);
    }
    let Some(world) = CedarRequest::of(case, candidate, reads) else {
        return failed(UNSEEN);
    };
    let evaluators: Vec<_> = declared.iter().map(|declared| world.evaluator(*declared)).collect();
    let evaluated = |statement: &Statement| {
        let outcomes =
            evaluators.iter().take(times(statement)).map(|cedar| statement.evaluate(cedar));
        outcomes.reduce(Evaluated::stricter).unwrap_or_else(|| Evaluated::Failed(UNSEEN.to_owned()))
    };
    stack::for_evaluating(|| {
        statements.into_iter().map(|statement| (statement, evaluated(statement))).collect()
    })
}

/// Returns the distinct values of a declared field. Empty if a declaration lacks the field: a
/// missing field counts as any value.
fn each<T: Copy + PartialEq>(
    declared: &[Effective],
    member: impl Fn(&Effective) -> Option<T>,
) -> Vec<T> {
    let mut values: Vec<T> = declared.iter().map(member).collect::<Option<_>>().unwrap_or_default();
    distinct(&mut values);
    values
}

/// Returns the distinct declarations, reduced to the fields that policies read.
fn read_of(declared: Vec<Effective>, reads: impl Fn(&str) -> bool) -> Vec<Effective> {
    let mut read: Vec<_> =
        declared.into_iter().map(|one| cedar_request::as_read(one, &reads)).collect();
    read.sort_unstable();
    read.dedup();
    read
}

/// Removes duplicates, keeping the first of each.
pub(crate) fn distinct<T: PartialEq>(list: &mut Vec<T>) {
    let mut kept: Vec<T> = Vec::with_capacity(list.len());
    for item in list.drain(..) {
        if !kept.contains(&item) {
            kept.push(item);
        }
    }
    *list = kept;
}

fn step(statement: &Statement, evaluated: &Evaluated) -> TraceStep {
    let (outcome, reason_code) = match (evaluated, statement.effect) {
        (Evaluated::Failed(_), _) => (Outcome::Refuse, Some(Reason::RuleError)),
        (Evaluated::Silent, _) | (Evaluated::Matches, Effect::Permit) => (Outcome::Pass, None),
        (Evaluated::Matches, Effect::Deny(reason)) => (Outcome::Refuse, Some(reason)),
        (Evaluated::Matches, Effect::Hold(reason, _)) => (Outcome::Hold, Some(reason)),
    };
    let advice = statement.advice.clone().filter(|_| *evaluated == Evaluated::Matches);
    let detail = match evaluated {
        Evaluated::Failed(why) => why.clone(),
        Evaluated::Silent => "does not match".to_owned(),
        Evaluated::Matches => advice.clone().unwrap_or_else(|| "matches".to_owned()),
    };
    let id = format!("{} ({}#{})", statement.id, statement.policy_id, statement.ordinal);
    let (policy_id, statement) = (statement.policy_id.clone(), statement.id.clone());
    let statement = Some(PolicyStatement { policy_id, id: statement, advice });
    TraceStep { statement, ..TraceStep::new("policy", id, outcome, reason_code, detail) }
}
