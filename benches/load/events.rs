//! Measures the cost of events for decisions, and the rate of their delivery.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use serde_json::json;
use tokio::time::sleep;

use crate::{
    Fault,
    arguments::Arguments,
    http1::Connection,
    meter::to_float,
    owner::Owner,
    preflight::preflight,
    product::{self, Started},
    receiver::Receiver,
    row::Report,
    server::Folder,
};

/// The number of endpoints that receive every event.
const ENDPOINTS: u64 = 4;
/// The number of batches of a hundred decisions. Each decision is delivered to each endpoint.
const BATCHES: u64 = 150;
/// The number of single decisions. The time from each to its delivery is measured.
const SINGLE: u64 = 200;
/// A URL without a listener, to measure only the creation of events.
pub(crate) const NOWHERE: &str = "http://127.0.0.1:9/";
/// The time between single decisions.
const IDLE: Duration = Duration::from_millis(20);

pub(crate) async fn rows(
    arguments: &Arguments,
    folder: &Folder,
    report: &mut Report,
) -> Result<(), Fault> {
    let Started { server, address, key } = product::start("events", "strict", folder).await?;
    let meter = server.meter();
    let owner = Owner::new(address, folder, "events")?;
    let call = product::evaluate(address, Some(&key));
    report.measure("Evaluate, gRPC, without events", call, &meter, arguments).await;
    endpoint(&owner, NOWHERE).await?;
    let call = product::evaluate(address, Some(&key));
    report.measure("Evaluate, gRPC, each an event", call, &meter, arguments).await;
    drop(server);
    // A new server, because the first still has a backlog of events.
    let Started { server: _server, address, key } =
        product::start("deliveries", "strict", folder).await?;
    let owner = Owner::new(address, folder, "deliveries")?;
    let (rate, idle) = deliveries(&key, &owner).await?;
    let millis = |quantile| to_float(idle.value_at_quantile(quantile)) / 1000.0;
    report.notes.push(format!(
        "deliveries: {rate:.0} a second, to {ENDPOINTS} endpoints of one tenant, signed with two suites; from \
         the answer to the delivery on an idle server: {:.1} ms (p50), {:.1} ms (p99)",
        millis(0.5),
        millis(0.99),
    ));
    Ok(())
}

/// Returns the deliveries a second while there is a backlog, and the microseconds from a decision's
/// response to its delivery.
async fn deliveries(key: &str, owner: &Owner) -> Result<(f64, Histogram<u64>), Fault> {
    let receiver = Receiver::start().await?;
    let url = |number: u64| format!("http://{}/{number}", receiver.address);
    for number in 0..ENDPOINTS {
        endpoint(owner, &url(number)).await?;
    }
    let batch = product::batch_evaluate(owner.address, key);
    for _ in 0..BATCHES {
        preflight(&batch).await?;
    }
    let (begun, before) = (Instant::now(), receiver.count());
    let all = BATCHES * u64::from(product::BATCH) * ENDPOINTS;
    receiver.reach(all).await?;
    let rate = to_float(all - before) / begun.elapsed().as_secs_f64();
    let mut single = Connection::open(&product::evaluate_rest(owner.address, key)).await?;
    let mut took = Histogram::new(3)?;
    for _ in 0..SINGLE {
        let before = receiver.count();
        single.ask().await?;
        let answered = Instant::now();
        receiver.reach(before + 1).await?;
        took.record(u64::try_from(answered.elapsed().as_micros())?)?;
        receiver.reach(before + ENDPOINTS).await?;
        sleep(IDLE).await;
    }
    Ok((rate, took))
}

/// Creates an endpoint of the demonstration tenant that receives an event for each decision.
pub(crate) async fn endpoint(owner: &Owner, url: &str) -> Result<(), Fault> {
    let body = json!({"tenant_id": "svc:tenant:acme", "url": url,
                      "event_types": ["svc.decision.*"], "rate_limit_per_second": 1000});
    owner.post("/api/v1/webhook-endpoints", &body).await.map(drop)
}
