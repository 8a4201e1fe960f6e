//! Stage 3: policies, then reality, then the gate; deny before hold.
//!
//! All three are heard before anything is said: a refusal of any beats a hold of any.

use chrono::{DateTime, Utc};

use super::{
    candidate::Candidate,
    case::Case,
    cost,
    levels::{Oversight, RuntimeEffect},
    people::{self, Needed},
    reality,
    reason::Reason,
    stack,
    statement::{Evaluated, Says, Statement},
    target::Aspects,
    terms::Possible,
    trace::{Outcome, Step},
    verdict::HeldBy,
    world::World,
};

const TOO_COSTLY: &str = "the patterns and comparisons of the policies would take too long on a \
    context of this size";

/// What the rules come to.
#[derive(Debug, Default)]
pub(super) struct Rules<'a> {
    /// Refusals, in order; the first names the decision's code.
    pub denials: Vec<Reason>,
    /// Holds that nothing has met, in order.
    pub holds: Vec<Reason>,
    /// The people whom the holds ask for.
    pub needed: Needed,
    pub obligations: Vec<&'a str>,
    pub stop_conditions: Vec<&'a str>,
    pub advice: Vec<&'a str>,
    /// The statements that hold it and that nothing has met.
    pub held_by: Vec<HeldBy>,
    /// When the first of the policies that matched ends by itself.
    pub until: Option<DateTime<Utc>>,
    /// The approval that met the holds, or would have.
    pub approval: Option<&'a str>,
    /// With `explain`: what was heard.
    pub steps: Vec<Step>,
}

pub(super) fn hear<'a>(case: &Case<'a>, candidate: &Candidate<'a>) -> Rules<'a> {
    let policies = Policies::hear(case, candidate);
    let reality = Reality::hear(case);
    let gate = Gate::hear(case, candidate);
    let mut needed = policies.needed;
    needed.take(reality.needed);
    needed.take(gate.needed);
    let approval = people::cited_approval(case);
    let (advice, until) = (policies.advice(), policies.until(case));
    // One that nothing needs is not spent.
    let met =
        !needed.is_nobody() && approval.is_some_and(|approval| needed.is_met_by(&approval.given));
    let mut rules = Rules {
        denials: first_nonempty([policies.denials, reality.denials, gate.denials]),
        approval: approval.filter(|_| met).map(|approval| approval.id.as_str()),
        needed: if met { Needed::default() } else { needed },
        steps: [policies.steps, reality.steps, gate.steps].concat(),
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
    if reality.warns {
        rules.obligations.push("reality.warn");
    }
    rules
}

fn held_by(statement: &Statement) -> Option<HeldBy> {
    matches!(statement.says, Says::Hold(..)).then(|| HeldBy {
        policy_id: statement.policy_id.clone(),
        statement: statement.id.clone(),
        advice: statement.advice.clone(),
    })
}

/// The refusals of the first part that refuses.
fn first_nonempty(parts: [Vec<Reason>; 3]) -> Vec<Reason> {
    parts.into_iter().find(|part| !part.is_empty()).unwrap_or_default()
}

/// Keeps the first of each.
pub(super) fn distinct<T: PartialEq>(list: &mut Vec<T>) {
    let mut kept: Vec<T> = Vec::with_capacity(list.len());
    for item in list.drain(..) {
        if !kept.contains(&item) {
            kept.push(item);
        }
    }
    *list = kept;
}

#[derive(Default)]
struct Policies<'a> {
    denials: Vec<Reason>,
    holds: Vec<Reason>,
    needed: Needed,
    /// The statements that matched, in order.
    matched: Vec<&'a Statement>,
    steps: Vec<Step>,
}

impl<'a> Policies<'a> {
    fn hear(case: &Case<'a>, candidate: &Candidate<'a>) -> Self {
        let mut heard: Vec<_> = evaluate(case, candidate);
        heard.sort_by(|(one, _), (other, _)| one.order().cmp(&other.order()));
        let mut policies = Self::default();
        for (statement, evaluated) in heard {
            if case.request.explain {
                policies.steps.push(step(statement, &evaluated));
            }
            match (evaluated, statement.says) {
                (Evaluated::Silent, _) => continue,
                (Evaluated::Failed(_), _) => {
                    policies.denials.push(Reason::RuleError);
                    continue;
                }
                (Evaluated::Matches, Says::Permit) => {}
                (Evaluated::Matches, Says::Deny(reason)) => policies.denials.push(reason),
                (Evaluated::Matches, Says::Hold(reason, count)) => {
                    policies.holds.push(reason);
                    policies.needed.take(Needed::people(count));
                }
            }
            policies.matched.push(statement);
        }
        distinct(&mut policies.denials);
        policies
    }

