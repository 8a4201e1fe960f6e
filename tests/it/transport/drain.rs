//! Stopping: requests in progress are completed, but never delay the stop beyond its time limit.

use std::time::Duration;

use tokio::{io::AsyncWriteExt, time::sleep};

use super::{
    http2::{DATA, HEADERS, Peer},
    server::{about, rest, serve, settings},
};

const SLOW: &[u8] = b"GET /slow HTTP/1.1\r\nhost: x\r\n\r\n";
const STUCK: &[u8] = b"GET /stuck HTTP/1.1\r\nhost: x\r\n\r\n";
const BOUND: Duration = Duration::from_millis(600);
/// Shorter than the drain limit of `settings()`, and long enough for a busy machine.
const WELL_BEFORE: Duration = Duration::from_secs(3);
/// After this time, a request that was sent is in progress.
const BEGUN: Duration = Duration::from_millis(100);

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_http2_peer_and_a_silent_one_do_not_hold_it_up() {
    let served = serve(settings()).await;
    let mut idle = Peer::new(served.connect().await, true, 1000).await;
    idle.get(1, "/").await;
    assert_eq!(idle.next().await.unwrap().kind, HEADERS);
    assert_eq!(idle.next().await.unwrap().kind, DATA);
    let gone = tokio::spawn(async move { while idle.next().await.is_some() {} });
    let _silent = served.connect().await;
    let taken = served.stop().await;
    assert!(taken < WELL_BEFORE, "{taken:?}");
    gone.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deaf_http2_peer_holds_it_up_for_the_bound_at_most() {
    let mut settings = settings();
    settings.bounds.drain = BOUND;
    let served = serve(settings).await;
    let mut deaf = Peer::new(served.connect().await, false, 1000).await;
    deaf.get(1, "/").await;
    assert_eq!(deaf.next().await.unwrap().kind, HEADERS);
    let taken = served.stop().await;
    assert!(taken < BOUND + WELL_BEFORE, "{taken:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_under_way_is_answered() {
    let served = serve(settings()).await;
    let mut http2 = Peer::new(served.connect().await, true, 1000).await;
    http2.get(1, "/slow").await;
    let mut http1 = served.connect().await;
    http1.write_all(SLOW).await.unwrap();
    sleep(BEGUN).await;
    let http1 = tokio::spawn(async move { rest(&mut http1).await });
    let http2 = tokio::spawn(async move {
        while let Some(frame) = http2.next().await {
            if frame.kind == HEADERS {
                return true;
            }
        }
        false
    });
    let taken = served.stop().await;
    assert!(http2.await.unwrap());
    assert!(http1.await.unwrap().starts_with("HTTP/1.1 200"));
    assert!(taken < WELL_BEFORE, "{taken:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_does_not_end_is_cut_off_at_the_bound() {
    let mut settings = settings();
    settings.bounds.drain = BOUND;
    let served = serve(settings).await;
    let mut stuck = served.connect().await;
    stuck.write_all(STUCK).await.unwrap();
    sleep(BEGUN).await;
    assert!(about(served.stop().await, BOUND));
    assert_eq!(rest(&mut stuck).await, "");
}
