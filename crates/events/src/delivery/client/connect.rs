//! Opens new connections.

use std::{
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use authority_webhook::{destination::EndpointUrl, retry::ErrorClass};
use bytes::Bytes;
use http_body_util::Full;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::ServerName;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, lookup_host},
    time::{Instant, timeout, timeout_at},
};
use tokio_rustls::TlsConnector;

/// The lifetime of a connection, whether it is in use or idle. A new connection's address is vetted
/// again.
pub(super) const LIFE: Duration = Duration::from_secs(60);
/// The most headers in a response.
const MOST_HEADERS: usize = 100;
const LONGEST_HEAD: usize = 32 * 1024;

/// The destination of a connection, and whether it uses TLS.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Target {
    https: bool,
    host: String,
    port: u16,
    address: IpAddr,
}

impl Target {
    pub(super) fn of(url: &EndpointUrl, address: IpAddr) -> Self {
        Self { https: url.is_https(), host: url.host().to_owned(), port: url.port(), address }
    }
}

/// A connection without a pending request.
pub(in super::super) struct Connection {
    pub(super) sender: SendRequest<Full<Bytes>>,
    pub(super) target: Target,
    pub(super) opened: Instant,
    pub(super) reused: bool,
}

impl Connection {
    pub(super) fn address(&self) -> IpAddr {
        self.target.address
    }
}

/// Configures TLS 1.2 and 1.3, for HTTP/1.1.
pub(super) fn tls(roots: RootCertStore) -> Result<TlsConnector, rustls::Error> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsConnector::from(Arc::new(config)))
}

/// Returns all addresses of the URL's host.
pub(super) async fn resolve(url: &EndpointUrl) -> io::Result<Vec<IpAddr>> {
    if let Some(address) = url.address() {
        return Ok(vec![address]);
    }
    Ok(lookup_host((url.host(), url.port())).await?.map(|found| found.ip()).collect())
}

/// Connects to the first vetted address that accepts the connection.
pub(super) async fn open(
    connector: &TlsConnector,
    url: &EndpointUrl,
    vetted: &[IpAddr],
    until: Instant,
) -> Result<Connection, ErrorClass> {
    let (stream, address) = reach(vetted, url.port(), until).await?;
    // Requests are small, and each waits for its response.
    stream.set_nodelay(true).map_err(|_| ErrorClass::Connect)?;
    let target = Target::of(url, address);
    if !url.is_https() {
        return shake_hands(stream, target).await;
    }
    let host = url.host().trim_start_matches('[').trim_end_matches(']').to_owned();
    let name = ServerName::try_from(host).map_err(|_| ErrorClass::Tls)?;
    let secured = timeout_at(until, connector.connect(name, stream)).await;
    let secured = secured.map_err(|_| ErrorClass::Timeout)?;
    let secured = secured.map_err(|fault| tls_class(&fault).unwrap_or(ErrorClass::Tls))?;
    shake_hands(secured, target).await
}

/// Returns the class of a TLS error; `None` for any other error.
pub(super) fn tls_class(fault: &(dyn std::error::Error + 'static)) -> Option<ErrorClass> {
    use rustls::{AlertDescription as Alert, CertificateError as Certificate, Error};
    // An `io::Error` shows the error inside it, not itself, as its source.
    let inner = fault.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    let fault = inner.map_or(fault, |inner| inner);
    let Some(error) = fault.downcast_ref::<Error>() else {
        return fault.source().and_then(tls_class);
    };
    Some(match error {
        Error::InvalidCertificate(fault) => match fault {
            Certificate::Expired | Certificate::ExpiredContext { .. } => ErrorClass::TlsExpired,
            Certificate::NotValidYet | Certificate::NotValidYetContext { .. } => {
                ErrorClass::TlsNotYetValid
            }
            Certificate::NotValidForName | Certificate::NotValidForNameContext { .. } => {
                ErrorClass::TlsName
            }
            Certificate::UnknownIssuer | Certificate::BadSignature => ErrorClass::TlsAuthority,
            _ => ErrorClass::Tls,
        },
        Error::AlertReceived(Alert::CertificateRequired) => ErrorClass::TlsClientCertificate,
        Error::AlertReceived(Alert::ProtocolVersion) | Error::PeerIncompatible(_) => {
            ErrorClass::TlsVersion
        }
        Error::AlertReceived(Alert::NoApplicationProtocol)
        | Error::NoApplicationProtocol
        | Error::InvalidMessage(_) => ErrorClass::TlsProtocol,
        _ => ErrorClass::Tls,
    })
}

/// Tries the addresses in order. The remaining time is divided equally among the remaining
/// addresses.
async fn reach(
    vetted: &[IpAddr],
    port: u16,
    until: Instant,
) -> Result<(TcpStream, IpAddr), ErrorClass> {
    let mut class = ErrorClass::Connect;
    for (index, address) in vetted.iter().enumerate() {
        let left = until.saturating_duration_since(Instant::now());
        let share = left / u32::try_from(vetted.len() - index).unwrap_or(1);
        match timeout(share, TcpStream::connect(SocketAddr::new(*address, port))).await {
            Ok(Ok(stream)) => return Ok((stream, *address)),
            Ok(Err(_)) => class = ErrorClass::Connect,
            Err(_) => class = ErrorClass::Timeout,
        }
    }
    Err(class)
}

async fn shake_hands(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    target: Target,
) -> Result<Connection, ErrorClass> {
    let handshake = http1::Builder::new()
        .max_headers(MOST_HEADERS)
        .max_buf_size(LONGEST_HEAD)
        .handshake(TokioIo::new(stream));
    let (sender, connection) = handshake.await.map_err(|_| ErrorClass::Http)?;
    // The task ends when the connection closes, at the latest after [`LIFE`].
    tokio::spawn(timeout(LIFE, connection));
    Ok(Connection { sender, target, opened: Instant::now(), reused: false })
}
