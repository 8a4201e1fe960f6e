//! Two nodes on one database. The second is notified of changes late. This late node never permits
//! on authority that was revoked before the request.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use authority_graph as graph;

use super::{
    figures::{figure, times},
    process::allowed,
};
use crate::support::{Client, TestApp, Wishes};

const REQUESTS: usize = 20_000;
const CALLERS: usize = 24;

/// Counts the results of the late node's calls.
#[derive(Debug, Default)]
struct Counts {
    allows: AtomicUsize,
    stale_allows: AtomicUsize,
    others: AtomicUsize,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_node_never_permits_what_is_revoked() {
    let counts = ask_a_late_node(true, REQUESTS * times()).await;
    let [allows, stale, others] = counts.read();
    figure(
        &format!("{} requests to a node that is notified 250 ms late", allows + stale + others),
        &format!("{stale} allows on revoked authority"),
    );
    assert_eq!(stale, 0, "{counts:?}");
    assert!(allows > 0 && others > 0, "{counts:?}");
}

/// Without the fence, the late node does permit on revoked authority under the same load.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_fence_it_would() {
    let counts = ask_a_late_node(false, REQUESTS / 10).await;
    assert!(counts.read()[1] > 0, "{counts:?}");
}

impl Counts {
    fn read(&self) -> [usize; 3] {
        [&self.allows, &self.stale_allows, &self.others]
            .map(|count| AtomicUsize::load(count, Ordering::Acquire))
    }
}

async fn ask_a_late_node(fenced: bool, requests: usize) -> Arc<Counts> {
    let prompt = TestApp::seeded().await;
    let demo = prompt.demo().await;
    let late = graph::Settings { delay: Duration::from_millis(250), ..Default::default() };
    let late = prompt.beside(Wishes { graph: late, fenced, ..Wishes::default() }).await;
    // While this epoch is odd, the delegation is suspended and the suspension has been answered.
    let epoch = Arc::new(AtomicU64::new(0));
    let counts = Arc::new(Counts::default());
    let left = Arc::new(AtomicUsize::new(requests));
    let callers: Vec<_> = (0..CALLERS)
        .map(|_| {
            let client = late.client(&demo.api_key);
            tokio::spawn(call(client, Arc::clone(&epoch), Arc::clone(&counts), Arc::clone(&left)))
        })
        .collect();
    let owner = prompt.owner();
    // The first two suspensions end before the late node is notified. The third is long enough for
    // the node to notice and deny.
    let mut suspended = [150, 150, 600].map(Duration::from_millis).into_iter().cycle();
    while callers.iter().any(|caller| !caller.is_finished()) {
        let (status, answer) = owner.suspend_delegation(&demo.delegation_id).await;
        assert_eq!(status, 200, "{answer}");
        epoch.fetch_add(1, Ordering::AcqRel);
        tokio::time::sleep(suspended.next().unwrap_or_default()).await;
        epoch.fetch_add(1, Ordering::AcqRel);
        let (status, answer) = owner.reinstate_delegation(&demo.delegation_id).await;
        assert_eq!(status, 200, "{answer}");
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    counts
}

async fn call(client: Client, epoch: Arc<AtomicU64>, counts: Arc<Counts>, left: Arc<AtomicUsize>) {
    let take = |left: usize| left.checked_sub(1);
    while left.fetch_update(Ordering::AcqRel, Ordering::Acquire, take).is_ok() {
        let begun = AtomicU64::load(&epoch, Ordering::Acquire);
        let (status, answer) = client.evaluate(allowed()).await;
        let ended = AtomicU64::load(&epoch, Ordering::Acquire);
        // The delegation was suspended before the request, and still was when the response arrived.
        let suspended = begun % 2 == 1 && begun == ended;
        let permitted = status == 200 && answer["decision"] == "allow";
        let count = match (permitted, suspended) {
            (true, true) => &counts.stale_allows,
            (true, false) => &counts.allows,
            (false, _) => &counts.others,
        };
        count.fetch_add(1, Ordering::AcqRel);
    }
}
