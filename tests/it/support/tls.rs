//! Certificates, the settings that refer to them, and clients of TLS.

use std::{fs, net::SocketAddr, os::unix::fs::PermissionsExt, path::PathBuf, sync::Arc};

use agent_authority::transport::Tls;
use authority_config::Config;
use authority_process::worker::Worker;
use hyper_util::rt::TokioIo;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    SanType,
};
use rustls::{
    ClientConfig, RootCertStore, SupportedProtocolVersion, crypto::aws_lc_rs, version::TLS13,
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject};
use tempfile::TempDir;
use tokio::net::{TcpStream, ToSocketAddrs};
use tokio_rustls::{TlsConnector, client::TlsStream};
use tonic::transport::{Channel, Endpoint};
use tower::service_fn;

/// A certificate authority.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub(crate) pem: String,
}

/// A certificate and its private key, in PEM.
#[derive(Clone)]
pub(crate) struct Issued {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Authority {
    #[track_caller]
    pub(crate) fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        // OpenSSL takes a certificate with its issuer's name for a self-signed one.
        params.distinguished_name.push(DnType::CommonName, "authority");
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    /// Issues a certificate of a server on this machine.
    #[track_caller]
    pub(crate) fn server(&self) -> Issued {
        let names = ["localhost", "127.0.0.1"].map(str::to_owned).to_vec();
        self.issue(CertificateParams::new(names).unwrap(), ExtendedKeyUsagePurpose::ServerAuth)
    }

    /// Issues a certificate of a client with this name: a DNS name, or a URI with a colon.
    #[track_caller]
    pub(crate) fn client(&self, name: &str) -> Issued {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.subject_alt_names = vec![if name.contains(':') {
            SanType::URI(name.try_into().unwrap())
        } else {
            SanType::DnsName(name.try_into().unwrap())
        }];
        self.issue(params, ExtendedKeyUsagePurpose::ClientAuth)
    }

    #[track_caller]
    fn issue(&self, mut params: CertificateParams, usage: ExtendedKeyUsagePurpose) -> Issued {
        params.extended_key_usages = vec![usage];
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap().pem();
        Issued { certificate, key: key.serialize_pem() }
    }
}

/// The files of a service with TLS, and its authorities.
pub(crate) struct TlsFiles {
    folder: TempDir,
    pub(crate) servers: Authority,
    pub(crate) clients: Authority,
    pub(crate) config: Config,
}

impl TlsFiles {
    /// Writes the files and refers to them in settings. The service does not check clients.
    #[track_caller]
    pub(crate) fn new() -> Self {
        let (servers, clients) = (Authority::new(), Authority::new());
        let folder = tempfile::tempdir().unwrap();
        let mut config = Config::default();
        let path = |name: &str| Some(folder.path().join(name));
        config.tls.certificate_file = path("tls.crt");
        config.tls.key_file = path("tls.key");
        let files = Self { folder, servers, clients, config };
        files.write_server(&files.servers.server());
        files.write("clients.pem", &files.clients.pem);
        files.write("servers.pem", &files.servers.pem);
        files
    }

