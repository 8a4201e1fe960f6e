//! The metrics of a running server. The dashboard and alert rules use no others.

use std::{collections::BTreeSet, fs, path::Path, time::Duration};

use agent_authority::telemetry::Recorder;
use authority_model::proto::runtime::runtime_service_client::RuntimeServiceClient;
use authority_process::clock::Clock;
use authority_store::Address;
use chrono::TimeDelta;
use diesel_async::SimpleAsyncConnection;
use regex::Regex;
use serde_json::json;
use tonic::{Code, Request};

use super::deployed;
use crate::{
    faults::process::{Folder, Service, allowed},
    support::{Client, TestApp, Wishes, asking, evaluate, only},
};

/// Returns the names of a scrape's metrics. Each must have a help text and a type.
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

/// Returns the metrics that a file mentions, without the suffixes of a histogram's series.
fn named_in(path: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
    let names = Regex::new(r"\b(authority|transport|process)_[a-z_]+[a-z]\b").unwrap();
    let bare = |name: &str| {
        let ends = ["_bucket", "_count", "_sum"];
        ends.iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name).to_owned()
    };
    names.find_iter(&text).map(|found| bare(found.as_str())).collect()
}

/// Returns the value of a series, by its exported name and labels.
fn value(scraped: &str, series: &str) -> Option<f64> {
    let line = scraped.lines().find_map(|line| line.strip_prefix(series));
    line.and_then(|rest| rest.trim().parse().ok())
}

/// Makes one call without a valid credential, and then a permitted one.
async fn ask_over_grpc(client: &Client) {
    let mut grpc = RuntimeServiceClient::connect(client.base.clone()).await.unwrap();
    let mut request = Request::new(evaluate(&allowed()["context"]));
    let forged = grpc.evaluate(Request::new(request.get_ref().clone())).await.unwrap_err();
    assert_eq!(forged.code(), Code::Unauthenticated);
    let bearer = format!("Bearer {}", client.token).parse().unwrap();
    request.metadata_mut().insert("authorization", bearer);
    grpc.evaluate(request).await.unwrap();
}

/// Metrics that require a query are updated only every 15 seconds.
async fn metrics_with_one_approval(service: &Service) -> String {
    let mut scraped = service.metrics().await;
    for _ in 0..40 {
        if value(&scraped, "authority_approvals_pending ") == Some(1.0) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
        scraped = service.metrics().await;
    }
    scraped
}

