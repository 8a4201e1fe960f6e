//! Opens connections with and without TLS. Their errors include the SQLSTATE (`sqlstate.rs`).
//!
//! tokio-postgres allows wrapping a connection's stream in two places: in the result of the TLS
//! connector, and in a stream passed in by the caller. The first is used for TCP, with and without
//! TLS; the second for Unix sockets.

use std::{
    convert::Infallible,
    future::{Ready, ready},
    path::PathBuf,
    task::{self, Poll},
};

use diesel::ConnectionResult;
use diesel_async::AsyncPgConnection;
use futures_util::{
    FutureExt, StreamExt, TryFutureExt,
    stream::{BoxStream, poll_fn},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::UnixStream,
};
use tokio_postgres::{
    AsyncMessage, Client, Config, Connection, Error, NoTls, Socket,
    config::{Host, SslMode, SslNegotiation},
    tls::{MakeTlsConnect, NoTlsStream, TlsConnect},
};
use tokio_rustls::client::TlsStream;

use super::{
    Address, address::is_socket, fault::Fault, servers::port, sqlstate::Coded,
    tls_stream::Connector,
};

/// A client, and its connection, which must be driven.
pub(super) enum Dialled {
    Tls(Client, Box<Connection<Socket, Coded<TlsStream<Socket>>>>),
    Plain(Client, Connection<Socket, Coded<Socket>>),
    Local(Client, Connection<Coded<UnixStream>, NoTlsStream>),
}

impl Address {
    /// Opens a connection to a writable server.
    pub(super) async fn dial(&self) -> Result<Dialled, Fault> {
        self.servers.first(|server| one(server, self.tls.as_ref()).err_into()).await
    }
}

async fn one(server: &Config, tls: Option<&Connector>) -> Result<Dialled, Error> {
    match tls {
        _ if is_socket(server) => local(server).await,
        None => plain(server).await,
        Some(tls) if server.get_ssl_mode() == SslMode::Prefer => {
            let mut config = server.clone();
            match secured(config.ssl_mode(SslMode::Require), tls).await {
                // The server did not refuse the login. Perhaps it does not support TLS.
                Err(error) if error.code().is_none() => plain(server).await,
                dialled => dialled,
            }
        }
        Some(tls) => secured(server, tls).await,
    }
}

async fn secured(config: &Config, tls: &Connector) -> Result<Dialled, Error> {
    let (client, connection) = config.connect(tls.clone()).await?;
    Ok(Dialled::Tls(client, Box::new(connection)))
}

async fn plain(config: &Config) -> Result<Dialled, Error> {
    let mut config = config.clone();
    // With direct negotiation, tokio-postgres passes the stream to the connector immediately,
    // without asking the server for TLS.
    config.ssl_mode(SslMode::Require).ssl_negotiation(SslNegotiation::Direct);
    let (client, connection) = config.connect(Plain).await?;
    Ok(Dialled::Plain(client, connection))
}

async fn local(config: &Config) -> Result<Dialled, Error> {
    let mut config = config.clone();
    config.ssl_mode(SslMode::Disable);
    loop {
        for path in sockets(&config) {
            if let Ok(stream) = UnixStream::connect(path).await {
                let dialled = config.connect_raw(Coded::plain(stream), NoTls).await;
                return dialled.map(|(client, connection)| Dialled::Local(client, connection));
            }
        }
        // No socket accepted a connection. Only tokio-postgres can create the error to return.
        // Another attempt to connect gets this error; if it succeeds, the loop starts again.
        drop(config.connect(NoTls).await?);
    }
}

fn sockets(config: &Config) -> impl Iterator<Item = PathBuf> + '_ {
    config.get_hosts().iter().enumerate().filter_map(move |(at, host)| match host {
        Host::Unix(folder) => {
            Some(folder.join(format!(".s.PGSQL.{}", port(config, at).unwrap_or(5432))))
        }
        Host::Tcp(_) => None,
    })
}

impl Dialled {
    /// Converts this to a diesel connection. A background task drives the connection.
    pub(super) async fn diesel(self) -> ConnectionResult<AsyncPgConnection> {
        match self {
            Self::Tls(client, connection) => {
                AsyncPgConnection::try_from_client_and_connection(client, *connection).await
            }
            Self::Plain(client, connection) => {
                AsyncPgConnection::try_from_client_and_connection(client, connection).await
            }
            Self::Local(client, connection) => {
                // The task ends with its client.
                tokio::spawn(connection.map(drop));
                AsyncPgConnection::try_from(client).await
            }
        }
    }

    /// Returns the client. A task drives the connection and ends with the client.
    pub(super) fn client(self) -> Client {
        let (client, messages) = self.messages();
        tokio::spawn(messages.for_each(|_| ready(())));
        client
    }

    /// Returns the client and the server's asynchronous messages. Polling the messages drives the
    /// connection.
    pub(super) fn messages(self) -> (Client, BoxStream<'static, Result<AsyncMessage, Error>>) {
        match self {
            Self::Tls(client, connection) => (client, asynchronous(*connection)),
            Self::Plain(client, connection) => (client, asynchronous(connection)),
            Self::Local(client, connection) => (client, asynchronous(connection)),
        }
    }
}

fn asynchronous<S, T>(
    mut connection: Connection<S, T>,
) -> BoxStream<'static, Result<AsyncMessage, Error>>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let mut has_ended = false;
    let messages = poll_fn(move |cx| {
        // A lost connection would otherwise report its loss forever.
        if has_ended {
            return Poll::Ready(None);
        }
        let message = task::ready!(connection.poll_message(cx));
        has_ended = !matches!(message, Some(Ok(_)));
        Poll::Ready(message)
    });
    messages.boxed()
}

/// A connector without TLS.
#[derive(Clone, Copy)]
struct Plain;

impl MakeTlsConnect<Socket> for Plain {
    type Stream = Coded<Socket>;
    type TlsConnect = Self;
    type Error = Infallible;

    fn make_tls_connect(&mut self, _: &str) -> Result<Self, Infallible> {
        Ok(*self)
    }
}

impl TlsConnect<Socket> for Plain {
    type Stream = Coded<Socket>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Stream, Infallible>>;

    fn connect(self, stream: Socket) -> Self::Future {
        ready(Ok(Coded::plain(stream)))
    }
}
