//! The database fails under load and comes back: in between nothing is permitted, no response is lost, and it
//! recovers by itself.

use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};

use super::process::{Folder, Service, allowed};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_goes_away_permits_nothing_and_is_found_again() {
    let folder = Folder::new("database");
    let mut service = Service::start(&folder);
    let client = service.client.clone();
    let ask = async || client.post("/api/v1/runtime/evaluate", allowed()).await;
    let mut answered = Vec::new();
    for _ in 0..20 {
        let (status, answer) = ask().await;
        assert_eq!((status, &answer["decision"]), (200, &"allow".into()), "{answer}");
        answered.push(answer["decision_id"].as_str().unwrap().to_owned());
    }
    kill(folder.database().unwrap(), Signal::SIGQUIT).unwrap();
    let (gone, mut refused) = (Instant::now(), 0);
    // The service restarts its own database; until then it answers that it is unavailable.
    loop {
        assert!(gone.elapsed() < Duration::from_secs(60), "not back in 60 s");
        let (status, answer) = ask().await;
        match status {
            200 => {
                answered.push(answer["decision_id"].as_str().unwrap().to_owned());
                if refused > 0 {
                    break;
                }
            }
            503 => {
                assert_eq!(answer["error"], "unavailable", "{answer}");
                refused += 1;
            }
            other => panic!("{other}: {answer}"),
        }
    }
    assert!(refused > 0);
    for id in &answered {
        let asked = Instant::now();
        // Authority that could not be read for too long is stale, and then nothing is answered.
        let (status, answer) = loop {
            match client.get(&format!("/v1/decisions/{id}")).await {
                (503, _) if asked.elapsed() < Duration::from_secs(10) => {
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                told => break told,
            }
        };
        assert_eq!(status, 200, "`{id}` was answered and is lost: {answer}");
    }
    service.stop();
}
