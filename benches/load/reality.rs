//! Measures the cost of observations for decisions: a thousand tenants, each with an anchor that
//! gets a snapshot every second.

use std::time::{Duration, Instant};

use authority_process::clock::Clock;
use chrono::{SecondsFormat, TimeDelta};
use hdrhistogram::Histogram;
use serde_json::json;
use tokio::time::{MissedTickBehavior, interval, sleep};

use crate::{
    Fault,
    arguments::Arguments,
    http1::Connection,
    meter::to_float,
    owner::Owner,
    product::{self, Started},
    row::Report,
    server::Folder,
};

const TENANTS: usize = 1000;
/// The maximum number of snapshots in one call.
const BATCH: usize = 100;
/// The number of times that an agent is stopped while snapshots arrive.
const STOPS: usize = 20;

pub(crate) async fn rows(
    arguments: &Arguments,
    folder: &Folder,
    report: &mut Report,
) -> Result<(), Fault> {
    let Started { server, address, key } = product::start("reality", "strict", folder).await?;
    let meter = server.meter();
    let owner = Owner::new(address, folder, "reality")?;
    let anchors = anchors(&owner).await?;
    let call = product::evaluate(address, Some(&key));
    report.measure("Evaluate, gRPC, no snapshots", call, &meter, arguments).await;
    let feeding = tokio::spawn(feed(owner.clone(), anchors));
    let call = product::evaluate(address, Some(&key));
    report.measure("Evaluate, gRPC, 1,000 snapshots a second", call, &meter, arguments).await;
    let stopped = stops(&owner, &key).await?;
    if feeding.is_finished() {
        feeding.await??;
        return Err("feeding ended".into());
    }
    feeding.abort();
    let millis = |quantile| to_float(stopped.value_at_quantile(quantile)) / 1000.0;
    report.notes.push(format!(
        "with 1,000 snapshots a second: {:.1} ms from the request of a stop to the first decision under it (p50), \
         {:.1} ms (worst of {STOPS})",
        millis(0.5),
        millis(1.0),
    ));
    Ok(())
}

/// Sends a snapshot for each anchor every second, until aborted.
async fn feed(owner: Owner, anchors: Vec<Anchor>) -> Result<(), Fault> {
    let batches = anchors.chunks(BATCH);
    let mut ticks = interval(Duration::from_secs(1) / u32::try_from(batches.len())?);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    for number in 0_u64.. {
        for batch in batches.clone() {
            ticks.tick().await;
            let at = (Clock::default().now() - TimeDelta::milliseconds(1))
                .to_rfc3339_opts(SecondsFormat::Micros, true);
            let snapshots: Vec<_> = batch
                .iter()
                .map(|Anchor { tenant, id }| {
                    json!({"tenant_id": tenant, "anchor_id": id, "sampled_at": at,
                           "content_hash": format!("sha256:{number:064x}")})
                })
                .collect();
            let body = json!({ "reality_snapshots": snapshots });
            let answer = owner.post("/v1/reality-snapshots:batch", &body).await?;
            let results = answer["results"].as_array().into_iter().flatten();
            if results.filter(|result| result["reality_snapshot"]["id"].is_string()).count()
                != BATCH
            {
                return Err(format!("a batch was not stored: {answer}").into());
            }
        }
    }
    Ok(())
}

struct Anchor {
    tenant: String,
    id: String,
}

/// Creates the anchors, each in a separate tenant.
async fn anchors(owner: &Owner) -> Result<Vec<Anchor>, Fault> {
    let mut anchors = Vec::with_capacity(TENANTS);
    for number in 0..TENANTS {
        let slug = format!("fed-{number}");
        owner.post("/api/v1/tenants", &json!({"name": slug, "slug": slug})).await?;
        let tenant = format!("svc:tenant:{slug}");
        let entity = json!({"tenant_id": tenant, "legal_name": "Bank", "form": "AG",
                            "country_code": "DE"});
        let entity = owner.post("/api/v1/legal-entities", &entity).await?;
        let anchor = json!({
            "tenant_id": tenant, "anchor_type": "market_context", "display_name": "Rates",
            "authority": {"owner_entity_id": entity["legal_entity"]["id"]}, "status": "active",
            "grounds_actions": ["payment.*"], "freshness_contract": {"max_staleness_seconds": 60},
        });
        let anchor = owner.post("/api/v1/reality-anchors", &anchor).await?;
        let id = anchor["reality_anchor"]["id"].as_str().unwrap_or_default().to_owned();
        anchors.push(Anchor { tenant, id });
    }
    Ok(anchors)
}

/// Returns the microseconds from the request that creates a stop signal to the first decision that
/// is not an allow.
async fn stops(owner: &Owner, key: &str) -> Result<Histogram<u64>, Fault> {
    let mut decisions = Connection::open(&product::evaluate_rest(owner.address, key)).await?;
    let mut took = Histogram::new(3)?;
    for _ in 0..STOPS {
        let begun = Instant::now();
        let stop = json!({"tenant_id": "svc:tenant:acme", "actor_id": product::SUBJECT,
                          "reason": "measured"});
        let made = owner.post("/api/v1/stop-signals", &stop).await?;
        while decisions.ask().await?.1.starts_with(br#"{"decision":"allow""#) {}
        took.record(u64::try_from(begun.elapsed().as_micros())?)?;
        let id = made["stop_signal"]["id"].as_str().unwrap_or_default();
        owner.post(&format!("/api/v1/stop-signals/{id}/lift"), &json!({})).await?;
        sleep(Duration::from_millis(100)).await;
    }
    Ok(took)
}
