//! Waiting, starting and releasing deliveries, without a database.

use authority_ids::{DeliveryRef, EndpointRef, EventRef, TenantRef};
use authority_webhook::retry::{Answer, ErrorClass, FAILURES_TO_OPEN, Schedule};

use super::{
    super::{attempt::Outcome, endpoint::Endpoint, places::DeliveryPlace},
    *,
};

/// A delivery of lane 0 that was claimed just now.
fn job(endpoint: &str, tenant: &str, per_second: i32) -> Job {
    let (endpoint_id, tenant_id) = (EndpointRef::from(endpoint), TenantRef::from(tenant));
    let endpoint = Endpoint {
        id: endpoint_id.clone(),
        tenant_id: tenant_id.clone(),
        version: String::new(),
        url: None,
        schedule: Schedule::default(),
        suites: Vec::new(),
        secrets: Vec::new(),
        headers: Vec::new(),
    };
    Job {
        id: DeliveryRef::default(),
        endpoint: Arc::new(endpoint),
        place: Arc::new(DeliveryPlace { endpoint_id, tenant_id, host: String::new() }),
        event_id: EventRef::default(),
        sequence: 1,
        body: None,
        replay_id: None,
        lane: 0,
        attempts: 0,
        attempts_before: 0,
        lease: String::new(),
        leased_until: Instant::now() + Duration::from_secs(60),
        is_probe: false,
        per_second,
        failures: 0,
    }
}

fn jobs(endpoint: &str, tenant: &str, count: usize) -> Vec<Job> {
    (0..count).map(|_| job(endpoint, tenant, 1000)).collect()
}

fn answered(status: u16) -> Ending {
    let answer = Answer { status: Some(status), retry_after: Some(Duration::from_secs(9)) };
    let class = (!answer.succeeded()).then_some(ErrorClass::Http);
    let at = chrono::DateTime::UNIX_EPOCH;
    Ending::Attempted(Outcome { at, answer, class, latency: None, body_start: None })
}

/// Starts all deliveries that may start now.
fn started(queue: &mut Queue, now: Instant) -> Vec<Arc<Job>> {
    std::iter::from_fn(|| queue.next(now)).collect()
}

fn take(queue: &mut Queue, jobs: Vec<Job>, now: Instant) -> usize {
    queue.take(jobs, &HashSet::new(), now).len()
}

/// A duration after which none of the tested rate limits applies.
const SECOND: Duration = Duration::from_secs(1);

#[tokio::test]
async fn places_limit_what_runs_and_not_what_waits() {
    let (mut queue, now) = (Queue::new(), Instant::now());
    take(&mut queue, jobs("a", "t", 20), now);
    take(&mut queue, jobs("b", "t", 20), now);
    let first = started(&mut queue, now);
    assert_eq!(first.len(), 2 * RUNNING.endpoint);
    // The next attempt starts when one has ended, before its result is recorded.
    assert!(queue.ended(&first[0], &answered(204), SECOND, now).is_none());
    let next = started(&mut queue, now + SECOND);
    assert_eq!(next.len(), 1);
    assert_eq!(next[0].place.endpoint_id, first[0].place.endpoint_id);
}

#[tokio::test]
async fn a_rate_limit_holds_its_endpoint_alone() {
    let (mut queue, now) = (Queue::new(), Instant::now());
    take(&mut queue, vec![job("slow", "t", 1), job("slow", "t", 1)], now);
    take(&mut queue, jobs("fast", "t", 4), now);
    let first = started(&mut queue, now);
    assert_eq!(first.len(), 5);
    let until = queue.paced_until(now).unwrap();
    assert_eq!(until, now + SECOND);
    assert!(queue.next(until - Duration::from_millis(1)).is_none());
    let second = queue.next(until).unwrap();
    // Another node has used up the rate limit.
    assert!(queue.put_back(second, SECOND, until).is_none());
    assert!(queue.next(until + SECOND / 2).is_none());
    assert!(queue.next(until + SECOND).is_some());
}

