//! Checks that evaluating the active policies does not take more steps than a decision may take.
//!
//! A decision is denied if its policies take too many steps. If even the smallest request takes too
//! many, the policies deny every request that they apply to. A change of policies with that effect
//! is refused.

use std::{collections::BTreeMap, fmt, sync::Arc};

use chrono::{DateTime, Utc};

use super::{compiled::CompiledPolicy, cost::MOST_STEPS, statement::ActionScope, target::Target};
use crate::pattern::{Pattern, is_below};

/// The maximum number of actions and times to examine, which bounds the check.
const MOST_ACTIONS: usize = 1024;
const MOST_TIMES: usize = 32;
/// Represents every action that policies don't name.
const ANY: &str = "any";

type Policies = [Arc<CompiledPolicy>];

/// The requests that would all be denied, and the number of steps that they would take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exceeded {
    steps: u64,
    action: String,
    target: Option<Target>,
    from: Option<DateTime<Utc>>,
}

impl fmt::Display for Exceeded {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { steps, action, target, from } = self;
        write!(
            to,
            "the patterns and comparisons of the policies in force would take {steps} steps even on the \
             smallest request"
        )?;
        match action.as_str() {
            ANY => write!(to, ", whatever its action")?,
            action => write!(to, " for `{action}`")?,
        }
        target.iter().try_for_each(|target| write!(to, " where `{target}` applies"))?;
        from.iter().try_for_each(|from| write!(to, ", from {}", crate::moment::text(*from)))?;
        write!(
            to,
            "; the limit is {MOST_STEPS}, so each such request would be denied as rule_error: shorten the texts behind \
             `*` in patterns of `like`, compare fewer members with one another, give policies `applies_to` targets, \
             or retire one first"
        )
    }
}

/// Finds requests that a change of policies makes too expensive to decide.
///
/// Even the smallest of these requests takes more than [`MOST_STEPS`] steps, and more steps than
/// before the change. A change that only lowers the cost is therefore accepted.
pub fn exceeded(before: &Policies, after: &Policies, at: DateTime<Utc>) -> Option<Exceeded> {
    let after: Vec<_> = after.iter().filter(|policy| policy.least_steps().is_some()).collect();
    let least = |policies: &[&Arc<CompiledPolicy>]| -> u64 {
        policies.iter().filter_map(|policy| policy.least_steps()).fold(0, u64::saturating_add)
    };
    if least(&after) <= MOST_STEPS {
        return None;
    }
    let before: Vec<_> = before.iter().filter(|policy| policy.least_steps().is_some()).collect();
    let starts = after.iter().filter_map(|policy| policy.reference.effective.from);
    let mut times: Vec<_> = starts.filter(|from| *from > at).chain([at]).collect();
    times.sort_unstable();
    times.dedup();
    let actions = actions(&after);
    for time in times.into_iter().take(MOST_TIMES) {
        for action in &actions {
            let (old, new) = (steps(&before, action, time), steps(&after, action, time));
            for (target, steps) in new {
                let was = old.get(&target).or_else(|| old.get(&None)).copied().unwrap_or_default();
                if steps > MOST_STEPS && steps > was {
                    let from = (time > at).then_some(time);
                    return Some(Exceeded { steps, action: action.clone(), target, from });
                }
            }
        }
    }
    None
}

