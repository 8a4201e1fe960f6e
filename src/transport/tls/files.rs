//! Reads the PEM files of TLS, and builds rustls's configurations from them.

use std::{
    fmt::Display,
    fs::File,
    io::Read,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use authority_config as config;
use rustls::{
    RootCertStore, ServerConfig,
    crypto::aws_lc_rs,
    server::{NoServerSessionStorage, WebPkiClientVerifier, danger::ClientCertVerifier},
    version::{TLS12, TLS13},
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, UnixTime, pem::PemObject};

use super::expiry::not_after;

/// A file of TLS that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{setting}`: `{}` cannot be used: {fault}", .path.display())]
pub struct TlsError {
    setting: &'static str,
    path: PathBuf,
    fault: String,
}

/// The protocols that clients can select in the handshake (RFC 7301).
pub(super) const HTTP2: &[u8] = b"h2";
const HTTP1: &[u8] = b"http/1.1";

/// The paths of the files, and the settings that apply to them.
pub(super) struct Files {
    certificate: PathBuf,
    key: PathBuf,
    client_ca: Option<PathBuf>,
    minimum_version: config::TlsVersion,
}

/// The contents of the files, or the reason why they can't be read.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Contents {
    /// The service's own certificate and key.
    own: Result<Own, TlsError>,
    /// `None` without a file in the settings.
    client_ca: Result<Option<Vec<u8>>, TlsError>,
}

#[derive(Clone, PartialEq, Eq)]
struct Own {
    certificate: Vec<u8>,
    key: Vec<u8>,
}

/// The certificate for clients, and the requirements on their certificates.
#[derive(Debug)]
pub(super) struct Material {
    /// For addresses on which every client needs a certificate.
    pub(super) required: Arc<ServerConfig>,
    /// For the others.
    pub(super) optional: Arc<ServerConfig>,
    presented: Arc<Presented>,
    authorities: Option<Authorities>,
}

/// The service's own certificate and key.
#[derive(Debug)]
struct Presented {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    expires: Option<i64>,
}

/// The authorities of clients' certificates.
#[derive(Debug)]
struct Authorities {
    /// The contents of the file.
    pem: Vec<u8>,
    required: Arc<dyn ClientCertVerifier>,
    optional: Arc<dyn ClientCertVerifier>,
}

impl Files {
    pub(super) fn of(tls: &config::Tls) -> Option<Self> {
        Some(Self {
            certificate: tls.certificate_file.clone()?,
            // `Config::validate` requires it. Without it, reading an empty path fails.
            key: tls.key_file.clone().unwrap_or_default(),
            client_ca: tls.client_ca_file.clone(),
            minimum_version: tls.minimum_version,
        })
    }

    pub(super) fn read(&self) -> Contents {
        Contents { own: self.read_own(), client_ca: self.read_client_ca() }
    }

    fn read_own(&self) -> Result<Own, TlsError> {
        let key = opened(&self.key).map_err(|fault| self.unfit_key(&fault))?;
        let mode = key.metadata().map_err(|fault| self.unfit_key(&fault))?.mode();
        if mode & 0o037 != 0 {
            let fault = "users other than its owner and group can read it, or its group can write it; run chmod 640";
            return Err(self.unfit_key(&fault));
        }
        let certificate = opened(&self.certificate).and_then(whole);
        Ok(Own {
            key: whole(key).map_err(|fault| self.unfit_key(&fault))?,
            certificate: certificate.map_err(|fault| self.unfit_certificate(&fault))?,
        })
    }

    fn read_client_ca(&self) -> Result<Option<Vec<u8>>, TlsError> {
        let read = self.client_ca.as_ref().map(|path| opened(path).and_then(whole));
        read.transpose().map_err(|fault| self.unfit_ca(&fault))
    }

    /// Builds the configurations. A new certificate always gets new ones: sessions of the earlier
    /// certificate, and of the earlier authorities of clients, cannot be resumed with them.
    pub(super) fn build(&self, contents: &Contents) -> Result<Material, TlsError> {
        let authorities = self.authorities(contents)?;
        self.material(Arc::new(self.presented(contents)?), authorities)
    }

    /// Builds configurations with changed authorities of clients, and with the certificate in use,
    /// even if it has expired. Returns `None` if the authorities did not change or can't be used.
    pub(super) fn with_authorities(
        &self,
        used: &Material,
        contents: &Contents,
    ) -> Option<Material> {
        let authorities = self.authorities(contents).ok()?;
        let pem = |known: &Authorities| known.pem.clone();
        if authorities.as_ref().map(pem) == used.authorities.as_ref().map(pem) {
            return None;
        }
        self.material(Arc::clone(&used.presented), authorities).ok()
    }

