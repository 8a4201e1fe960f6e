//! An SMTP server (RFC 5321) with STARTTLS (RFC 3207) or TLS from the beginning, and AUTH PLAIN (RFC
//! 4954). It accepts mail for everybody, and keeps it.

use std::{path::PathBuf, sync::Arc};

use authority_config::{SmtpConfig, SmtpTls};
use base64::{Engine, engine::general_purpose::STANDARD};
use parking_lot::Mutex;
use rcgen::{CertificateParams, KeyPair};
use rustls::ServerConfig;
use rustls_pki_types::PrivateKeyDer;
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader},
    net::{TcpListener, TcpStream},
};
use tokio_rustls::TlsAcceptor;

const USER: &str = "authority";
const PASSWORD: &str = "correct horse";

/// A message as it arrived.
#[derive(Clone, Debug, Default)]
pub(crate) struct Mail {
    pub(crate) from: String,
    pub(crate) to: Vec<String>,
    /// Headers and body, with the body decoded from base64.
    pub(crate) headers: Vec<String>,
    pub(crate) body: String,
    /// Whether the connection was encrypted, and the user signed in.
    pub(crate) is_secure: bool,
    pub(crate) user: String,
}

impl Mail {
    pub(crate) fn header(&self, name: &str) -> &str {
        let start = format!("{name}: ");
        self.headers.iter().find_map(|line| line.strip_prefix(&start)).unwrap_or_default()
    }
}

/// The encryption that the server offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    StartTls,
    Tls,
    /// The server offers no STARTTLS.
    Plain,
}

#[derive(Clone)]
pub(crate) struct SmtpServer {
    port: u16,
    mode: Mode,
    received: Arc<Mutex<Vec<Mail>>>,
    /// The reply to the end of the next messages, instead of 250.
    refusal: Arc<Mutex<Option<&'static str>>>,
    folder: Arc<TempDir>,
}

