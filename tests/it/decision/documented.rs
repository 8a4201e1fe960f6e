//! docs/decision.md has every code that a decision can have, and the actual gate; the policy of
//! docs/policies.md is valid.

use std::{fs, path::Path};

use authority_decision::{
    Reason,
    gate::{Undoing, table},
    levels::{EffectClass, Oversight, RiskTier},
    statement::Effect,
};

use super::templates;

fn page(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(name)).unwrap()
}

#[test]
fn every_reason_is_on_the_page() {
    let page = page("decision.md");
    let missing: Vec<_> = Reason::ALL
        .iter()
        .map(Reason::word)
        .filter(|word| !page.contains(&format!("`{word}`")))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// The oversight of a cell from this effect up: `none; from financial: single_approver`.
fn asked(cell: &str, class: EffectClass) -> Oversight {
    let mut asked = Oversight::None;
    for part in cell.split(';').map(str::trim) {
        let (from, word) = match part.strip_prefix("from ") {
            Some(rest) => rest.split_once(": ").unwrap(),
            None => ("informational", part),
        };
        if EffectClass::from_word(from).unwrap() <= class {
            asked = Oversight::from_word(word).unwrap();
        }
    }
    asked
}

#[test]
fn the_gate_is_as_the_page_has_it() {
    let page = page("decision.md");
    for tier in RiskTier::ALL {
        let start = format!("| `{tier}` |");
        let row = page.lines().find_map(|line| line.strip_prefix(&start)).unwrap();
        let cells: Vec<_> = row.trim_end_matches('|').split('|').map(str::trim).collect();
        let columns = [Undoing::Undone, Undoing::Compensated, Undoing::Final];
        assert_eq!(cells.len(), columns.len(), "{row}");
        for (cell, undoing) in cells.iter().zip(columns) {
            for class in EffectClass::ALL {
                let found = table(*tier, undoing, *class);
                assert_eq!(asked(cell, *class), found, "{tier} {undoing:?} {class}: {cell}");
            }
        }
    }
}

#[test]
fn the_policy_on_the_page_holds_for_two() {
    let page = page("policies.md");
    let (_, rest) = page.split_once("```cedar\n").unwrap();
    let policy = templates::compile(rest.split_once("```").unwrap().0).unwrap();
    let statements: Vec<_> = policy.statements("payment.execute").collect();
    let [statement] = statements[..] else { panic!("{} statements", statements.len()) };
    assert_eq!(statement.effect, Effect::Hold(Reason::ApprovalThresholdBreach, 2));
    assert_eq!(statement.id, "large-payments");
    assert!(statement.advice.is_some());
    for annotation in
        ["id", "reason", "decision", "approvals", "obligation", "stop_condition", "advice"]
    {
        assert!(page.contains(&format!("| `@{annotation}(")), "{annotation}");
    }
}
