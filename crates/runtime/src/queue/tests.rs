//! Tests of places, with callers that wait for them.

use futures_util::FutureExt;

use super::*;

const ONE: Size = Size { decisions: 1, bytes: 0 };

fn tenant(slug: &str) -> TenantId {
    TenantId::from_slug(slug).unwrap()
}

fn soon() -> Deadline {
    Deadline::after(TO_ANSWER)
}

/// Takes every place, including the places for tenants with few decisions.
async fn full(queue: &DecisionQueue) -> Vec<QueuePlace> {
    let mut places = Vec::new();
    for slug in ["flood".to_owned()].into_iter().cycle().take(384) {
        places.push(queue.enter(&tenant(&slug), ONE, soon()).await.unwrap());
    }
    for number in 0..128 {
        places.push(queue.enter(&tenant(&format!("t{number}")), ONE, soon()).await.unwrap());
    }
    places
}

#[tokio::test]
async fn a_place_is_taken_until_it_is_dropped() {
    let queue = DecisionQueue::default();
    let mut places = full(&queue).await;
    let id = tenant("flood");
    let mut next = std::pin::pin!(queue.enter(&id, ONE, soon()));
    assert!(next.as_mut().now_or_never().is_none());
    // Releasing the places above the usual number does not free a place for the next call.
    places.truncate(384);
    assert!(next.as_mut().now_or_never().is_none());
    places.pop();
    assert!(next.now_or_never().unwrap().is_ok());
}

#[tokio::test]
async fn the_place_of_a_caller_that_leaves_goes_to_the_next() {
    let queue = DecisionQueue::default();
    let mut places = full(&queue).await;
    places.truncate(384);
    let id = tenant("flood");
    let mut left = Box::pin(queue.enter(&id, ONE, soon()));
    let mut next = Box::pin(queue.enter(&id, ONE, soon()));
    assert!(left.as_mut().now_or_never().is_none());
    assert!(next.as_mut().now_or_never().is_none());
    places.pop();
    // The place was granted but not taken.
    drop(left);
    assert!(next.now_or_never().unwrap().is_ok());
    drop(places);
    let state = queue.state.lock();
    assert_eq!(state.turns.queued(), 0);
}

#[tokio::test]
async fn a_refusal_says_when_to_ask_again() {
    let queue = DecisionQueue::default();
    let _places = full(&queue).await;
    let id = tenant("flood");
    let most = queue.state.lock().throughput.longest_queue();
    let mut waiting: Vec<_> = (0..most).map(|_| Box::pin(queue.enter(&id, ONE, soon()))).collect();
    assert!(waiting.iter_mut().all(|place| place.as_mut().now_or_never().is_none()));
    let Err(refused) = queue.enter(&id, ONE, soon()).await else { panic!("one too many") };
    assert_eq!(refused.code, ErrorCode::RateLimited);
    assert_eq!(refused.about, [("retry_after", "1".to_owned())]);
    assert!(queue.is_full_for(&id) && !queue.is_full_for(&tenant("polite")));
}

#[tokio::test]
async fn the_oldest_call_that_waits_is_known() {
    let queue = DecisionQueue::default();
    let _places = full(&queue).await;
    assert_eq!(queue.load().oldest, Duration::ZERO);
    let id = tenant("flood");
    let mut first = Box::pin(queue.enter(&id, ONE, soon()));
    assert!(first.as_mut().now_or_never().is_none());
    std::thread::sleep(Duration::from_millis(20));
    let mut second = Box::pin(queue.enter(&id, ONE, soon()));
    assert!(second.as_mut().now_or_never().is_none());
    assert!(queue.load().oldest >= Duration::from_millis(20), "{:?}", queue.load());
    // A caller that has left does not wait.
    drop(first);
    assert!(queue.load().oldest < Duration::from_millis(20), "{:?}", queue.load());
    drop(second);
    assert_eq!(queue.load().oldest, Duration::ZERO);
}
