//! Many calls that are cancelled at once do not end the other streams of their connection.

use agent_authority::transport::Settings;

use super::{
    http2::{GOAWAY, HEADERS, Peer},
    server::{serve, settings},
};

/// Returns `Some` if stream 1 got its response although this many others were cancelled at once,
/// and `None` if the connection was closed.
async fn beside_cancelled(settings: Settings, cancelled: u32) -> Option<()> {
    let served = serve(settings).await;
    let mut peer = Peer::new(served.connect().await, true, 1000).await;
    peer.get(1, "/slow").await;
    peer.cancel_all((3..).step_by(2).take(cancelled as usize)).await;
    let answered = loop {
        match peer.next().await {
            Some(frame) if (frame.kind, frame.stream) == (HEADERS, 1) => break Some(()),
            Some(frame) if frame.kind == GOAWAY => break None,
            Some(_) => {}
            None => break None,
        }
    };
    drop(peer);
    served.stop().await;
    answered
}

#[tokio::test(flavor = "multi_thread")]
async fn as_many_calls_as_a_connection_may_have_can_be_cancelled_together() {
    for (streams, cancelled) in [(30, 24), (30, 30), (200, 199)] {
        let mut settings = settings();
        settings.bounds.streams = streams;
        let answered = beside_cancelled(settings, cancelled).await;
        assert!(answered.is_some(), "{cancelled} of {streams}: the connection was closed");
    }
}

/// If a client's runtime ends, it cancels all of its calls at once.
#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_calls_are_cancelled_together_by_default() {
    assert_eq!(settings().bounds.streams, 1000);
    assert!(beside_cancelled(settings(), 999).await.is_some(), "the connection was closed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_cancelled_calls_still_closes_the_connection() {
    let mut settings = settings();
    settings.bounds.streams = 10;
    assert!(beside_cancelled(settings, 1000).await.is_none(), "the flood has no end");
}
