//! The metrics of a running server, and that the dashboard and the alert rules name only such.

use std::{collections::BTreeSet, fs, path::Path, time::Duration};

use regex::Regex;

use crate::{
    faults::process::{Folder, Service, allowed},
    support::{Client, asking},
};

/// The families of a scrape; each must have its help and its type.
#[track_caller]
fn families(scraped: &str) -> BTreeSet<String> {
    let named = |mark: &str| -> BTreeSet<String> {
        let lines = scraped.lines().filter_map(|line| line.strip_prefix(mark));
        lines.map(|rest| rest.split(' ').next().unwrap().to_owned()).collect()
    };
    let (helped, typed) = (named("# HELP "), named("# TYPE "));
    assert_eq!(helped, typed, "a family lacks its help or its type");
    typed
}

/// The metrics that a file names, without the endings of a histogram's series.
fn named_in(path: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
    let names = Regex::new(r"\b(authority|transport|process)_[a-z_]+[a-z]\b").unwrap();
    let bare = |name: &str| {
        let ends = ["_bucket", "_count", "_sum"];
        ends.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name).to_owned()
    };
    names.find_iter(&text).map(|found| bare(found.as_str())).collect()
}

/// The value of a series, by its name and labels as they are served.
fn value(scraped: &str, series: &str) -> Option<f64> {
    let line = scraped.lines().find_map(|line| line.strip_prefix(series));
    line.and_then(|rest| rest.trim().parse().ok())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_shows_all_that_the_dashboard_and_the_alerts_name() {
    let folder = Folder::new("metrics");
    let mut service = Service::start(&folder);
    let (status, _) = service.client.post("/api/v1/runtime/evaluate", allowed()).await;
    assert_eq!(status, 200);
    let (status, held) =
        service.client.post("/api/v1/runtime/evaluate", asking(25_000.0, "DE")).await;
    assert_eq!((status, &held["decision"]), (200, &"require_approval".into()), "{held}");
    let forger = Client::new(&service.client.base, "svc_forged");
    assert_eq!(forger.post("/api/v1/runtime/evaluate", allowed()).await.0, 401);

    // Those that the database is asked for are measured every 15 seconds.
    let mut scraped = service.metrics().await;
    for _ in 0..40 {
        if value(&scraped, "authority_approvals_pending ") == Some(1.0) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
        scraped = service.metrics().await;
    }
    service.stop();
    let shown = |series: &str, expected: f64| {
        assert_eq!(value(&scraped, series), Some(expected), "{series}\n{scraped}");
    };
    shown("authority_approvals_pending ", 1.0);
    shown("authority_seal_lag_decisions ", 0.0);
    shown("authority_credentials_refused_total{reason=\"malformed_key\"} ", 1.0);
    shown("authority_credentials_refused_total{reason=\"scope\"} ", 0.0);
    shown("authority_refusals_total{reason=\"unauthenticated\"} ", 1.0);
    shown("authority_recorder_ready ", 1.0);
    shown("authority_decisions_waiting ", 0.0);
    shown("authority_decisions_working ", 0.0);
    shown("authority_decisions_refused_total{reason=\"queue_full\"} ", 0.0);
    shown("authority_recorder_batch_age_seconds ", 0.0);
    shown("authority_recorder_batch_size_bucket{le=\"1\"} ", 2.0);
    shown("authority_decision_stage_seconds_count{stage=\"record\"} ", 2.0);
    shown("authority_worker_late{name=\"recorder_writer\"} ", 0.0);
    shown("authority_database_connections_max{pool=\"recorder\"} ", 2.0);
    let call = "operation=\"RuntimeService/Evaluate\",transport=\"rest\"";
    shown(&format!("authority_request_seconds_count{{{call},status=\"200\"}} "), 2.0);
    shown(&format!("authority_request_seconds_count{{{call},status=\"401\"}} "), 1.0);
    assert!(value(&scraped, "process_resident_memory_bytes ").is_some_and(|bytes| bytes > 1e6));
    assert!(value(&scraped, "process_start_time_seconds ").is_some_and(|start| start > 1.6e9));
    assert!(scraped.contains(concat!(
        "authority_build_info{version=\"",
        env!("CARGO_PKG_VERSION"),
        "\"} 1"
    )));
    assert!(!scraped.contains("acme"), "a label names a tenant");
    assert!(!scraped.contains("ok=\"false\""), "a worker failed");

    let families = families(&scraped);
    for file in ["deploy/grafana/agent-authority.json", "deploy/prometheus/alerts.yaml"] {
        let named = named_in(file);
        assert!(named.len() > 10, "{file} names {named:?}");
        let unknown: Vec<_> = named.difference(&families).collect();
        assert!(unknown.is_empty(), "{file} names {unknown:?}");
    }
}

/// What Grafana and Prometheus need of the files to load them.
#[test]
fn the_files_have_the_shape_that_their_programs_read() {
    let read =
        |path: &str| fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
    let dashboard: serde_json::Value =
        serde_json::from_str(&read("deploy/grafana/agent-authority.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let ids: BTreeSet<_> = panels.iter().map(|panel| panel["id"].as_u64().unwrap()).collect();
    assert_eq!(ids.len(), panels.len(), "two panels have one id");
    for panel in panels.iter().filter(|panel| panel["type"] != "row") {
        assert!(!panel["targets"].as_array().unwrap().is_empty(), "{panel}");
    }
    let runbook = read("docs/runbook.md");
    let alerts: serde_json::Value =
        serde_yaml_ng::from_str(&read("deploy/prometheus/alerts.yaml")).unwrap();
    for rule in alerts["groups"][0]["rules"].as_array().unwrap() {
        for member in ["alert", "expr"] {
            assert!(rule[member].is_string(), "{rule}");
        }
        assert!(rule["labels"]["severity"].is_string(), "{rule}");
        let named = format!("| `{}` |", rule["alert"].as_str().unwrap());
        assert!(runbook.contains(&named), "docs/runbook.md lacks {named}");
        for text in ["summary", "description"] {
            assert!(rule["annotations"][text].is_string(), "{rule}");
        }
    }
}