/// The hook of a coding agent answers 200. The metrics have the error.
async fn is_denied_by_a_hook(client: &Client, why: &str) {
    let body = json!({"hook_event_name": "PreToolUse", "tool_name": "Read", "tool_input": {}});
    let (status, answer) = client.post("/v1/hooks/claude-code?purpose=x", body).await;
    assert!(status == 200 && answer.to_string().contains(why), "{answer}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_shows_all_that_the_dashboard_and_the_alerts_name() {
    let folder = Folder::new("metrics");
    let mut service = Service::start(&folder);
    let (status, _) = service.client.evaluate(allowed()).await;
    assert_eq!(status, 200);
    let (status, held) = service.client.evaluate(asking(25_000.0, "DE")).await;
    assert_eq!((status, &held["decision"]), (200, &"require_approval".into()), "{held}");
    let forger = Client::new(&service.client.base, "svc_forged");
    assert_eq!(forger.evaluate(allowed()).await.0, 401);
    ask_over_grpc(&service.client).await;
    is_denied_by_a_hook(&forger, "Not permitted. ").await;
    is_denied_by_a_hook(&service.client, "bound to exactly one").await;

    let scraped = metrics_with_one_approval(&service).await;
    service.stop();
    let shown = |series: &str, expected: f64| {
        assert_eq!(value(&scraped, series), Some(expected), "{series}\n{scraped}");
    };
    shown("authority_approvals_pending ", 1.0);
    shown("authority_seal_lag_decisions ", 0.0);
    shown("authority_credentials_refused_total{reason=\"malformed_key\"} ", 2.0);
    shown("authority_credentials_refused_total{reason=\"scope\"} ", 0.0);
    shown("authority_credentials_refused_total{reason=\"missing\"} ", 1.0);
    shown("authority_refusals_total{reason=\"unauthenticated\"} ", 3.0);
    shown("authority_refusals_total{reason=\"subject_not_permitted\"} ", 1.0);
    shown("authority_recorder_ready ", 1.0);
    shown("authority_decisions_waiting ", 0.0);
    shown("authority_decisions_working ", 0.0);
    shown("authority_decisions_oldest_waiting_seconds ", 0.0);
    shown("authority_decisions_refused_total{reason=\"queue_full\"} ", 0.0);
    shown("authority_recorder_batch_age_seconds ", 0.0);
    shown("authority_recorder_batch_size_bucket{le=\"1\"} ", 3.0);
    for stage in ["wait", "gather", "load", "decide", "sign", "record"] {
        shown(&format!("authority_decision_stage_seconds_count{{stage=\"{stage}\"}} "), 3.0);
    }
    shown(
        "authority_decisions_total{decision=\"allow_with_constraints\",reason=\"permission_granted\"} ",
        2.0,
    );
    shown("authority_worker_late{name=\"recorder_writer\"} ", 0.0);
    shown("authority_database_connections_max{pool=\"recorder\"} ", 2.0);
    let call = "operation=\"RuntimeService/Evaluate\",transport=\"rest\"";
    shown(&format!("authority_request_seconds_count{{{call},status=\"200\"}} "), 2.0);
    shown(&format!("authority_request_seconds_count{{{call},status=\"401\"}} "), 1.0);
    let call = "operation=\"RuntimeService/Evaluate\",transport=\"grpc\"";
    shown(&format!("authority_request_seconds_count{{{call},status=\"200\"}} "), 1.0);
    shown(&format!("authority_request_seconds_count{{{call},status=\"401\"}} "), 1.0);
    let call = "operation=\"HookService/DecideHook\",transport=\"rest\"";
    shown(&format!("authority_request_seconds_count{{{call},status=\"401\"}} "), 1.0);
    shown(&format!("authority_request_seconds_count{{{call},status=\"403\"}} "), 1.0);
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
    deployed::name_only_what_is_shown(&scraped);
}

/// Sealing and counting wait for locks. Their lag grows, a worker's runs fail, and the database's
/// errors are counted by class.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_does_not_go_on_is_shown() {
    let folder = Folder::new("lag");
    let limit = "AGENT_AUTHORITY__DATABASE__STATEMENT_SECONDS";
    let mut service = Service::with(limit, "1", &folder);
    let database = folder.embedded().await;
    let mut holding = Address::parse(&database.owner_url()).unwrap().connect().await.unwrap();
    let hold = "BEGIN; LOCK TABLE log_heads IN EXCLUSIVE MODE; LOCK TABLE usage_days";
    holding.batch_execute(hold).await.unwrap();
    let sealing = only("auto_seal", true);
    let (status, answer) = service.owner(&folder).update_tenant("acme", sealing).await;
    assert_eq!(status, 200, "{answer}");
    for _ in 0..3 {
        let (status, _) = service.client.evaluate(allowed()).await;
        assert_eq!(status, 200);
    }
    let is_shown = async |service: &Service, wanted: &[(&str, &dyn Fn(f64) -> bool)]| {
        let mut scraped = String::new();
        for _ in 0..80 {
            scraped = service.metrics().await;
            let here = |(series, is_it): &(&str, &dyn Fn(f64) -> bool)| {
                value(&scraped, series).is_some_and(is_it)
            };
            if wanted.iter().all(here) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        panic!("{scraped}");
    };
    let some = |value: f64| value >= 1.0;
    let failed = "authority_worker_runs_total{name=\"usage\",ok=\"false\"} ";
    is_shown(
        &service,
        &[
            ("authority_seal_lag_decisions ", &|value| (value - 3.0).abs() < 0.1),
            ("authority_seal_lag_seconds ", &some),
            (failed, &some),
            ("authority_database_errors_total{class=\"timeout\"} ", &some),
        ],
    )
    .await;
    holding.batch_execute("COMMIT").await.unwrap();
    let counted = "authority_worker_runs_total{name=\"usage\",ok=\"true\"} ";
    is_shown(
        &service,
        &[
            ("authority_seal_lag_decisions ", &|value| value == 0.0),
            ("authority_seal_lag_seconds ", &|value| value == 0.0),
            (counted, &some),
        ],
    )
    .await;
    service.stop();
}

/// The test runs on one thread, with its own metrics recorder.
#[tokio::test]
async fn how_far_the_clock_is_ahead_is_shown() {
    let recorder = Recorder::default();

    let _own = ::metrics::set_default_local_recorder(&recorder);
    let clock = Clock::wrong(TimeDelta::milliseconds(700));
    let _node = TestApp::wished(Wishes { clock, ..Wishes::default() }).await;
    let mut ahead = None;
    for _ in 0..100 {
        ahead = value(&recorder.render(), "authority_clock_ahead_seconds ");
        if ahead.is_some() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert!(ahead.is_some_and(|ahead| (0.6..0.8).contains(&ahead)), "{ahead:?}");
}
