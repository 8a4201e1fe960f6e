//! Whether a record of the tenant names an action that is to be stopped. Stopping a misspelt action
//! has no effect.

use std::collections::BTreeSet;

use authority_decision::Pattern;

/// The greatest edit distance of a name that is taken for a misspelt one.
const SLIPS: usize = 2;

/// The warning that no record of a tenant has this action, with the likely action. `None` if a
/// record has it, or if a pattern permits it and no known action is similar. `names` are the
/// actions and patterns of the tenant's tools, purposes and delegations. The text does not escape
/// the action.
#[must_use]
pub fn unknown_action(action: &str, names: &BTreeSet<String>) -> Option<String> {
    let asked: Pattern = action.parse().ok()?;
    let patterns: Vec<Pattern> = names.iter().filter_map(|name| name.parse().ok()).collect();
    if names.contains(action) || patterns.iter().any(|known| known.is_within(&asked)) {
        return None;
    }
    let meant = nearest(action, names);
    let is_covered = patterns.iter().any(|known| asked.is_within(known));
    let said = match (is_covered, &meant) {
        // An action that only a pattern permits may be correct.
        (true, None) => return None,
        (true, Some(_)) => "names",
        (false, _) => "has",
    };
    let meant = meant.map(|name| format!(" Did you mean `{name}`?"));
    Some(format!(
        "No tool, purpose or delegation of the tenant {said} `{action}`.{}",
        meant.unwrap_or_default()
    ))
}

/// The same warning only for an action that is similar to a known one. Other actions may be new.
pub(crate) fn misspelt(action: &str, names: &BTreeSet<String>) -> Option<String> {
    nearest(action, names).and_then(|_| unknown_action(action, names))
}

/// The known action, or pattern of actions, that is most similar to this one. For a known pattern,
/// also the action below it with the same last part: `paymnt.execute` is similar to `payment.*`.
pub(crate) fn nearest(action: &str, names: &BTreeSet<String>) -> Option<String> {
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
    fn an_action_that_nobody_names_is_told_with_what_may_be_meant() {
        let names = ["payment.execute", "payment.*", "invoice.*", "report.read"];
        let names: BTreeSet<String> = names.map(str::to_owned).into();
        for (action, expected) in [
            ("payment.execute", None),
            ("payment.*", None),
            ("report.*", None),
            ("*", None),
            // A delegation's pattern permits it. The known actions are different.
            ("payment.refund", None),
            ("paymnt.execute", Some("has `paymnt.execute`. Did you mean `payment.execute`?")),
            ("payment.exectue", Some("names `payment.exectue`. Did you mean `payment.execute`?")),
            ("reprot.*", Some("has `reprot.*`. Did you mean `report.*`?")),
            ("invioce.send", Some("has `invioce.send`. Did you mean `invoice.send`?")),
            ("calendar.book", Some("has `calendar.book`.")),
        ] {
            let expected =
                expected.map(|text| format!("No tool, purpose or delegation of the tenant {text}"));
            assert_eq!(unknown_action(action, &names), expected, "{action}");
        }
    }
}