    fn presented(&self, contents: &Contents) -> Result<Presented, TlsError> {
        let own = contents.own.as_ref().map_err(Clone::clone)?;
        let chain = certificates(&own.certificate);
        let chain = chain.map_err(|fault| self.unfit_certificate(&fault))?;
        let expires = chain.first().and_then(|certificate| not_after(certificate));
        let now = i64::try_from(UnixTime::now().as_secs()).unwrap_or(i64::MAX);
        if expires.is_some_and(|expires| expires <= now) {
            return Err(self.unfit_certificate(&"the certificate has expired; renew it"));
        }
        let key = PrivateKeyDer::from_pem_slice(&own.key);
        let key = key.map_err(|fault| self.unfit_key(&fault))?;
        Ok(Presented { chain, key, expires })
    }

    fn authorities(&self, contents: &Contents) -> Result<Option<Authorities>, TlsError> {
        let Some(pem) = contents.client_ca.as_ref().map_err(Clone::clone)? else {
            return Ok(None);
        };
        let roots = Arc::new(roots(pem).map_err(|fault| self.unfit_ca(&fault))?);
        let verifier = || {
            let provider = Arc::new(aws_lc_rs::default_provider());
            WebPkiClientVerifier::builder_with_provider(Arc::clone(&roots), provider)
        };
        let required = verifier().build().map_err(|fault| self.unfit_ca(&fault))?;
        let optional = verifier().allow_unauthenticated().build();
        let optional = optional.map_err(|fault| self.unfit_ca(&fault))?;
        Ok(Some(Authorities { pem: pem.clone(), required, optional }))
    }

    fn material(
        &self,
        presented: Arc<Presented>,
        authorities: Option<Authorities>,
    ) -> Result<Material, TlsError> {
        let (required, optional) =
            if let Some(Authorities { required, optional, .. }) = &authorities {
                (
                    Arc::new(self.configuration(&presented, Some(Arc::clone(required)))?),
                    Arc::new(self.configuration(&presented, Some(Arc::clone(optional)))?),
                )
            } else {
                let any = Arc::new(self.configuration(&presented, None)?);
                (Arc::clone(&any), any)
            };
        Ok(Material { required, optional, presented, authorities })
    }

    fn configuration(
        &self,
        presented: &Presented,
        clients: Option<Arc<dyn ClientCertVerifier>>,
    ) -> Result<ServerConfig, TlsError> {
        let versions = match self.minimum_version {
            config::TlsVersion::Tls12 => vec![&TLS13, &TLS12],
            config::TlsVersion::Tls13 => vec![&TLS13],
        };
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&versions)
            .map_err(|fault| self.unfit_certificate(&fault))?;
        let checks_clients = clients.is_some();
        let builder = match clients {
            Some(verifier) => builder.with_client_cert_verifier(verifier),
            None => builder.with_no_client_auth(),
        };
        let mut made = builder
            .with_single_cert(presented.chain.clone(), presented.key.clone_key())
            .map_err(|fault| self.unfit_certificate(&fault))?;
        made.alpn_protocols = vec![HTTP2.to_vec(), HTTP1.to_vec()];
        if checks_clients {
            // A resumed session would skip the check of the client's certificate, which may have
            // expired since.
            made.session_storage = Arc::new(NoServerSessionStorage {});
        }
        Ok(made)
    }

    fn unfit_certificate(&self, fault: &dyn Display) -> TlsError {
        unfit("tls.certificate_file", &self.certificate, fault)
    }

    fn unfit_key(&self, fault: &dyn Display) -> TlsError {
        unfit("tls.key_file", &self.key, fault)
    }

    fn unfit_ca(&self, fault: &dyn Display) -> TlsError {
        unfit("tls.client_ca_file", self.client_ca.as_deref().unwrap_or(Path::new("")), fault)
    }
}

impl Material {
    /// Whether the certificate of a client is valid now.
    pub(super) fn trusts(&self, chain: &[CertificateDer<'_>]) -> bool {
        let Some((authorities, (own, others))) = self.authorities.as_ref().zip(chain.split_first())
        else {
            return false;
        };
        authorities.required.verify_client_cert(own, others, UnixTime::now()).is_ok()
    }

    /// The end of the certificate's validity in seconds since 1970, if it can be read.
    pub(super) fn expires(&self) -> Option<i64> {
        self.presented.expires
    }
}

/// The largest file that is read, in bytes.
const LARGEST: u64 = 1 << 20;

fn opened(path: &Path) -> std::io::Result<File> {
    File::open(path)
}

fn whole(file: File) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(LARGEST).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn unfit(setting: &'static str, path: &Path, fault: &dyn Display) -> TlsError {
    TlsError { setting, path: path.to_owned(), fault: fault.to_string() }
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, String> {
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match chain {
        Ok(chain) if chain.is_empty() => Err("it contains no certificate".to_owned()),
        Ok(chain) => Ok(chain),
        Err(fault) => Err(fault.to_string()),
    }
}

fn roots(pem: &[u8]) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for authority in certificates(pem)? {
        roots.add(authority).map_err(|fault| fault.to_string())?;
    }
    Ok(roots)
}
