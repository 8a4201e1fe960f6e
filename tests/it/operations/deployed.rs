//! The dashboard, the alert rules and the runbook use only metrics, labels and values that a server
//! exports.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

use agent_authority::routes::ROUTES;
use regex::Regex;
use serde_json::Value;

const DASHBOARD: &str = "deploy/grafana/agent-authority.json";
const ALERTS: &str = "deploy/prometheus/alerts.yaml";
const RUNBOOK: &str = "docs/operations/runbook.md";
/// The source with the classes of database errors, which are exported only after such an error.
const ERRORS: &str = include_str!("../../../crates/store/src/error.rs");
const DECISIONS: &str = include_str!("../../../crates/decision/src/levels.rs");
const REQUESTS: &str = "authority_request_seconds";
/// Labels that Prometheus adds to a series or that come from Grafana's variables.
const ADDED: [&str; 3] = ["instance", "job", "le"];
/// An alert of the runbook, with a metric and a label. The alert's text mentions the label's
/// values.
const ROWS: &[(&str, &str, &str)] = &[
    ("AuthorityDecisionsSlow", "authority_decision_stage_seconds", "stage"),
    ("AuthorityErrors", "authority_refusals_total", "reason"),
    ("AuthorityDatabaseErrors", "authority_database_errors_total", "class"),
    ("AuthorityWorkerLate", "authority_worker_late", "name"),
];

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

fn dashboard() -> Value {
    serde_json::from_str(&read(DASHBOARD)).unwrap()
}

fn rules() -> Vec<Value> {
    let alerts: Value = serde_yaml_ng::from_str(&read(ALERTS)).unwrap();
    alerts["groups"][0]["rules"].as_array().unwrap().clone()
}

/// Returns the metric's name without the suffix of a histogram's series.
fn bare(name: &str) -> &str {
    let ends = ["_bucket", "_count", "_sum"];
    ends.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name)
}

/// The values of each label of each metric.
type Labels = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

