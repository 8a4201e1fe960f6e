//! The service is killed between recording decisions and numbering their events: each decision has
//! exactly one event.

use std::{collections::BTreeSet, time::Duration};

use serde_json::json;

use super::{
    figures::{figure, times},
    killed::load,
    process::{Folder, Service, rows},
};
use crate::support::{Answered, LOGGED, TENANT};

const KILLS: usize = 6;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_decision_has_its_event_once_when_the_service_is_killed() {
    let folder = Folder::new("numbering");
    let mut service = Service::start(&folder);
    let database = folder.embedded().await;
    // No server listens at this address.
    let endpoint = json!({"tenant_id": TENANT, "url": "http://127.0.0.1:9/",
                          "event_types": ["svc.decision.*"]});
    service.owner(&folder).create_webhook_endpoint(endpoint).await.assert_status(201);
    let waiting = "SELECT number, tenant_id AS id FROM event_outbox";
    let mut killed_between = 0;
    let kills = KILLS * times();
    for round in 0..kills {
        let lasting = Duration::from_millis(100 + 30 * (round % KILLS) as u64);
        let decided = load(&service.client, lasting).await;
        for _ in 0..200 {
            if !rows(&database, waiting).await.is_empty() {
                break;
            }
        }
        service.kill();
        killed_between += usize::from(!rows(&database, waiting).await.is_empty());
        decided.finish().await;
        service = Service::start(&folder);
    }
    assert!(killed_between > 0, "no kill was between a decision and its number");
    for _ in 0..600 {
        if rows(&database, waiting).await.is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let told = format!(
        "SELECT sequence AS number, event ->> 'subject_ref' AS id FROM {LOGGED} \
         WHERE event ->> 'event_type' = 'svc.decision.allowed' ORDER BY sequence"
    );
    let told: Vec<String> = rows(&database, &told).await.into_iter().map(|(_, id)| id).collect();
    let decided = "SELECT 0::bigint AS number, id FROM decisions";
    let decided: BTreeSet<String> =
        rows(&database, decided).await.into_iter().map(|(_, id)| id).collect();
    assert_eq!(told.len(), decided.len(), "not one event for each decision");
    assert_eq!(told.into_iter().collect::<BTreeSet<_>>(), decided);
    let numbers =
        format!("SELECT sequence AS number, event ->> 'event_id' AS id FROM {LOGGED} ORDER BY 1");
    let numbers = rows(&database, &numbers).await;
    let numbers: Vec<i64> = numbers.into_iter().map(|(number, _)| number).collect();
    assert_eq!(numbers, (1..).take(numbers.len()).collect::<Vec<_>>());
    figure(
        &format!("{} decisions with their events, {kills} times kill -9", decided.len()),
        "0 events lost, doubled or out of sequence",
    );
    service.stop();
}
