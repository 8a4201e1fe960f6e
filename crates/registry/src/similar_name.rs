//! Names that a tenant does not know, and the similar names that it knows.

use std::collections::BTreeSet;

use authority_decision::Pattern;

/// The greatest edit distance of a name that is taken for a misspelt one.
const SLIPS: usize = 2;

/// An action that no record names.
pub(super) struct UnknownAction {
    pub(super) did_you_mean: Option<String>,
    /// Whether a pattern of the tenant covers it.
    pub(super) is_covered: bool,
}

impl UnknownAction {
    /// Compares an action or pattern with the actions and patterns of a tenant. `None` if the tenant
    /// knows it, if a pattern covers it and no known action is similar, or if it is not a pattern.
    pub(super) fn of(action: &str, names: &BTreeSet<String>) -> Option<Self> {
        let asked: Pattern = action.parse().ok()?;
        let patterns: Vec<Pattern> = names.iter().filter_map(|name| name.parse().ok()).collect();
        if names.contains(action) || patterns.iter().any(|known| known.is_within(&asked)) {
            return None;
        }
        let did_you_mean = nearest(action, names);
        let is_covered = patterns.iter().any(|known| asked.is_within(known));
        // An action that only a pattern permits may be correct.
        (did_you_mean.is_some() || !is_covered).then_some(Self { did_you_mean, is_covered })
    }
}

/// The known action, or pattern of actions, that is most similar to this one. For a known pattern,
/// also the action below it with the same last part: `paymnt.execute` is similar to `payment.*`.
pub(super) fn nearest(action: &str, names: &BTreeSet<String>) -> Option<String> {
    let above = names.iter().flat_map(|name| {
        let ends = name.match_indices('.').map(|(place, _)| place);
        ends.map(|end| format!("{}.*", name.get(..end).unwrap_or_default()))
    });
    let mut all: BTreeSet<String> = names.iter().cloned().chain(above).collect();
    let below: Vec<_> = all.iter().filter_map(|pattern| below(pattern, action)).collect();
    all.extend(below);
    let is_alike = |name: &&String| *name != action && name.contains('*') == action.contains('*');
    let near = all.iter().filter(is_alike);
    let (slips, near) = near.map(|name| (strsim::osa_distance(name, action), name)).min()?;
    let most = SLIPS.min(action.chars().count().saturating_sub(1) / 2);
    (slips <= most).then(|| near.clone())
}

/// The action below a pattern with the last parts of another action.
fn below(pattern: &str, action: &str) -> Option<String> {
    let prefix = pattern.strip_suffix(".*")?;
    let depth = prefix.split('.').count();
    let rest = action.splitn(depth + 1, '.').nth(depth)?;
    Some(format!("{prefix}.{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_action_comes_with_a_similar_one() {
        let names = ["payment.execute", "payment.*", "invoice.*", "report.read"];
        let names: BTreeSet<String> = names.map(str::to_owned).into();
        for (action, expected) in [
            ("payment.execute", None),
            ("payment.*", None),
            ("report.*", None),
            ("*", None),
            // A delegation's pattern permits it. The known actions are different.
            ("payment.refund", None),
            ("paymnt.execute", Some((Some("payment.execute"), false))),
            ("payment.exectue", Some((Some("payment.execute"), true))),
            ("reprot.*", Some((Some("report.*"), false))),
            ("invioce.send", Some((Some("invoice.send"), false))),
            ("calendar.book", Some((None, false))),
        ] {
            let found = UnknownAction::of(action, &names);
            let found = found.as_ref().map(|one| (one.did_you_mean.as_deref(), one.is_covered));
            assert_eq!(found, expected, "{action}");
        }
    }
}
