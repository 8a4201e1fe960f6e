//! Tests turns, limits, deadlines, and callers that leave.

use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::{sync::Semaphore, time::sleep};

use super::*;

const MOMENT: Duration = Duration::from_millis(20);

fn pool(threads: usize, running: usize, waiting: usize) -> ComputePool {
    let limits = Limits {
        threads,
        running,
        waiting,
        waiting_in_all: 2 * waiting,
        longest: Duration::from_secs(5),
    };
    ComputePool::start(limits).unwrap()
}

/// Runs until the job is cancelled.
fn endless(turn: &Turn) {
    while turn.is_wanted() {
        thread::sleep(Duration::from_millis(1));
    }
}

#[tokio::test]
async fn results_come_back_and_a_panic_is_one_jobs_own() {
    let pool = pool(1, 1, 4);
    assert_eq!(pool.run("a", |_| 6 * 7).await, Ok(42));
    let failed: Result<(), _> = pool.run("a", |_| panic!("of this job alone")).await;
    assert_eq!(failed, Err(Error::Failed));
    assert_eq!(pool.run("a", |_| 1).await, Ok(1));
}

#[tokio::test]
async fn work_stops_when_its_caller_goes_or_its_time_is_over() {
    let pool = pool(1, 1, 4);
    let running = pool.run("a", endless);
    assert!(tokio::time::timeout(MOMENT, running).await.is_err());
    // The only thread is free again immediately.
    assert_eq!(pool.run("a", |_| 1).await, Ok(1));
    assert_eq!(pool.run_within("a", MOMENT, endless).await, Err(Error::TooLong));
    assert_eq!(pool.run("a", |_| 2).await, Ok(2));
}

#[tokio::test]
async fn a_running_job_keeps_its_place_after_its_caller_left() {
    let pool = pool(1, 1, 4);
    let most = Arc::new(AtomicUsize::new(0));
    let now = Arc::new(AtomicUsize::new(0));
    for _ in 0..6 {
        let (most, now) = (Arc::clone(&most), Arc::clone(&now));
        let deaf = move |_: &Turn| {
            most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            thread::sleep(3 * MOMENT);
            now.fetch_sub(1, Ordering::SeqCst);
        };
        // Each caller leaves before its job ends, and the job does not check for it.
        let _ = tokio::time::timeout(MOMENT, pool.run("a", deaf)).await;
    }
    assert_eq!(pool.run("b", |_| 1).await, Ok(1));
    assert_eq!(most.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn the_queue_is_bounded_and_cancelled_jobs_free_their_places() {
    let pool = pool(1, 1, 2);
    let ask = |tenant: &'static str| {
        let pool = pool.clone();
        tokio::spawn(async move { pool.run(tenant, endless).await })
    };
    let first = ask("a");
    sleep(MOMENT).await;
    let others = [ask("a"), ask("a"), ask("b"), ask("b")];
    sleep(MOMENT).await;
    for (tenant, full) in
        [("a", Error::TenantFull(2)), ("b", Error::TenantFull(2)), ("c", Error::Full)]
    {
        assert_eq!(pool.run(tenant, |_| ()).await, Err(full), "{tenant}");
    }
    others.iter().for_each(tokio::task::JoinHandle::abort);
    first.abort();
    sleep(MOMENT).await;
    assert_eq!(pool.run("c", |_| 3).await, Ok(3));
}

#[tokio::test]
async fn one_tenant_leaves_a_thread_to_others_and_tenants_take_turns() {
    let pool = pool(2, 1, 16);
    let hold = |tenant: &'static str| {
        let pool = pool.clone();
        tokio::spawn(async move { pool.run(tenant, endless).await })
    };
    let busy: Vec<_> = (0..8).map(|_| hold("a")).collect();
    sleep(MOMENT).await;
    assert_eq!(pool.run_within("b", 10 * MOMENT, |_| 1).await, Ok(1));
    busy.iter().for_each(tokio::task::JoinHandle::abort);

    let one = super::tests::pool(1, 1, 16);
    let order = Arc::new(Mutex::new(Vec::new()));
    let gate = Arc::new(Semaphore::new(0));
    let first = {
        let (one, gate) = (one.clone(), Arc::clone(&gate));
        tokio::spawn(async move {
            one.run("z", move |_| {
                while gate.available_permits() == 0 {
                    thread::sleep(MOMENT / 4);
                }
            })
            .await
        })
    };
    sleep(MOMENT).await;
    let mut rest = Vec::new();
    for tenant in ["a", "a", "a", "b", "c"] {
        let (one, order) = (one.clone(), Arc::clone(&order));
        rest.push(tokio::spawn(async move {
            one.run(tenant, move |_| order.lock().push(tenant)).await
        }));
        sleep(MOMENT / 4).await;
    }
    gate.add_permits(1);
    first.await.unwrap().unwrap();
    futures_util::future::join_all(rest).await;
    assert_eq!(*order.lock(), ["a", "b", "c", "a", "a"]);
}