/// Returns one action for each group of actions that statements or targets treat differently.
fn actions(policies: &[&Arc<CompiledPolicy>]) -> Vec<String> {
    let mut found = vec![ANY.to_owned()];
    for policy in policies {
        for scope in policy.each_scope() {
            match scope {
                ActionScope::Any => {}
                ActionScope::Eq(name) => found.push(name.clone()),
                ActionScope::In(names) => {
                    found.extend(names.iter().flat_map(|name| [name.clone(), below(name)]));
                }
            }
        }
        for target in &policy.reference.applies_to {
            match target {
                Target::Action(Pattern::Exact(name)) => found.push(name.clone()),
                Target::Action(Pattern::Below(prefix)) => found.push(below(prefix)),
                _ => {}
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    // The generic action comes first.
    found.sort_by_key(|action| action != ANY && !is_below(action, ANY));
    found.truncate(MOST_ACTIONS);
    found
}

fn below(prefix: &str) -> String {
    format!("{prefix}.{ANY}")
}

/// Returns the steps of the smallest request for the action, for each target other than an action.
///
/// The key `None` is for requests to which none of these targets applies.
fn steps(
    policies: &[&Arc<CompiledPolicy>],
    action: &str,
    at: DateTime<Utc>,
) -> BTreeMap<Option<Target>, u64> {
    let mut always: u64 = 0;
    let mut of_targets: BTreeMap<&Target, u64> = BTreeMap::new();
    for policy in policies.iter().filter(|policy| policy.reference.effective.holds(at)) {
        let own = policy.statements(action).map(|statement| statement.cost.least_steps());
        let own = own.fold(0, u64::saturating_add);
        let rows = &policy.reference.applies_to;
        let applies = |row: &Target| match row {
            Target::Everywhere => true,
            Target::Action(pattern) => pattern.covers(action),
            _ => false,
        };
        if rows.is_empty() || rows.iter().any(applies) {
            always = always.saturating_add(own);
            continue;
        }
        for row in rows.iter().filter(|row| !matches!(row, Target::Action(_))) {
            let all = of_targets.entry(row).or_default();
            *all = all.saturating_add(own);
        }
    }
    let each = of_targets.into_iter();
    let each = each.map(|(row, steps)| (Some(row.clone()), steps.saturating_add(always)));
    each.chain([(None, always)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PolicyReference, moment::Window};

    fn policy(
        id: &str,
        targets: &[&str],
        scope: &str,
        from: Option<DateTime<Utc>>,
    ) -> Arc<CompiledPolicy> {
        let patterns: Vec<_> = (0..8)
            .map(|number| format!("context.input.a like \"*{number}{}\"", "a".repeat(498)))
            .collect();
        let text = format!(
            "forbid(principal, {scope}, resource) when {{ context.input has a && ({}) }};",
            patterns.join(" || ")
        );
        let reference = PolicyReference {
            id: id.into(),
            version: 1,
            sha256: String::new(),
            applies_to: targets.iter().map(|target| target.parse().unwrap()).collect(),
            effective: Window { from, until: None },
        };
        CompiledPolicy::check(reference, &text).unwrap().into()
    }

    fn several(count: usize, targets: &[&str], scope: &str) -> Vec<Arc<CompiledPolicy>> {
        (0..count).map(|number| policy(&format!("p{number}"), targets, scope, None)).collect()
    }

    #[test]
    fn the_policy_that_leaves_no_decision_is_found_and_a_cheaper_one_is_not() {
        let at = DateTime::UNIX_EPOCH;
        let (three, four) = (several(3, &[], "action"), several(4, &[], "action"));
        assert_eq!(exceeded(&[], &three, at), None);
        let found = exceeded(&three, &four, at).unwrap().to_string();
        assert!(found.contains("whatever its action") && found.contains("16000000"), "{found}");
        let five = several(5, &[], "action");
        assert_eq!(exceeded(&five, &four, at), None, "it is cheaper than before");
        assert_eq!(exceeded(&four, &four, at), None, "the cost is unchanged");
        assert!(exceeded(&four, &five, at).is_some());
    }

    #[test]
    fn only_policies_that_apply_together_count_together() {
        let at = DateTime::UNIX_EPOCH;
        let each = |scopes: [&str; 4]| -> Vec<_> {
            let all = scopes.iter().enumerate();
            all.map(|(number, scope)| policy(&format!("p{number}"), &[], scope, None)).collect()
        };
        let apart =
            ["a.a", "a.b", "a.c", "a.d"].map(|name| format!("action == Svc::Action::\"{name}\""));
        assert_eq!(exceeded(&[], &each(apart.each_ref().map(String::as_str)), at), None);
        let group = "action in Svc::Action::\"a\"";
        let together = [group, group, group, "action == Svc::Action::\"a.b\""];
        let found = exceeded(&[], &each(together), at).unwrap();
        assert_eq!(found.action, "a.b");
        let targeted = several(4, &["action:b.*"], "action");
        assert_eq!(exceeded(&[], &targeted, at).unwrap().action, "b.any");
        let purposed = several(4, &["purpose:work"], "action");
        assert_eq!(exceeded(&[], &purposed, at).unwrap().target, "purpose:work".parse().ok());
        let purposes = ["purpose:a", "purpose:b", "purpose:c", "purpose:d"];
        let purposes: Vec<_> =
            purposes.iter().map(|target| policy(target, &[target], "action", None)).collect();
        assert_eq!(exceeded(&[], &purposes, at), None);
    }

    #[test]
    fn what_comes_into_force_later_counts_from_then() {
        let at = DateTime::UNIX_EPOCH;
        let later = at + chrono::TimeDelta::hours(1);
        let mut all = several(3, &[], "action");
        all.push(policy("p9", &[], "action", Some(later)));
        assert_eq!(exceeded(&[], &all, at).unwrap().from, Some(later));
    }
}
