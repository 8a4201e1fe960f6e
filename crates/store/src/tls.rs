//! TLS to Postgres with rustls, and the trust that each `sslmode` requires.

use std::{fmt::Display, fs, os::unix::fs::MetadataExt, path::Path, sync::Arc};

use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    },
    crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature},
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject};

use super::{error::Error, tls_stream::Connector};

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Trust {
    /// Protects only against passive listeners (`prefer`, `require`).
    Anyone,
    /// Requires a certificate under the roots, with any name (`verify-ca`).
    Chain,
    /// Also requires the host's name (`verify-full`).
    ChainAndName,
}

/// Creates a TLS connector.
///
/// `roots` is a PEM file of certificates; without it, the public roots are used. `client` is the
/// PEM files of the client's certificate and its key.
pub(super) fn connector(
    trust: Trust,
    roots: Option<&Path>,
    client: Option<(&Path, &Path)>,
) -> Result<Connector, Error> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(unusable)?;
    let chain = if trust == Trust::Anyone {
        None
    } else {
        let roots = Arc::new(read_roots(roots)?);
        let chain = WebPkiServerVerifier::builder_with_provider(roots, Arc::clone(&provider));
        Some(chain.build().map_err(unusable)?)
    };
    let builder = match chain {
        Some(chain) if trust == Trust::ChainAndName => builder.with_webpki_verifier(chain),
        chain => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Nameless { chain, provider })),
    };
    let config = match client {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => builder
            .with_client_auth_cert(read_chain(certificate)?, read_key(key)?)
            .map_err(|fault| unread("sslcert", certificate, &fault))?,
    };
    Ok(Connector(Arc::new(config).into()))
}

fn unread(option: &str, path: &Path, fault: &dyn Display) -> Error {
    Error::Address(format!("{option} `{}` cannot be used: {fault}", path.display()))
}

fn read_chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let chain =
        CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let chain = chain.map_err(|fault| unread("sslcert", path, &fault))?;
    if chain.is_empty() {
        Err(unread("sslcert", path, &"it contains no certificate"))
    } else {
        Ok(chain)
    }
}

/// Reads a key. As in libpq, a key that other users may read is refused.
fn read_key(path: &Path) -> Result<PrivateKeyDer<'static>, Error> {
    let mode = fs::metadata(path).map_err(|fault| unread("sslkey", path, &fault))?.mode();
    if mode & 0o037 != 0 {
        let fault = "users other than its owner and group can read it, or its group can write it; run chmod 600";
        return Err(unread("sslkey", path, &fault));
    }
    PrivateKeyDer::from_pem_file(path).map_err(|fault| unread("sslkey", path, &fault))
}

fn read_roots(path: Option<&Path>) -> Result<RootCertStore, Error> {
    let Some(path) = path else {
        return Ok(webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect());
    };
    let unread = |fault: &dyn Display| unread("sslrootcert", path, fault);
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|fault| unread(&fault))? {
        let certificate = certificate.map_err(|fault| unread(&fault))?;
        roots.add(certificate).map_err(|fault| unread(&fault))?;
    }
    if roots.is_empty() {
        return Err(unread(&"it contains no certificate"));
    }
    Ok(roots)
}

fn unusable(fault: impl Display) -> Error {
    Error::Address(format!("TLS to the database cannot be set up: {fault}"))
}

/// A verifier that ignores the host's name. Without a chain, it also ignores the signer.
#[derive(Debug)]
struct Nameless {
    chain: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Nameless {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let Some(chain) = &self.chain else { return Ok(ServerCertVerified::assertion()) };
        // rustls checks the name last.
        match chain.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
