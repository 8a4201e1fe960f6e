//! The service is killed under load, repeatedly: every response is on record.

use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use super::{
    figures::{figure, times},
    process::{Folder, Service, allowed, rows},
};

const KILLS: usize = 20;
const CALLERS: usize = 8;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_answered_decision_is_lost_when_the_service_is_killed() {
    let folder = Folder::new("killed");
    let mut service = Service::start(&folder);
    let mut answered = Vec::new();
    let kills = KILLS * times();
    for round in 0..kills {
        let lasting = Duration::from_millis(150 + 20 * (round % KILLS) as u64);
        let decided = load(&service, lasting).await;
        service.kill();
        let decided = decided.finish().await;
        assert!(!decided.is_empty(), "round {round} answered nothing");
        service = Service::start(&folder);
        // The last responses are the ones that a lost commit would affect.
        for id in decided.iter().rev().take(25) {
            let (status, found) = service.client.get(&format!("/v1/decisions/{id}")).await;
            assert_eq!(status, 200, "round {round}: `{id}` was answered and is lost: {found}");
        }
        answered.extend(decided);
    }
    assert!(answered.len() > kills * CALLERS);
    let stored =
        rows(&folder.embedded().await, "SELECT 0::bigint AS number, id FROM decisions").await;
    let stored: HashSet<String> = stored.into_iter().map(|(_, id)| id).collect();
    let lost = answered.iter().filter(|id| !stored.contains(*id)).count();
    figure(
        &format!("{} answered decisions, {kills} times kill -9", answered.len()),
        &format!("{lost} answers without a record"),
    );
    assert_eq!(lost, 0);
    service.stop();
}

/// Callers that continue until the service stops answering.
pub(super) struct Load {
    stop: Arc<AtomicBool>,
    callers: Vec<tokio::task::JoinHandle<()>>,
    decided: Arc<Mutex<Vec<String>>>,
}

impl Load {
    pub(super) async fn finish(self) -> Vec<String> {
        AtomicBool::store(&self.stop, true, Ordering::Release);
        for caller in self.callers {
            caller.await.unwrap();
        }
        std::mem::take(&mut self.decided.lock().unwrap())
    }
}

pub(super) async fn load(service: &Service, lasting: Duration) -> Load {
    let stop = Arc::new(AtomicBool::new(false));
    let decided: Arc<Mutex<Vec<String>>> = Arc::default();
    let callers = (0..CALLERS).map(|_| {
        let (client, stop) = (service.client.clone(), Arc::clone(&stop));
        let decided = Arc::clone(&decided);
        tokio::spawn(async move {
            while !AtomicBool::load(&stop, Ordering::Acquire) {
                let (status, answer) = client.post("/api/v1/runtime/evaluate", allowed()).await;
                match status {
                    200 => {}
                    // A busy machine may be slow; the kill ends this.
                    503 => continue,
                    _ => return,
                }
                let id = answer["decision_id"].as_str().unwrap().to_owned();
                decided.lock().unwrap().push(id);
            }
        })
    });
    let callers = callers.collect();
    tokio::time::sleep(lasting).await;
    for _ in 0..200 {
        if decided.lock().unwrap().len() >= CALLERS {
            break;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Load { stop, callers, decided }
}
