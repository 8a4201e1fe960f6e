//! The handshake of a connection, and the client that it identifies.

use std::{sync::Arc, time::Duration};

use rustls::ServerConnection;
use rustls_pki_types::CertificateDer;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::watch,
    time::{sleep, timeout},
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};

use super::{
    admission::Admission,
    clients::Clients,
    files::{HTTP2, Material},
    handshakes::Handshakes,
};
use crate::transport::protocol::Protocol;

/// The first byte of a TLS connection: a record of the handshake (RFC 8446, 5.1).
const HANDSHAKE: u8 = 22;
/// The encrypted bytes that may wait for the peer, besides one record. `limits.node_unsent_bytes`
/// does not count them.
const UNSENT: usize = 16 * 1024;
/// The time between two checks of a client's certificate while its connection is open.
const RECHECK: Duration = Duration::from_secs(600);

const PLAIN: &[u8] = b"HTTP/1.1 400 Bad Request\r\n\
    content-type: application/json\r\n\
    content-length: 108\r\n\
    cache-control: no-store\r\n\
    x-content-type-options: nosniff\r\n\
    connection: close\r\n\r\n";
const PLAIN_BODY: &[u8] = br#"{"ok":false,"error":"invalid_request","message":"this address needs https","details":[],"request_id":"none"}"#;

/// TLS of one address.
#[derive(Clone, Debug)]
pub struct AddressTls {
    pub(super) material: watch::Receiver<Arc<Material>>,
    /// `None` without a certificate authority for clients.
    pub(super) clients: Option<Arc<Clients>>,
    /// Whether a handshake without a client certificate fails.
    pub(super) requires_client: bool,
}

/// A connection after its handshake.
pub(in crate::transport) struct Accepted {
    pub(in crate::transport) stream: TlsStream<TcpStream>,
    pub(in crate::transport) protocol: Protocol,
    pub(in crate::transport) admission: Admission,
    pub(in crate::transport) client: Client,
}

/// The certificate of a connection's client, if its address checks clients.
pub(in crate::transport) struct Client(Option<Checked>);

struct Checked {
    chain: Vec<CertificateDer<'static>>,
    material: watch::Receiver<Arc<Material>>,
}

impl Client {
    /// A client that is not checked.
    pub(in crate::transport) const UNKNOWN: Self = Self(None);

    /// Completes when the client's certificate has expired, or its authority was removed from the
    /// file.
    pub(in crate::transport) async fn lapsed(self) {
        let Some(Checked { chain, mut material }) = self.0 else {
            return std::future::pending().await;
        };
        loop {
            tokio::select! {
                Ok(()) = material.changed() => {}
                () = sleep(RECHECK) => {}
            }
            let current = Arc::clone(&material.borrow_and_update());
            if !current.trusts(&chain) {
                return;
            }
        }
    }
}

impl AddressTls {
    /// Completes the handshake and waits for the first byte of a request. Returns `None` if either
    /// failed or took too long.
    pub(in crate::transport) async fn accept(
        &self,
        stream: TcpStream,
        handshakes: &Arc<Handshakes>,
        within: Duration,
    ) -> Option<Accepted> {
        let mut place = handshakes.enter();
        let (accepted, result) = tokio::select! {
            done = timeout(within, self.handshake(stream)) => match done {
                Ok(Ok(accepted)) => (Some(accepted), "completed"),
                Ok(Err(result)) => (None, result),
                Err(_) => (None, "late"),
            },
            () = place.lost() => (None, "displaced"),
        };
        metrics::counter!("authority_transport_handshakes_total", "result" => result).increment(1);
        accepted
    }

    async fn handshake(&self, mut stream: TcpStream) -> Result<Accepted, &'static str> {
        let mut first = [0];
        match stream.peek(&mut first).await {
            Ok(1) if first == [HANDSHAKE] => {}
            // The beginning of a request without TLS.
            Ok(1) if first[0].is_ascii_uppercase() => {
                refuse_plain(&mut stream).await;
                return Err("plain");
            }
            _ => return Err("failed"),
        }
        let mut material = self.material.clone();
        let current = Arc::clone(&material.borrow_and_update());
        let used = if self.requires_client { &current.required } else { &current.optional };
        let acceptor = TlsAcceptor::from(Arc::clone(used));
        let limit = |session: &mut ServerConnection| session.set_buffer_limit(Some(UNSENT));
        let accepted = acceptor.accept_with(stream, limit).await;
        let mut stream = accepted.map_err(|error| {
            tracing::debug!(%error, "failed to complete a TLS handshake");
            "failed"
        })?;
        let session = stream.get_ref().1;
        let is_http2 = session.alpn_protocol() == Some(HTTP2);
        let chain = session.peer_certificates().unwrap_or_default();
        let admission = match &self.clients {
            Some(clients) => clients.admit(chain.first()),
            None => Admission::EVERYTHING,
        };
        let chain = chain.iter().map(|one| one.clone().into_owned()).collect::<Vec<_>>();
        let is_checked = self.clients.is_some() && !chain.is_empty();
        let client = Client(is_checked.then_some(Checked { chain, material }));
        // As without TLS, a peer that sends no request does not keep the connection.
        let begun = stream.fill_buf().await.is_ok_and(|bytes| !bytes.is_empty());
        if !begun {
            return Err("silent");
        }
        let protocol = if is_http2 { Protocol::Http2 } else { Protocol::Http1 };
        Ok(Accepted { stream, protocol, admission, client })
    }
}

/// Answers a client without TLS, in HTTP/1.1.
async fn refuse_plain(stream: &mut TcpStream) {
    let answer = [PLAIN, PLAIN_BODY].concat();
    if stream.write_all(&answer).await.is_ok() && stream.shutdown().await.is_ok() {
        // Closing with unread bytes would reset the connection, and the peer might lose the
        // answer. The caller limits the time.
        let _ = tokio::io::copy(stream, &mut tokio::io::sink()).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_is_true() {
        let head = String::from_utf8_lossy(PLAIN);
        assert!(head.contains(&format!("content-length: {}\r\n", PLAIN_BODY.len())));
    }
}
