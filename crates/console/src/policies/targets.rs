//! Targets with names that do not exist in the tenant and therefore cover no request. A policy with
//! a misspelt target looks harmless.

use crate::{
    known_names::{KnownNames, known_names},
    unknown_action::{nearest, unknown_action},
    view::View,
};

/// Returns a warning for each target with an action or purpose that no record of the tenant names.
pub(crate) async fn unknown_targets(
    view: &View,
    tenant_id: &str,
    targets: &[String],
) -> Vec<String> {
    let names = |target: &String| target.starts_with(ACTION) || target.starts_with(PURPOSE);
    if !targets.iter().any(names) {
        return Vec::new();
    }
    let Some(known) = known_names(view, tenant_id).await else { return Vec::new() };
    targets.iter().filter_map(|target| unknown(target, &known)).collect()
}

const ACTION: &str = "action:";
const PURPOSE: &str = "purpose:";

fn unknown(target: &str, known: &KnownNames) -> Option<String> {
    if let Some(action) = target.strip_prefix(ACTION) {
        return unknown_action(action, &known.actions);
    }
    let purpose = target.strip_prefix(PURPOSE).filter(|slug| !known.purposes.contains(*slug))?;
    let meant = nearest(purpose, &known.purposes);
    let meant = meant.map(|name| format!(" Did you mean `{name}`?")).unwrap_or_default();
    Some(format!("No purpose of the tenant is called `{purpose}`.{meant}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_that_covers_nothing_is_told() {
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        let known = KnownNames {
            actions: names(&["payment.execute"]),
            purposes: names(&["invoice-settlement"]),
        };
        for (target, expected) in [
            ("action:payment.*", None),
            ("purpose:invoice-settlement", None),
            ("risk_tier:hgih", None),
            (
                "action:paymnt.execute",
                Some(
                    "No tool, purpose or delegation of the tenant has `paymnt.execute`. Did you mean \
                     `payment.execute`?",
                ),
            ),
            (
                "purpose:invoice-setlement",
                Some(
                    "No purpose of the tenant is called `invoice-setlement`. Did you mean `invoice-settlement`?",
                ),
            ),
            ("purpose:travel", Some("No purpose of the tenant is called `travel`.")),
        ] {
            assert_eq!(unknown(target, &known).as_deref(), expected, "{target}");
        }
    }
}
