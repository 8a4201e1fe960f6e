//! A proxy between a service and its PostgreSQL. It can become silent as real proxies do:
//! connections stay open, but transfer no bytes.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use authority_store::Address;
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream, UnixStream},
    sync::watch,
};

use super::database::Database;

/// The proxy. Once dropped, it accepts no new connections.
pub(crate) struct Line {
    port: u16,
    database: Arc<Database>,
    rule: Arc<watch::Sender<Rule>>,
    accepting: tokio::task::JoinHandle<()>,
}

/// Which connections are silent.
#[derive(Clone, Copy, Default)]
struct Rule {
    /// The number of cuts so far. Connections that were open at a cut stay silent.
    cuts: u32,
    /// Whether no connection transfers bytes.
    held: bool,
}

impl Line {
    pub(crate) async fn before(database: &Arc<Database>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let rule = Arc::new(watch::Sender::new(Rule::default()));
        let (socket, rules) = (database.socket(), Arc::clone(&rule));
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (socket, rules) = (socket.clone(), rules.subscribe());
                tokio::spawn(async move {
                    let _ = forward(client, &socket, rules).await;
                });
            }
        });
        Self { port, database: Arc::clone(database), rule, accepting }
    }

    /// Returns the address at which the database can be reached through this proxy.
    #[track_caller]
    pub(crate) fn address(&self) -> Address {
        let (user, name) = self.database.names();
        let url = format!("postgres://{user}@127.0.0.1:{}/{name}?sslmode=disable", self.port);
        Address::parse(&url).unwrap()
    }

    /// Makes every open connection silent for good. New connections work, as after a failover of
    /// which the clients are not notified.
    pub(crate) fn cut(&self) {
        self.rule.send_modify(|rule| rule.cuts += 1);
    }

    /// Stops transferring bytes on all connections, including new ones.
    pub(crate) fn hold(&self) {
        self.rule.send_modify(|rule| rule.held = true);
    }

    /// Resumes the transfer, including the bytes that were held back.
    pub(crate) fn release(&self) {
        self.rule.send_modify(|rule| rule.held = false);
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn forward(client: TcpStream, socket: &Path, rules: watch::Receiver<Rule>) -> io::Result<()> {
    let server = UnixStream::connect(PathBuf::from(socket)).await?;
    client.set_nodelay(true)?;
    let (from_client, to_client) = client.into_split();
    let (from_server, to_server) = server.into_split();
    let cuts = rules.borrow().cuts;
    let there = pass(from_client, to_server, rules.clone(), cuts);
    let back = pass(from_server, to_client, rules, cuts);
    // If one direction closes, both end.
    tokio::select! {
        ended = there => ended,
        ended = back => ended,
    }
}

async fn pass(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    mut rules: watch::Receiver<Rule>,
    cuts: u32,
) -> io::Result<()> {
    let mut piece = vec![0; 1 << 16];
    loop {
        let length = from.read(&mut piece).await?;
        let open = rules.wait_for(|rule| rule.cuts == cuts && !rule.held).await.is_ok();
        if length == 0 || !open {
            return Ok(());
        }
        to.write_all(piece.get(..length).unwrap_or_default()).await?;
    }
}
