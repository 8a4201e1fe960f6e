//! Each fault of a receiver's TLS has a class of its own.

use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use rustls::server::WebPkiClientVerifier;
use rustls_pki_types::CertificateDer;

use super::*;

const NAME: &str = "receiver.invalid";

/// A receiver's certificate, which is its own authority.
struct Certificate {
    cert: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
    roots: RootCertStore,
}

fn certificate(change: impl FnOnce(&mut CertificateParams)) -> Certificate {
    let mut params = CertificateParams::new([NAME.to_owned()]).unwrap();
    change(&mut params);
    let key = KeyPair::generate().unwrap();
    let cert = params.self_signed(&key).unwrap().der().clone();
    let mut roots = RootCertStore::empty();
    roots.add(cert.clone()).unwrap();
    Certificate { cert, key: PrivateKeyDer::try_from(key.serialize_der()).unwrap(), roots }
}

/// Serves TLS 1.3 with this certificate. Returns the port.
async fn serve(
    Certificate { cert, key, roots }: Certificate,
    asks_for_certificate: bool,
    protocol: &[u8],
) -> u16 {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap();
    let builder = if asks_for_certificate {
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        builder.with_client_cert_verifier(verifier.build().unwrap())
    } else {
        builder.with_no_client_auth()
    };
    let mut config = builder.with_single_cert(vec![cert], key).unwrap();
    config.alpn_protocols = vec![protocol.to_vec()];
    let (acceptor, listener) =
        (TlsAcceptor::from(Arc::new(config)), TcpListener::bind("127.0.0.1:0").await.unwrap());
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                match acceptor.accept(stream).into_fallible().await {
                    Ok(mut stream) => {
                        let _ = stream.read(&mut [0; 4096]).await;
                        let _ = stream.write_all(answer(204, "", "").as_bytes()).await;
                    }
                    // The client reads the alert before the connection ends.
                    Err((_, mut stream)) => {
                        let _ = stream.read_to_end(&mut Vec::new()).await;
                    }
                }
            });
        }
    });
    port
}

/// Sends a request to the receiver at this port. Returns the status, or the class of the failure.
async fn attempt(port: u16, roots: RootCertStore) -> Result<u16, ErrorClass> {
    let client = client(rules().addresses, roots);
    let url = url(&format!("https://{NAME}:{port}/"));
    let connection = among(&client, &url, &[LOOPBACK]).await?;
    let sent = client.send(connection, post(&url), soon()).await;
    sent.map(|received| received.status).map_err(|error| error.class)
}

#[tokio::test]
async fn each_fault_of_a_receivers_tls_is_named() {
    let sound = |_: &mut CertificateParams| {};
    let expired = |params: &mut CertificateParams| {
        params.not_before = date_time_ymd(2019, 1, 1);
        params.not_after = date_time_ymd(2020, 1, 1);
    };
    let early = |params: &mut CertificateParams| params.not_before = date_time_ymd(4000, 1, 1);
    let http1 = &b"http/1.1"[..];
    for (name, certificate, asks_for_certificate, protocol, expected) in [
        ("sound", certificate(sound), false, http1, Ok(204)),
        ("expired", certificate(expired), false, http1, Err(ErrorClass::TlsExpired)),
        ("not valid yet", certificate(early), false, http1, Err(ErrorClass::TlsNotYetValid)),
        ("HTTP/2 alone", certificate(sound), false, &b"h2"[..], Err(ErrorClass::TlsProtocol)),
        (
            "client certificate",
            certificate(sound),
            true,
            http1,
            Err(ErrorClass::TlsClientCertificate),
        ),
    ] {
        let roots = certificate.roots.clone();
        let port = serve(certificate, asks_for_certificate, protocol).await;
        assert_eq!(attempt(port, roots).await, expected, "{name}");
    }
}

/// A receiver with TLS 1.1 alone answers every greeting with this alert (RFC 5246, 7.2.2).
#[tokio::test]
async fn a_receiver_with_an_old_version_is_named() {
    const PROTOCOL_VERSION: [u8; 7] = [21, 3, 2, 0, 2, 2, 70];
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(&PROTOCOL_VERSION).await;
        }
    });
    let refused = attempt(port, RootCertStore::empty()).await;
    assert_eq!(refused, Err(ErrorClass::TlsVersion));
}