impl SmtpServer {
    pub(crate) async fn start(mode: Mode) -> Self {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        let cert = params.self_signed(&key).unwrap();
        let folder = TempDir::new().unwrap();
        std::fs::write(folder.path().join("ca.pem"), cert.pem()).unwrap();
        std::fs::write(folder.path().join("password"), format!("{PASSWORD}\n")).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let private = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![cert.der().clone()], private)
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self {
            port: listener.local_addr().unwrap().port(),
            mode,
            received: Arc::default(),
            refusal: Arc::default(),
            folder: Arc::new(folder),
        };
        let (serving, acceptor) = (server.clone(), TlsAcceptor::from(Arc::new(config)));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (serving, acceptor) = (serving.clone(), acceptor.clone());
                tokio::spawn(async move { serving.serve(stream, acceptor).await });
            }
        });
        server
    }

    /// The settings with which the service sends through this server.
    pub(crate) fn config(&self) -> SmtpConfig {
        let file = |name: &str| -> PathBuf { self.folder.path().join(name) };
        SmtpConfig {
            host: Some("localhost".to_owned()),
            port: Some(self.port),
            tls: if self.mode == Mode::Tls { SmtpTls::Tls } else { SmtpTls::Starttls },
            user: Some(USER.to_owned()),
            password_file: Some(file("password")),
            from: Some("authority@example.org".to_owned()),
            ca_file: Some(file("ca.pem")),
        }
    }

    pub(crate) fn received(&self) -> Vec<Mail> {
        self.received.lock().clone()
    }

    /// Refuses messages with this reply, or accepts them again.
    pub(crate) fn refuse(&self, reply: Option<&'static str>) {
        *self.refusal.lock() = reply;
    }

    async fn serve(self, stream: TcpStream, acceptor: TlsAcceptor) {
        if self.mode == Mode::Tls {
            let Ok(secured) = acceptor.accept(stream).await else { return };
            self.talk(secured, true, true).await;
            return;
        }
        let Some(stream) = self.talk(stream, false, true).await else { return };
        let Ok(secured) = acceptor.accept(stream).await else { return };
        self.talk(secured, true, false).await;
    }

    /// Answers commands. Returns the stream if the client starts TLS.
    async fn talk<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: S,
        is_secure: bool,
        greets: bool,
    ) -> Option<S> {
        let mut stream = BufReader::new(stream);
        if greets {
            say(&mut stream, "220 localhost ESMTP").await?;
        }
        let (mut mail, mut user) = (Mail::default(), String::new());
        loop {
            let line = line(&mut stream).await?;
            let (verb, rest) = line.split_once(' ').unwrap_or((&line, ""));
            let reply = match verb.to_ascii_uppercase().as_str() {
                "EHLO" if self.mode == Mode::StartTls && !is_secure => {
                    "250-localhost\r\n250 STARTTLS".to_owned()
                }
                "EHLO" => "250-localhost\r\n250 AUTH PLAIN".to_owned(),
                "STARTTLS" if self.mode == Mode::StartTls => {
                    say(&mut stream, "220 ready").await?;
                    return Some(stream.into_inner());
                }
                "AUTH" => match rest.strip_prefix("PLAIN ").map(signed_in) {
                    Some(Some(name)) => {
                        user = name;
                        "235 signed in".to_owned()
                    }
                    _ => "535 wrong credentials".to_owned(),
                },
                "MAIL" | "RCPT" if user.is_empty() => "530 sign in first".to_owned(),
                "MAIL" => {
                    let (user, from) = (user.clone(), address(rest));
                    mail = Mail { from, is_secure, user, ..Mail::default() };
                    "250 ok".to_owned()
                }
                "RCPT" => {
                    mail.to.push(address(rest));
                    "250 ok".to_owned()
                }
                "DATA" => {
                    say(&mut stream, "354 go on").await?;
                    self.read(&mut stream, &mut mail).await?
                }
                "QUIT" => {
                    say(&mut stream, "221 bye").await?;
                    return None;
                }
                "RSET" | "NOOP" => "250 ok".to_owned(),
                _ => "502 unknown".to_owned(),
            };
            say(&mut stream, &reply).await?;
        }
    }

    /// Reads a message. Returns the reply to it.
    async fn read<S: AsyncRead + Unpin>(
        &self,
        stream: &mut BufReader<S>,
        mail: &mut Mail,
    ) -> Option<String> {
        let (mut body, mut is_body) = (String::new(), false);
        loop {
            let line = line(stream).await?;
            match line.as_str() {
                "." => break,
                "" if !is_body => is_body = true,
                text if is_body => body.push_str(text),
                text => mail.headers.push(text.to_owned()),
            }
        }
        mail.body = String::from_utf8(STANDARD.decode(body).unwrap()).unwrap();
        if let Some(refusal) = *self.refusal.lock() {
            return Some(refusal.to_owned());
        }
        self.received.lock().push(mail.clone());
        Some("250 accepted".to_owned())
    }
}

/// The user of AUTH PLAIN, if the password is right.
fn signed_in(encoded: &str) -> Option<String> {
    let text = String::from_utf8(STANDARD.decode(encoded).ok()?).ok()?;
    let mut parts = text.split('\0').skip(1);
    let (user, password) = (parts.next()?, parts.next()?);
    (user == USER && password == PASSWORD).then(|| user.to_owned())
}

/// The address of `FROM:<ann@example.org> …`.
fn address(text: &str) -> String {
    let inner = text.split_once('<').and_then(|(_, rest)| rest.split_once('>'));
    inner.map_or_else(String::new, |(address, _)| address.to_owned())
}

async fn line<S: AsyncRead + Unpin>(stream: &mut BufReader<S>) -> Option<String> {
    let mut line = String::new();
    let read = stream.read_line(&mut line).await.ok()?;
    (read > 0).then(|| line.trim_end_matches(['\r', '\n']).to_owned())
}

async fn say<S: AsyncWrite + Unpin>(stream: &mut S, reply: &str) -> Option<()> {
    stream.write_all(format!("{reply}\r\n").as_bytes()).await.ok()?;
    stream.flush().await.ok()
}
