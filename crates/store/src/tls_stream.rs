//! Opens TLS streams to Postgres, and binds SCRAM to them.

use std::{convert::Infallible, io};

use authority_crypto::{sha256, sha384, sha512};
use futures_util::{FutureExt, TryFutureExt, future::BoxFuture};
use rustls_pki_types::{ServerName, alg_id};
use tokio_postgres::{
    Socket,
    tls::{ChannelBinding, MakeTlsConnect, TlsConnect},
};
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::sqlstate::Coded;

/// Opens TLS streams with a configuration.
#[derive(Clone)]
pub(super) struct Connector(pub(super) TlsConnector);

/// Opens a TLS stream to a host.
pub(super) struct ToHost {
    connector: TlsConnector,
    host: String,
}

impl MakeTlsConnect<Socket> for Connector {
    type Stream = Coded<TlsStream<Socket>>;
    type TlsConnect = ToHost;
    type Error = Infallible;

    fn make_tls_connect(&mut self, host: &str) -> Result<ToHost, Infallible> {
        Ok(ToHost { connector: self.0.clone(), host: host.to_owned() })
    }
}

impl TlsConnect<Socket> for ToHost {
    type Stream = Coded<TlsStream<Socket>>;
    type Error = io::Error;
    type Future = BoxFuture<'static, io::Result<Self::Stream>>;

    fn connect(self, stream: Socket) -> Self::Future {
        let Self { connector, host } = self;
        async move {
            let host = ServerName::try_from(host)
                .map_err(|fault| io::Error::new(io::ErrorKind::InvalidInput, fault))?;
            connector.connect(host, stream).map_ok(|stream| Coded::bound(stream, binding)).await
        }
        .boxed()
    }
}

/// The digest of the server's certificate (`tls-server-end-point` of RFC 5929, 4.1). With it, a
/// login by SCRAM fails if another server than Postgres terminates the TLS connection.
fn binding(stream: &TlsStream<Socket>) -> ChannelBinding {
    let certificate = stream.get_ref().1.peer_certificates().and_then(<[_]>::first);
    certificate
        .and_then(|certificate| digest(certificate))
        .map_or_else(ChannelBinding::none, ChannelBinding::tls_server_end_point)
}

/// `sha1WithRSAEncryption` (RFC 8017, C), with its empty parameters.
const RSA_PKCS1_SHA1: &[u8] =
    &[0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x05, 0x05, 0x00];

/// Returns the digest of a certificate, computed with the hash function of its signature; `None` if
/// the signature has no such function, for example with Ed25519.
fn digest(certificate: &[u8]) -> Option<Vec<u8>> {
    // A certificate consists of the signed part, the algorithm and the signature (RFC 5280, 4.1).
    let (parts, _) = element(certificate)?;
    let (_, algorithm) = element(parts)?;
    let (algorithm, _) = element(algorithm)?;
    let is = |known: alg_id::AlgorithmIdentifier| algorithm == known.as_ref();
    // SHA-1 is replaced by SHA-256.
    if algorithm == RSA_PKCS1_SHA1 || is(alg_id::RSA_PKCS1_SHA256) || is(alg_id::ECDSA_SHA256) {
        Some(sha256(certificate).to_vec())
    } else if is(alg_id::RSA_PKCS1_SHA384) || is(alg_id::ECDSA_SHA384) {
        Some(sha384(certificate).to_vec())
    } else if is(alg_id::RSA_PKCS1_SHA512) || is(alg_id::ECDSA_SHA512) {
        Some(sha512(certificate).to_vec())
    } else {
        None
    }
}

/// Splits DER into the content of its first element and the bytes behind the element.
fn element(der: &[u8]) -> Option<(&[u8], &[u8])> {
    let ([_, length], rest) = der.split_first_chunk()?;
    if *length < 0x80 {
        return rest.split_at_checked(usize::from(*length));
    }
    // If the content has 128 bytes or more, this byte gives the number of length bytes that follow.
    let (length, rest) = rest.split_at_checked(usize::from(length & 0x7f))?;
    let joined = |joined: usize, byte: &u8| joined.checked_mul(256)?.checked_add((*byte).into());
    rest.split_at_checked(length.iter().try_fold(0, joined)?)
}

#[cfg(test)]
mod tests {
    use rcgen::{
        CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ED25519,
        SignatureAlgorithm,
    };

    use super::*;

    fn certificate(algorithm: &'static SignatureAlgorithm) -> Vec<u8> {
        let key = KeyPair::generate_for(algorithm).unwrap();
        let params = CertificateParams::new(vec!["db.test".to_owned()]).unwrap();
        params.self_signed(&key).unwrap().der().to_vec()
    }

    #[test]
    fn the_signature_selects_the_digest() {
        let short = certificate(&PKCS_ECDSA_P256_SHA256);
        assert_eq!(digest(&short).unwrap(), sha256(&short));
        let long = certificate(&PKCS_ECDSA_P384_SHA384);
        assert_eq!(digest(&long).unwrap(), sha384(&long));
        assert_eq!(digest(&certificate(&PKCS_ED25519)), None);
    }

    #[test]
    fn a_cut_certificate_has_no_digest() {
        let whole = certificate(&PKCS_ECDSA_P256_SHA256);
        for length in 0..whole.len() {
            assert_eq!(digest(&whole[..length]), None, "{length}");
        }
        for broken in [&[0x30, 0xff][..], &[0x30, 0x89, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]] {
            assert_eq!(digest(broken), None);
        }
    }
}