/// Returns the labels of a scrape, and further labels that are exported only after an event.
fn labels(scraped: &str) -> Labels {
    let series = Regex::new(r"(?m)^([a-z_]+)(?:\{(.*)\})? ").unwrap();
    let label = Regex::new(r#"([a-z_]+)="([^"]*)""#).unwrap();
    let mut found = Labels::new();
    for line in series.captures_iter(scraped) {
        let of = found.entry(bare(&line[1]).to_owned()).or_default();
        for pair in label.captures_iter(line.get(2).map_or("", |labels| labels.as_str())) {
            of.entry(pair[1].to_owned()).or_default().insert(pair[2].to_owned());
        }
    }
    let mut add = |family: &str, label: &str, values: Vec<String>| {
        let of = found.entry(family.to_owned()).or_default();
        of.entry(label.to_owned()).or_default().extend(values);
    };
    let word = Regex::new(r#"=> "([a-z_]+)","#).unwrap();
    let classes = word.captures_iter(ERRORS).map(|class| class[1].to_owned()).collect();
    add("authority_database_errors_total", "class", classes);
    add(REQUESTS, "status", ["500", "503"].map(str::to_owned).to_vec());
    add(REQUESTS, "operation", ROUTES.iter().map(|route| short(route.rpc)).collect());
    let permitted = Regex::new(r#"Allow\w* "([a-z_]+)","#).unwrap();
    let permitted = permitted.captures_iter(DECISIONS).map(|word| word[1].to_owned()).collect();
    add("authority_decisions_total", "decision", permitted);
    add("authority_worker_runs_total", "ok", vec!["false".to_owned()]);
    // The archive's worker runs only if `archive.url` is set.
    add("authority_worker_late", "name", vec!["archive".to_owned()]);
    found
}

/// Returns the short name of an RPC, as in `RuntimeService/Evaluate`.
fn short(rpc: &str) -> String {
    let (service, method) = rpc.trim_start_matches('/').split_once('/').unwrap();
    format!("{}/{method}", service.rsplit('.').next().unwrap())
}

/// Returns all expressions of both files, each with the name of its rule or panel.
fn expressions() -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let mut found: Vec<_> =
        rules().iter().map(|rule| (text(&rule["alert"]), text(&rule["expr"]))).collect();
    for panel in dashboard()["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().into_iter().flatten() {
            found.push((text(&panel["title"]), text(&target["expr"])));
        }
    }
    found
}

/// Checks that a server exports every label and value in the expressions.
#[track_caller]
pub(super) fn name_only_what_is_shown(scraped: &str) {
    let shown = labels(scraped);
    let selector = Regex::new(r"\b([a-z_]+)\{([^}]*)\}").unwrap();
    let matcher = Regex::new(r#"([a-z_]+)\s*(=~|!~|!=|=)\s*"([^"]*)""#).unwrap();
    let grouped = Regex::new(r"\bby \(([^)]*)\)").unwrap();
    let family = Regex::new(r"\b(authority|transport|process)_[a-z_]+[a-z]\b").unwrap();
    let mut checked = 0;
    for (place, text) in expressions() {
        for found in selector.captures_iter(&text).filter(|found| &found[1] != "up") {
            let of = shown.get(bare(&found[1])).unwrap_or_else(|| panic!("{place}: {text}"));
            for found in matcher.captures_iter(&found[2]) {
                let (label, value) = (&found[1], &found[3]);
                if ADDED.contains(&label) {
                    continue;
                }
                let values = of.get(label).unwrap_or_else(|| panic!("{place}: no label {label}"));
                let is_pattern = found[2].ends_with('~');
                let pattern = if is_pattern { value.to_owned() } else { regex::escape(value) };
                for branch in branches(&pattern) {
                    let whole = Regex::new(&format!("^(?:{branch})$")).unwrap();
                    let is_shown = values.iter().any(|value| whole.is_match(value));
                    assert!(is_shown, "{place}: {label} is never {branch}: {values:?}");
                    checked += 1;
                }
            }
        }
        let families: Vec<_> =
            family.find_iter(&text).filter_map(|name| shown.get(bare(name.as_str()))).collect();
        for list in grouped.captures_iter(&text) {
            for label in list[1].split(',').map(str::trim) {
                let is_one = families.iter().any(|of| of.contains_key(label));
                assert!(ADDED.contains(&label) || is_one, "{place}: no label {label}");
            }
        }
    }
    assert!(checked > 10, "{checked}");
    the_runbook_names_only(&shown);
}

/// Returns the values that a pattern matches, each in full. One pair of parentheses is expanded.
fn branches(pattern: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut depth = 0;
    for letter in pattern.chars() {
        match letter {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if letter == '|' && depth == 0 {
            parts.push(String::new());
        } else {
            parts.last_mut().unwrap().push(letter);
        }
    }
    let multiplied = parts.iter().flat_map(|part| match part.split_once('(') {
        Some((before, rest)) => {
            let (inner, after) = rest.split_once(')').unwrap();
            inner.split('|').map(|each| format!("{before}{each}{after}")).collect()
        }
        None => vec![part.clone()],
    });
    multiplied.collect()
}

/// Returns the words in single backticks that could be values of a label.
fn words(text: &str) -> Vec<String> {
    let word = Regex::new(r"(?:^|[^`])`([a-z_]+)`").unwrap();
    let words = word.captures_iter(text).map(|found| found[1].to_owned());
    words.filter(|word| !word.starts_with("authority_")).collect()
}

/// Returns the runbook's section about an alert.
#[track_caller]
fn section<'r>(runbook: &'r str, alert: &str) -> &'r str {
    let found = runbook.split_once(&format!("\n### {alert}\n"));
    let (_, rest) = found.unwrap_or_else(|| panic!("{RUNBOOK} lacks {alert}"));
    rest.split("\n## ").next().unwrap().split("\n### ").next().unwrap()
}

#[track_caller]
fn the_runbook_names_only(shown: &Labels) {
    let runbook = read(RUNBOOK);
    for (alert, family, label) in ROWS {
        let named = words(section(&runbook, alert));
        assert!(!named.is_empty(), "{alert}");
        for word in named {
            assert!(shown[*family][*label].contains(&word), "{alert}: {label} is never {word}");
        }
    }
    let sign_in = runbook.split("## Failed sign-ins").nth(1).unwrap();
    let sign_in = sign_in.split("\n## ").next().unwrap();
    let reasons = &shown["authority_credentials_refused_total"]["reason"];
    let named = words(sign_in);
    assert!(named.len() > 2, "{named:?}");
    for word in named {
        assert!(reasons.contains(&word), "no credential is refused for `{word}`: {reasons:?}");
    }
}

#[test]
fn a_pattern_has_each_of_its_alternatives() {
    assert_eq!(branches("a/(B|C)|d"), ["a/B", "a/C", "d"]);
    assert_eq!(branches("5.."), ["5.."]);
}

/// If the rule omitted an operation, that operation could be slow without an alert.
#[test]
fn the_alert_for_slow_decisions_covers_each_operation_that_decides() {
    let slow = rules().into_iter().find(|rule| rule["alert"] == "AuthorityDecisionsSlow").unwrap();
    let operation = Regex::new(r#"operation=~?"([^"]*)""#).unwrap();
    let named: BTreeSet<_> = operation
        .captures_iter(slow["expr"].as_str().unwrap())
        .flat_map(|found| branches(&found[1]))
        .collect();
    let deciding = [
        "DecisionService/EvaluateDecision",
        "RuntimeService/Authorize",
        "RuntimeService/BatchEvaluate",
        "RuntimeService/Evaluate",
    ];
    assert_eq!(named, deciding.map(str::to_owned).into());
}

/// Checks that the files have the fields that Grafana and Prometheus require.
#[test]
fn the_files_have_the_shape_that_their_programs_read() {
    let dashboard = dashboard();
    let panels = dashboard["panels"].as_array().unwrap();
    let ids: BTreeSet<_> = panels.iter().map(|panel| panel["id"].as_u64().unwrap()).collect();
    assert_eq!(ids.len(), panels.len(), "two panels have one id");
    for panel in panels.iter().filter(|panel| panel["type"] != "row") {
        assert!(!panel["targets"].as_array().unwrap().is_empty(), "{panel}");
    }
    assert!(read(DASHBOARD).contains("authority_ready{"), "the dashboard lacks readiness");
    for rule in rules() {
        for member in ["alert", "expr"] {
            assert!(rule[member].is_string(), "{rule}");
        }
        assert!(rule["labels"]["severity"].is_string(), "{rule}");
        for text in ["summary", "description"] {
            assert!(rule["annotations"][text].is_string(), "{rule}");
        }
    }
}

/// The headings of Markdown are addresses in lower case.
#[test]
fn each_alert_leads_to_its_section_of_the_runbook_and_none_is_without_an_alert() {
    let runbook = read(RUNBOOK);
    let mut alerts = BTreeSet::new();
    for rule in rules() {
        let alert = rule["alert"].as_str().unwrap();
        let address = format!("{RUNBOOK}#{}", alert.to_lowercase());
        assert_eq!(rule["annotations"]["runbook_url"], *address, "{alert}");
        let text = section(&runbook, alert);
        assert!(text.contains("- Look at: ") && text.contains("- Do: "), "{alert}: {text}");
        alerts.insert(alert.to_owned());
    }
    let headings = runbook.lines().filter_map(|line| line.strip_prefix("### "));
    assert_eq!(headings.map(str::to_owned).collect::<BTreeSet<_>>(), alerts);
}