    /// When the first of those that matched ends.
    fn until(&self, case: &Case<'_>) -> Option<DateTime<Utc>> {
        let ending = case.gathered.policies.iter().map(|policy| &policy.reference);
        let ending = ending.filter_map(|policy| Some((&policy.id, policy.effective.until?)));
        let bind = |id: &String| self.matched.iter().any(|statement| statement.policy_id == *id);
        ending.filter(|(id, _)| bind(id)).map(|(_, until)| until).min()
    }

    /// What the strongest of the matching statements say to people.
    fn advice(&self) -> Vec<&'a str> {
        let strength = |statement: &Statement| match statement.says {
            Says::Permit => 0,
            Says::Hold(..) => 1,
            Says::Deny(_) => 2,
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
    let possible = Possible::of(case.request, candidate.model, candidate.terms);
    let aspects = Aspects {
        action,
        effect_classes: &possible.effect_classes,
        risk_tiers: &possible.risk_tiers,
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
    if cost::is_too_much(statements.iter().map(|one| one.cost), &case.request.context) {
        let failed = || Evaluated::Failed(TOO_COSTLY.to_owned());
        return statements.into_iter().map(|statement| (statement, failed())).collect();
    }
    let reads = |member: &str| statements.iter().any(|statement| statement.reads(member));
    let world = World::of(case, candidate, reads);
    let cedar = world.as_ref().map(World::evaluator);
    let evaluated = |statement: &Statement| match &cedar {
        Some(cedar) => statement.evaluate(cedar),
        None => Evaluated::Failed("the request cannot be shown to policies".to_owned()),
    };
    stack::for_evaluating(|| {
        statements.into_iter().map(|statement| (statement, evaluated(statement))).collect()
    })
}

fn step(statement: &Statement, evaluated: &Evaluated) -> Step {
    let (outcome, reason_code) = match (evaluated, statement.says) {
        (Evaluated::Failed(_), _) => (Outcome::Refuse, Some(Reason::RuleError)),
        (Evaluated::Silent, _) | (Evaluated::Matches, Says::Permit) => (Outcome::Pass, None),
        (Evaluated::Matches, Says::Deny(reason)) => (Outcome::Refuse, Some(reason)),
        (Evaluated::Matches, Says::Hold(reason, _)) => (Outcome::Hold, Some(reason)),
    };
    let detail = match evaluated {
        Evaluated::Failed(why) => why.clone(),
        Evaluated::Silent => "does not match".to_owned(),
        Evaluated::Matches => statement.advice.clone().unwrap_or_else(|| "matches".to_owned()),
    };
    let id = format!("{} ({}#{})", statement.id, statement.policy_id, statement.ordinal);
    Step { kind: "policy".to_owned(), id, outcome, reason_code, detail }
}

#[derive(Default)]
struct Reality {
    denials: Vec<Reason>,
    /// Met by a new snapshot or an override only.
    unapprovable: Vec<Reason>,
    holds: Vec<Reason>,
    needed: Needed,
    warns: bool,
    steps: Vec<Step>,
}

impl Reality {
    fn hear(case: &Case<'_>) -> Self {
        let mut reality = Self::default();
        let mut steps = Vec::new();
        for (kind, id, effect) in reality::effects(case) {
            let (outcome, reason_code) = reality.take(effect);
            if case.request.explain {
                let detail = effect.word().to_owned();
                let (kind, id) = (kind.to_owned(), id.to_owned());
                steps.push(Step { kind, id, outcome, reason_code, detail });
            }
        }
        steps.sort_by(|one, other| (&one.kind, &one.id).cmp(&(&other.kind, &other.id)));
        distinct(&mut reality.denials);
        Self { steps, ..reality }
    }

    fn take(&mut self, effect: RuntimeEffect) -> (Outcome, Option<Reason>) {
        match effect {
            RuntimeEffect::Continue => (Outcome::Pass, None),
            RuntimeEffect::ContinueWithWarning => {
                self.warns = true;
                (Outcome::Pass, None)
            }
            RuntimeEffect::RequireRevalidation => {
                self.unapprovable.push(Reason::RealityRevalidationRequired);
                (Outcome::Hold, Some(Reason::RealityRevalidationRequired))
            }
            RuntimeEffect::RequireHumanReview => {
                self.holds.push(Reason::RealityReviewRequired);
                self.needed.take(Needed::people(1));
                (Outcome::Hold, Some(Reason::RealityReviewRequired))
            }
            RuntimeEffect::Quarantine | RuntimeEffect::Deny => {
                self.denials.push(Reason::RealityDecoupled);
                (Outcome::Refuse, Some(Reason::RealityDecoupled))
            }
        }
    }
}

#[derive(Default)]
struct Gate {
    denials: Vec<Reason>,
    holds: Vec<Reason>,
    needed: Needed,
    steps: Vec<Step>,
}

impl Gate {
    fn hear(case: &Case<'_>, candidate: &Candidate<'_>) -> Self {
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
            let (kind, id) = ("gate".to_owned(), String::new());
            gate.steps.push(Step { kind, id, outcome, reason_code: reason, detail });
        }
        gate
    }
}
