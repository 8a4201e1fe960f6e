//! Prometheus's own check of the alert rules: `promtool` reads them and applies them to test
//! series.

use std::{fs, path::Path, process::Command};

use crate::support::shown::not_shown;

const RULES: &str = "deploy/prometheus/alerts.yaml";

/// Runs `promtool` and returns its output, or `None` if it is not installed.
fn promtool(arguments: &[&str], file: &Path) -> Option<(bool, String)> {
    let run = Command::new("promtool").args(arguments).arg(file).output();
    let Ok(output) = run else {
        not_shown("this machine has no promtool; script/features installs it");
        return None;
    };
    let told = [output.stdout, output.stderr].concat();
    Some((output.status.success(), String::from_utf8_lossy(&told).into_owned()))
}

fn in_repository(path: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

#[test]
fn promtool_reads_the_rules_and_the_configuration() {
    for (arguments, file) in [
        (&["check", "rules", "--lint=all", "--lint-fatal"][..], RULES),
        // The configuration names the rules file in the same folder, which is checked as well.
        (&["check", "config"], "deploy/prometheus/prometheus.yml"),
    ] {
        let Some((is_fine, told)) = promtool(arguments, &in_repository(file)) else { return };
        assert!(is_fine, "{file}: {told}");
    }
}

/// `alerts.test.yaml` has series of metrics, and the alerts that they must raise at given times.
#[test]
fn the_alerts_fire_when_they_are_to() {
    let tests = in_repository("tests/it/operations/alerts.test.yaml");
    let Some((is_fine, told)) = promtool(&["test", "rules"], &tests) else { return };
    assert!(is_fine, "{told}");
    // Each rule must have a test.
    let (rules, tests) =
        (fs::read_to_string(in_repository(RULES)).unwrap(), fs::read_to_string(tests).unwrap());
    for rule in rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")) {
        let tried = format!("alertname: {rule}\n");
        let fires = tests.split(&tried).skip(1).any(|rest| {
            let case = rest.split("alertname: ").next().unwrap();
            case.contains("exp_labels")
        });
        assert!(fires, "no test of `{rule}` shows it fire");
    }
}
