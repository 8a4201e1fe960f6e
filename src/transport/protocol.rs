//! Detects HTTP/1 or HTTP/2 from the first bytes within a time limit, without consuming them.
//! Hyper's own detection waits forever on half a preface.

use std::time::Duration;

use tokio::{
    net::TcpStream,
    time::{sleep, timeout},
};

/// Connection preface of RFC 9113 section 3.4.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The time after which an incomplete preface is checked again.
const AGAIN: Duration = Duration::from_millis(10);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Http1,
    Http2,
}

/// Detects the protocol; `None` if the peer closed the connection or sent too little in time.
pub(super) async fn detect(stream: &TcpStream, within: Duration) -> Option<Protocol> {
    timeout(within, look(stream)).await.ok().flatten()
}

async fn look(stream: &TcpStream) -> Option<Protocol> {
    let mut seen = [0; PREFACE.len()];
    loop {
        let length = stream.peek(&mut seen).await.ok()?;
        let seen = seen.get(..length).filter(|seen| !seen.is_empty())?;
        if seen == PREFACE {
            return Some(Protocol::Http2);
        }
        if !PREFACE.starts_with(seen) {
            return Some(Protocol::Http1);
        }
        sleep(AGAIN).await;
    }
}
