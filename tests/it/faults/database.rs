//! The database fails repeatedly under load and recovers. While it is unavailable, no action is
//! permitted. No answered decision is lost, and the service recovers without a restart.

use std::{
    collections::HashSet,
    fs,
    time::{Duration, Instant},
};

use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use super::{
    figures::{figure, times},
    killed::load,
    process::{Folder, Service, allowed, rows},
};

/// How often each test kills the database.
const ROUNDS: usize = 2;
const PATIENCE: Duration = Duration::from_secs(60);

/// Finds a process of the postmaster that serves a connection.
fn backend(postmaster: Pid) -> Option<Pid> {
    let mut found = fs::read_dir("/proc").unwrap().filter_map(|process| {
        let process = process.unwrap().path();
        let status = fs::read_to_string(process.join("status")).ok()?;
        let parent = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
        let title = fs::read_to_string(process.join("cmdline")).ok()?;
        let is_one = parent.trim().parse() == Ok(postmaster.as_raw()) && title.contains("[local]");
        is_one.then(|| process.file_name()?.to_str()?.parse().ok()).flatten()
    });
    found.next().map(Pid::from_raw)
}

/// Measures the time from now to the first decision that follows a refusal.
async fn back_after(service: &Service) -> Duration {
    let (gone, mut refused) = (Instant::now(), 0);
    loop {
        assert!(gone.elapsed() < PATIENCE, "not back after {PATIENCE:?}");
        let (status, answer) = service.client.evaluate(allowed()).await;
        match status {
            200 if refused > 0 => return gone.elapsed(),
            200 => {}
            503 => {
                assert_eq!(answer["error"], "unavailable", "{answer}");
                refused += 1;
            }
            other => panic!("{other}: {answer}"),
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_goes_away_permits_nothing_and_is_found_again() {
    let folder = Folder::new("database");
    let mut service = Service::start(&folder);
    let (mut answered, mut longest) = (Vec::new(), Duration::ZERO);
    let rounds = ROUNDS * times();
    for round in 0..2 * rounds {
        let decided = load(&service.client, Duration::from_millis(200)).await;
        let postmaster = folder.database().unwrap();
        if round % 2 == 0 {
            // The whole database stops, and the service starts it again.
            kill(postmaster, Signal::SIGQUIT).unwrap();
        } else {
            // A single server process is killed: the postmaster closes all other connections and
            // recovers.
            kill(backend(postmaster).unwrap(), Signal::SIGKILL).unwrap();
        }
        longest = longest.max(back_after(&service).await);
        let decided = decided.finish().await;
        assert!(!decided.is_empty(), "no answers in round {round}");
        answered.extend(decided);
    }
    // After a long outage the node's authority is stale, and reads are refused until it is current
    // again.
    let asked = Instant::now();
    let last = format!("/v1/decisions/{}", answered.last().unwrap());
    while service.client.get(&last).await.0 != 200 {
        assert!(asked.elapsed() < Duration::from_secs(10), "`{last}` was answered and is lost");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let stored = "SELECT 0::bigint AS number, id FROM decisions";
    let stored = rows(&folder.embedded().await, stored).await;
    let stored: HashSet<String> = stored.into_iter().map(|(_, id)| id).collect();
    let lost = answered.iter().filter(|id| !stored.contains(*id)).count();
    figure(
        &format!(
            "{} answered decisions, {rounds} times the database killed and {rounds} times one of its backends",
            answered.len()
        ),
        &format!(
            "{lost} answers without a record; again after {:.1} s at most",
            longest.as_secs_f64()
        ),
    );
    assert_eq!(lost, 0);
    service.stop();
}
