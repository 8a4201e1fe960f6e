//! Tests workers that fail, panic, wait and are stopped.

use std::{
    convert::Infallible,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Instant,
};

use tokio::{
    sync::mpsc,
    time::{sleep, timeout},
};

use super::*;

const SOON: Duration = Duration::from_millis(10);
const LATEST: Duration = Duration::from_secs(20);

/// Waits until the count reaches `wanted`.
async fn until(count: &AtomicU32, wanted: u32) {
    let reached = async {
        while count.load(Ordering::Acquire) < wanted {
            sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(LATEST, reached).await.expect("it does not run often enough");
}

fn counted() -> (Arc<AtomicU32>, Arc<AtomicU32>) {
    let count = Arc::new(AtomicU32::new(0));
    (Arc::clone(&count), count)
}

fn only(supervisor: &Supervisor) -> Report {
    supervisor.statuses().reports().pop().unwrap()
}

#[tokio::test]
async fn a_tick_that_panics_runs_again() {
    let (count, counts) = counted();
    let supervisor = Supervisor::default();
    supervisor.run([Worker::periodic("panics", SOON, move || {
        let run = counts.fetch_add(1, Ordering::AcqRel);
        async move {
            assert!(run > 2, "run {run} panics");
            Ok::<_, Infallible>(())
        }
    })]);
    until(&count, 5).await;
    let report = only(&supervisor);
    assert!(report.since_success.is_some() && report.fault.is_none(), "{report:?}");
    supervisor.stop().await;
}

#[tokio::test]
async fn an_error_backs_off() {
    let (count, counts) = counted();
    let supervisor = Supervisor::default();
    let begun = Instant::now();
    supervisor.run([Worker::periodic("fails", LATEST, move || {
        counts.fetch_add(1, Ordering::AcqRel);
        async { Err::<(), _>("no") }
    })]);
    until(&count, 4).await;
    // The pauses are 100, 200 and 400 ms, each up to a fifth shorter. The period would be far
    // longer.
    let taken = begun.elapsed();
    assert!(taken >= Duration::from_millis(560) && taken < LATEST, "{taken:?}");
    assert_eq!(only(&supervisor).since_success, None);
    supervisor.stop().await;
}

#[tokio::test]
async fn a_tick_may_have_the_next_follow_at_once() {
    let (count, counts) = counted();
    let supervisor = Supervisor::default();
    supervisor.run([Worker::periodic("more", LATEST * 10, move || {
        counts.fetch_add(1, Ordering::AcqRel);
        async { Ok::<_, Infallible>(Next::After(Duration::ZERO)) }
    })]);
    until(&count, 3).await;
    supervisor.stop().await;
}

/// State outside the future survives a panic.
#[tokio::test]
async fn a_loop_that_panics_is_started_again_and_keeps_its_queue() {
    let (queue, waiting) = mpsc::unbounded_channel::<bool>();
    let waiting = Arc::new(tokio::sync::Mutex::new(waiting));
    let (count, counts) = counted();
    let supervisor = Supervisor::default();
    supervisor.run([Worker::endless("reader", move |context| {
        let (waiting, counts) = (Arc::clone(&waiting), Arc::clone(&counts));
        async move {
            let mut waiting = waiting.lock().await;
            loop {
                tokio::select! {
                    () = context.stopped() => return Ok::<_, Infallible>(()),
                    Some(is_bad) = waiting.recv() => assert!(!is_bad, "it cannot be read"),
                }
                counts.fetch_add(1, Ordering::AcqRel);
                context.succeeded();
            }
        }
    })]);
    for is_bad in [false, true, true, false, false] {
        queue.send(is_bad).unwrap();
    }
    until(&count, 3).await;
    assert_eq!(only(&supervisor).fault, None);
    supervisor.stop().await;
}

#[tokio::test]
async fn a_loop_that_ends_is_down_until_it_is_started_again() {
    let (count, counts) = counted();
    let supervisor = Supervisor::default();
    let ends = Worker::endless("ends", move |_| {
        counts.fetch_add(1, Ordering::AcqRel);
        async { Ok::<_, Infallible>(()) }
    });
    supervisor.run([ends.critical()]);
    until(&count, 2).await;
    sleep(SOON).await;
    let report = only(&supervisor);
    assert!(report.is_critical && report.fault.is_some(), "{report:?}");
    supervisor.stop().await;
}

/// Workers that calls need keep running after the other workers have ended. They end later, after
/// their current run.
#[tokio::test]
async fn workers_end_in_two_steps() {
    let shutdown = tokio_util::sync::CancellationToken::new();
    let supervisor = Supervisor::new(shutdown.clone());
    let (done, done_counts) = counted();
    let (calls, calls_counts) = counted();
    let tick = move |counts: Arc<AtomicU32>, lasts| {
        move || {
            let counts = Arc::clone(&counts);
            async move {
                sleep(lasts).await;
                counts.fetch_add(1, Ordering::AcqRel);
                Ok::<_, Infallible>(())
            }
        }
    };
    let sweeps = Worker::periodic("sweeps", LATEST, tick(done_counts, Duration::from_millis(100)));
    let needed = Worker::periodic("needed", SOON, tick(calls_counts, Duration::ZERO));
    supervisor.run([sweeps, needed.outlasting_calls()]);
    until(&calls, 1).await;
    shutdown.cancel();
    until(&calls, calls.load(Ordering::Acquire) + 20).await;
    assert_eq!(supervisor.statuses().running(), ["needed"]);
    assert_eq!(done.load(Ordering::Acquire), 1, "the current run ended and no new one started");
    assert!(supervisor.stop().await.is_empty());
    let last = calls.load(Ordering::Acquire);
    sleep(SOON * 5).await;
    assert_eq!(calls.load(Ordering::Acquire), last);
}

#[tokio::test]
async fn a_worker_that_does_not_end_is_left_behind() {
    let supervisor = Supervisor::default();
    supervisor.run([Worker::endless("stuck", |_| async {
        std::future::pending::<()>().await;
        Ok::<_, Infallible>(())
    })]);
    sleep(SOON).await;
    let begun = Instant::now();
    assert_eq!(supervisor.stop().await, ["stuck"]);
    assert!(begun.elapsed() < LATEST);
}
