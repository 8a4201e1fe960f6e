//! The service is killed repeatedly under load, sometimes together with its database. Every
//! answered decision is stored.

use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use nix::sys::signal::{Signal, kill};
use serde_json::Value;

use super::{
    figures::{figure, times},
    process::{Folder, Service, allowed, rows},
};
use crate::support::{Client, EVALUATE};

const KILLS: usize = 20;
/// Every fourth kill also kills the database.
const BOTH: usize = 4;
const CALLERS: usize = 8;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_answered_decision_is_lost_when_the_service_is_killed() {
    let folder = Folder::new("killed");
    let mut service = Service::start(&folder);
    let mut answered = Vec::new();
    let (kills, mut both) = (KILLS * times(), 0);
    for round in 0..kills {
        let lasting = Duration::from_millis(150 + 20 * (round % KILLS) as u64);
        let decided = load(&service.client, lasting).await;
        if round % BOTH == BOTH - 1 {
            // The database writes no checkpoint, as in a power failure.
            kill(folder.database().unwrap(), Signal::SIGQUIT).unwrap();
            both += 1;
        }
        service.kill();
        let decided = decided.finish().await;
        assert!(!decided.is_empty(), "no answers in round {round}");
        service = Service::start(&folder);
        // A lost commit would affect the last responses.
        for id in decided.iter().rev().take(25) {
            let (status, found) = service.client.get_decision(id).await;
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
        &format!(
            "{} answered decisions, {kills} times kill -9, {both} times of the database too",
            answered.len()
        ),
        &format!("{lost} answers without a record"),
    );
    assert_eq!(lost, 0);
    service.stop();
}

/// Callers that make requests until the service stops responding.
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

pub(super) async fn load(client: &Client, lasting: Duration) -> Load {
    let stop = Arc::new(AtomicBool::new(false));
    let decided: Arc<Mutex<Vec<String>>> = Arc::default();
    let callers = (0..CALLERS).map(|_| {
        let (client, stop) = (client.clone(), Arc::clone(&stop));
        let decided = Arc::clone(&decided);
        tokio::spawn(async move {
            while !AtomicBool::load(&stop, Ordering::Acquire) {
                let request = client.http.post(format!("{}{EVALUATE}", client.base));
                let asked = request.bearer_auth(&client.token).json(&allowed()).send().await;
                // The kill closes the connection, possibly in the middle of a response.
                let Ok(answer) = asked else { return };
                let status = answer.status().as_u16();
                let Ok(answer) = answer.json::<Value>().await else { return };
                match status {
                    200 => {}
                    // The database is unavailable, or the machine is slow. The kill ends this loop.
                    503 => {
                        tokio::time::sleep(Duration::from_millis(10)).await;
                        continue;
                    }
                    _ => panic!("{status}: {answer}"),
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
