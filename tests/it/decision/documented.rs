//! Checks the documentation: docs/reference/decision.md lists every reason code and the actual
//! gate, the policy in docs/guides/policies.md is valid, and leaving out a field does not avoid any
//! published forbid.

use std::{fs, path::Path};

use authority_decision::{
    Reason,
    gate::{Undoing, table},
    levels::{EffectClass, Oversight, RiskTier},
    statement::Effect,
    validation::{Known, Surroundings, validate},
};

use super::templates;

fn page(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(name)).unwrap()
}

#[test]
fn every_reason_is_on_the_page() {
    let page = page("reference/decision.md");
    let missing: Vec<_> = Reason::ALL
        .iter()
        .map(Reason::word)
        .filter(|word| !page.contains(&format!("`{word}`")))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// Returns the oversight that a table cell of the page requires for this effect class.
///
/// An example of a cell: `none; from financial: single_approver`.
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
    let page = page("reference/decision.md");
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
    let (page, reference) = (page("guides/policies.md"), page("reference/policies.md"));
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
        assert!(reference.contains(&format!("| `@{annotation}(")), "{annotation}");
    }
}

/// Returns the forbid statements of a text, even if they are quoted in JSON, in a comment or for a
/// shell. The text of a policy itself is not quoted.
fn forbids(text: &str, is_policy: bool) -> Vec<String> {
    let unquoted = || text.replace("\\n", "\n").replace("\\\"", "\"");
    let plain = if is_policy { text.to_owned() } else { unquoted() };
    let begins = plain.match_indices("forbid").map(|(place, _)| place);
    let texts = begins.filter_map(|place| {
        let rest = plain.get(place..)?;
        let scope = rest.trim_start_matches("forbid").trim_start().strip_prefix('(')?;
        let scope = scope.trim_start().starts_with("principal");
        // A pattern may contain a semicolon.
        let (end, _) = rest.match_indices(';').find(|(end, _)| {
            rest.get(..*end).is_some_and(|before| before.trim_end().ends_with(['}', ')']))
        })?;
        scope.then(|| rest.get(..=end).unwrap_or_default().to_owned())
    });
    texts.collect()
}

fn files(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}

/// Its comment describes the calls that escape: calls without the name of a file.
const OF_NAMED_FILES: &str = "crates/console/src/policies/starts/code_secrets.cedar";

#[test]
fn nobody_escapes_a_policy_that_we_show() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut shown = vec![root.join("README.md"), root.join("src/app/demo.json")];
    for folder in ["docs", "proto", "examples", "crates/console/src"] {
        files(&root.join(folder), &mut shown);
    }
    let mut found = 0;
    for path in shown {
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let of_files = path.ends_with(OF_NAMED_FILES);
        let is_policy = path.extension().is_some_and(|extension| extension == "cedar");
        for forbid in forbids(&text, is_policy) {
            if of_files && !forbid.contains("arguments has command") {
                continue;
            }
            let faults = validate(&forbid, &Surroundings::default(), &Known::default());
            let escapes = faults.iter().any(|one| one.problem.contains("escapes this forbid"));
            assert!(!escapes, "{}: {forbid}", path.display());
            found += usize::from(forbid.contains("unless"));
        }
    }
    assert!(found >= 5, "{found}");
}