#[tokio::test]
async fn a_failure_that_holds_the_endpoint_empties_its_queue_until_it_is_recorded() {
    for status in [410, 429, 503] {
        let (mut queue, now) = (Queue::new(), Instant::now());
        take(&mut queue, jobs("a", "t", 20), now);
        take(&mut queue, jobs("b", "t", 1), now);
        let running = started(&mut queue, now);
        let failed = running.iter().find(|job| job.place.endpoint_id == "a").unwrap();
        let released = queue.ended(failed, &answered(status), SECOND, now);
        assert_eq!(released.unwrap().len(), 20 - RUNNING.endpoint, "{status}");
        assert_eq!(queue.rooms().of(&"a".into()), [0; LANES]);
        // Deliveries that were claimed since then are not sent either.
        assert_eq!(take(&mut queue, jobs("a", "t", 3), now), 3);
        assert!(queue.next(now + SECOND).is_none());
        queue.recorded(failed, true);
        assert_eq!(take(&mut queue, jobs("a", "t", 3), now), 0);
        assert!(queue.next(now + SECOND).is_some());
    }
}

#[tokio::test]
async fn the_failure_that_opens_the_breaker_empties_the_queue() {
    // Another node may have recorded some of the failures.
    for before in 0..FAILURES_TO_OPEN {
        let (mut queue, now) = (Queue::new(), Instant::now());
        let mut claimed = jobs("a", "t", 20);
        claimed[0].failures = before;
        take(&mut queue, claimed, now);
        for failure in before + 1..=FAILURES_TO_OPEN {
            let job = queue.next(now + SECOND * failure).unwrap();
            let released = queue.ended(&job, &answered(500), SECOND, now);
            assert_eq!(released.is_some(), failure == FAILURES_TO_OPEN);
        }
        assert!(queue.next(now + SECOND * 10).is_none());
    }
    // A success in between resets the count.
    let (mut queue, now) = (Queue::new(), Instant::now());
    take(&mut queue, jobs("a", "t", 20), now);
    for attempt in 1..=10 {
        let job = queue.next(now + SECOND * attempt).unwrap();
        let status = if attempt % 4 == 0 { 200 } else { 500 };
        assert!(queue.ended(&job, &answered(status), SECOND, now).is_none());
    }
}

#[tokio::test]
async fn as_much_is_claimed_as_an_endpoint_takes_in_a_moment() {
    for (millis, per_second, room) in
        [(1, 1000, 64), (50, 1000, 20), (1, 10, 10), (15_000, 1000, 4), (1, 1, 4)]
    {
        let (mut queue, now) = (Queue::new(), Instant::now());
        assert_eq!(queue.rooms().of(&"a".into()), [FIRST; LANES]);
        take(&mut queue, vec![job("a", "t", per_second)], now);
        let job = queue.next(now).unwrap();
        queue.ended(&job, &answered(200), Duration::from_millis(millis), now);
        assert_eq!(
            queue.rooms().of(&"a".into()),
            [room; LANES],
            "{millis} ms, {per_second} a second"
        );
    }
}

#[tokio::test]
async fn what_waits_too_long_for_its_lease_is_given_back() {
    let (mut queue, now) = (Queue::new(), Instant::now());
    take(&mut queue, jobs("a", "t", 6), now);
    started(&mut queue, now);
    assert!(queue.overdue(now + Duration::from_secs(42)).is_empty());
    assert_eq!(queue.overdue(now + Duration::from_secs(44)).len(), 2);
    assert!(queue.next(now + Duration::from_secs(44)).is_none());
}

#[tokio::test]
async fn what_is_not_recorded_counts_as_claimed() {
    let (mut queue, now) = (Queue::new(), Instant::now());
    for tenant in ["s", "t"] {
        take(&mut queue, jobs(tenant, tenant, CLAIMED.tenant), now);
    }
    assert!(queue.claimed().are_full());
    let job = queue.next(now).unwrap();
    queue.ended(&job, &answered(200), SECOND, now);
    assert!(queue.claimed().are_full());
    queue.recorded(&job, false);
    assert!(!queue.claimed().are_full());
    assert_eq!(queue.release_all().len(), CLAIMED.node - 1);
}

#[tokio::test]
async fn more_is_claimed_when_little_waits() {
    let (mut queue, now) = (Queue::new(), Instant::now());
    let of = |endpoint: &str| HashSet::from([EndpointRef::from(endpoint)]);
    queue.take(jobs("a", "t", FIRST), &of("a"), now);
    assert!(!queue.is_hungry());
    let job = started(&mut queue, now).remove(0);
    assert!(queue.is_hungry(), "half of them wait");
    queue.take(Vec::new(), &HashSet::new(), now);
    assert!(!queue.is_hungry(), "no more are due");
    queue.take(Vec::new(), &of("b"), now);
    assert!(queue.is_hungry(), "another endpoint has no deliveries yet");
    queue.take(Vec::new(), &of("a"), now);
    queue.ended(&job, &answered(410), SECOND, now);
    assert!(!queue.is_hungry(), "the endpoint is stopped");
}