    /// The same, for a service that checks clients.
    #[track_caller]
    pub(crate) fn with_clients(change: impl FnOnce(&mut authority_config::Tls)) -> Self {
        let mut files = Self::new();
        files.config.tls.client_ca_file = Some(files.path("clients.pem"));
        change(&mut files.config.tls);
        files.config.validate().unwrap();
        files
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    #[track_caller]
    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    /// Writes the certificate and key of the service.
    #[track_caller]
    pub(crate) fn write_server(&self, server: &Issued) {
        self.write("tls.crt", &server.certificate);
        self.write("tls.key", &server.key);
        fs::set_permissions(self.path("tls.key"), fs::Permissions::from_mode(0o600)).unwrap();
    }

    #[track_caller]
    pub(crate) fn load(&self) -> (Tls, Worker) {
        Tls::load(&self.config).unwrap().unwrap()
    }

    /// Returns the settings as variables of the environment.
    pub(crate) fn environment(&self) -> Vec<(&'static str, String)> {
        let shown = |path: &Option<PathBuf>| path.as_ref().unwrap().display().to_string();
        let tls = &self.config.tls;
        let mut variables = vec![
            ("AGENT_AUTHORITY__TLS__CERTIFICATE_FILE", shown(&tls.certificate_file)),
            ("AGENT_AUTHORITY__TLS__KEY_FILE", shown(&tls.key_file)),
        ];
        if tls.client_ca_file.is_some() {
            let open =
                tls.without_certificate.iter().map(|open| format!("{open:?}").to_lowercase());
            variables.extend([
                ("AGENT_AUTHORITY__TLS__CLIENT_CA_FILE", shown(&tls.client_ca_file)),
                ("AGENT_AUTHORITY__TLS__ADMIN_CLIENTS", tls.admin_clients.join(",")),
                ("AGENT_AUTHORITY__TLS__WITHOUT_CERTIFICATE", open.collect::<Vec<_>>().join(",")),
            ]);
        }
        variables
    }

    /// Returns a client that trusts the authority of servers, with or without a certificate.
    #[track_caller]
    pub(crate) fn http(&self, client: Option<&Issued>) -> reqwest::Client {
        let root = reqwest::Certificate::from_pem(self.servers.pem.as_bytes()).unwrap();
        let http = reqwest::Client::builder().tls_certs_only([root]).no_proxy();
        let http = match client {
            Some(issued) => {
                let pem = format!("{}{}", issued.certificate, issued.key);
                http.identity(reqwest::Identity::from_pem(pem.as_bytes()).unwrap())
            }
            None => http,
        };
        http.build().unwrap()
    }

    #[track_caller]
    fn connector(
        &self,
        versions: &[&'static SupportedProtocolVersion],
        protocol: &[u8],
        client: Option<&Issued>,
    ) -> TlsConnector {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.servers.pem.as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .unwrap()
            .with_root_certificates(roots);
        let mut config = match client {
            Some(Issued { certificate, key }) => {
                let chain = vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()];
                let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
                builder.with_client_auth_cert(chain, key).unwrap()
            }
            None => builder.with_no_client_auth(),
        };
        config.alpn_protocols = vec![protocol.to_vec()];
        Arc::new(config).into()
    }

    /// Connects with these versions of TLS and this protocol.
    pub(crate) async fn connect(
        &self,
        to: impl ToSocketAddrs,
        versions: &[&'static SupportedProtocolVersion],
        protocol: &[u8],
        client: Option<&Issued>,
    ) -> std::io::Result<TlsStream<TcpStream>> {
        let connector = self.connector(versions, protocol, client);
        connector.connect(host(), TcpStream::connect(to).await?).await
    }

    /// Opens a gRPC channel.
    pub(crate) async fn channel(&self, to: SocketAddr, client: Option<&Issued>) -> Channel {
        let connector = self.connector(&[&TLS13], b"h2", client);
        // Without tonic's own TLS, which this build does not have.
        let endpoint = Endpoint::from_static("http://localhost");
        let dial = service_fn(move |_: http::Uri| {
            let connector = connector.clone();
            async move {
                let stream = connector.connect(host(), TcpStream::connect(to).await?).await?;
                Ok::<_, std::io::Error>(TokioIo::new(stream))
            }
        });
        endpoint.connect_with_connector(dial).await.unwrap()
    }

    /// Connects with TLS 1.3 and HTTP/1.1.
    pub(crate) async fn connect_http1(
        &self,
        to: impl ToSocketAddrs,
        client: Option<&Issued>,
    ) -> std::io::Result<TlsStream<TcpStream>> {
        self.connect(to, &[&TLS13], b"http/1.1", client).await
    }
}

fn host() -> ServerName<'static> {
    ServerName::try_from("localhost").unwrap()
}

/// Returns the certificate that a server presented, in DER.
pub(crate) fn presented(stream: &TlsStream<TcpStream>) -> Vec<u8> {
    stream.get_ref().1.peer_certificates().unwrap()[0].to_vec()
}
