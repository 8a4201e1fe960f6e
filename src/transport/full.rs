//! The response when the connection limit is reached: "try again later", in the peer's protocol.
//!
//! These responses have a small limit of their own; beyond it the connection just closes.

use std::{sync::Arc, time::Duration};

use tokio::{io::AsyncWriteExt, net::TcpStream, sync::Semaphore, time::timeout};

use super::protocol::{Protocol, detect};

/// The most such responses at one time.
const MOST_RESPONSES: usize = 64;
const PATIENCE: Duration = Duration::from_millis(500);

const HTTP1: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\n\
    content-type: application/json\r\n\
    content-length: 107\r\n\
    cache-control: no-store\r\n\
    x-content-type-options: nosniff\r\n\
    retry-after: 1\r\n\
    connection: close\r\n\r\n";
const BODY: &[u8] = br#"{"ok":false,"error":"unavailable","message":"too many connections; retry","details":[],"request_id":"none"}"#;

/// SETTINGS, then GOAWAY with `ENHANCE_YOUR_CALM` (RFC 9113 sections 6.5, 6.8, 7).
const HTTP2: &[u8] = &[
    0, 0, 0, 4, 0, 0, 0, 0, 0, // SETTINGS, empty
    0, 0, 8, 7, 0, 0, 0, 0, 0, // GOAWAY, 8 bytes
    0, 0, 0, 0, 0, 0, 0, 11, // no stream was accepted
];

#[derive(Clone)]
pub(super) struct Full {
    places: Arc<Semaphore>,
    has_tls: bool,
}

impl Full {
    pub(super) fn new(has_tls: bool) -> Self {
        Self { places: Arc::new(Semaphore::new(MOST_RESPONSES)), has_tls }
    }

    pub(super) fn refuse(&self, mut stream: TcpStream) {
        metrics::counter!("authority_transport_connections_refused_total").increment(1);
        if self.has_tls {
            return; // a response would need a handshake
        }
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else { return };
        // Each connection has its own task, which ends with the connection.
        tokio::spawn(async move {
            let _place = place;
            let response = async {
                let protocol = detect(&stream, PATIENCE).await;
                match protocol {
                    Some(Protocol::Http1) => {
                        stream.write_all(HTTP1).await?;
                        stream.write_all(BODY).await?;
                    }
                    Some(Protocol::Http2) => stream.write_all(HTTP2).await?,
                    None => return Ok(()),
                }
                stream.shutdown().await?;
                // Reads until the peer closes: closing with unread bytes would reset the
                // connection, and the peer might lose the response.
                tokio::io::copy(&mut stream, &mut tokio::io::sink()).await.map(drop)
            };
            // If the peer is too slow or gone, the connection is closed as well.
            let _ = timeout(2 * PATIENCE, response).await;
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_is_true() {
        let head = String::from_utf8_lossy(HTTP1);
        assert!(head.contains(&format!("content-length: {}\r\n", BODY.len())));
    }
}
