//! The SQLSTATE of Postgres' errors, by which they are told apart: their texts are in the server's language.
//!
//! diesel-async passes on the texts of an error and the names in it, but not its SQLSTATE. So each error
//! receives its SQLSTATE as its hint, on the way from the server to tokio-postgres; the server's own hints are
//! shown to nobody.

use std::{
    collections::VecDeque,
    io,
    pin::Pin,
    task::{Context, Poll, ready},
};

use diesel::result::{DatabaseErrorInformation, Error as Sql};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::{
    error::SqlState,
    tls::{ChannelBinding, TlsStream},
};

/// The SQLSTATE of an error that Postgres reported.
pub(super) fn sqlstate(about: &dyn DatabaseErrorInformation) -> Option<SqlState> {
    about.hint().map(SqlState::from_code)
}

/// Whether Postgres ended the statement by a timeout.
pub(super) fn has_timed_out(error: &Sql) -> bool {
    matches!(error, Sql::DatabaseError(_, about)
        if sqlstate(&**about).is_some_and(|state| is_timeout(&state)))
}

/// Whether the same may succeed later: no connection, no resources, stopped by an operator or a limit, in
/// conflict with another transaction, on a standby.
pub(super) fn is_passing(state: &SqlState) -> bool {
    is_timeout(state)
        || ["08", "40", "53", "57", "58"].contains(&state.code().get(..2).unwrap_or_default())
        || [SqlState::READ_ONLY_SQL_TRANSACTION, SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT]
            .contains(state)
}

/// A statement that was cancelled, or waited too long for a lock.
pub(super) fn is_timeout(state: &SqlState) -> bool {
    [SqlState::QUERY_CANCELED, SqlState::LOCK_NOT_AVAILABLE].contains(state)
}

/// A connection whose errors have their SQLSTATE as their hint.
pub(super) struct Coded<S> {
    inner: S,
    binding: fn(&S) -> ChannelBinding,
    messages: Messages,
}

impl<S> Coded<S> {
    /// Of a stream without TLS.
    pub(super) fn plain(inner: S) -> Self {
        Self { inner, binding: |_| ChannelBinding::none(), messages: Messages::default() }
    }
}

impl<S: TlsStream> Coded<S> {
    pub(super) fn tls(inner: S) -> Self {
        Self { inner, binding: S::channel_binding, messages: Messages::default() }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Coded<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let Self { inner, messages, .. } = self.get_mut();
        if buf.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        while !messages.give(buf) && !messages.has_ended {
            let before = buf.filled().len();
            ready!(Pin::new(&mut *inner).poll_read(cx, buf))?;
            let Some(read) = buf.filled().get(before..).filter(|read| !read.is_empty()) else {
                return Poll::Ready(Ok(()));
            };
            let unchanged = messages.take(read);
            if unchanged > 0 {
                buf.set_filled(before + unchanged);
                return Poll::Ready(Ok(()));
            }
            buf.set_filled(before);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Coded<S> {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().inner).poll_write(cx, buf)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().inner).poll_shutdown(cx)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Coded<S> {
    fn channel_binding(&self) -> ChannelBinding {
        (self.binding)(&self.inner)
    }
}

/// The server's messages: a letter, four bytes with the length of themselves and what follows, and that.
#[derive(Default)]
struct Messages {
    /// The rest of the present message, which goes on unchanged.
    passing: usize,
    /// The start of an error, or of a message whose length is not here yet.
    held: Vec<u8>,
    /// What goes on before anything else is read.
    done: VecDeque<u8>,
    /// Whether nothing more is read: the server is a standby, or became one, and is of no use any more. A pool keeps
    /// no connection that has ended.
    has_ended: bool,
}

impl Messages {
    /// Takes what was read; returns how much of its start goes on as it is. The rest is kept here.
    fn take(&mut self, read: &[u8]) -> usize {
        let unchanged = if self.held.is_empty() { self.pass(read) } else { 0 };
        self.held.extend_from_slice(read.get(unchanged..).unwrap_or_default());
        let mut held = std::mem::take(&mut self.held);
        loop {
            let passed = self.pass(&held);
            let rest = held.split_off(passed);
            self.done.extend(held);
            held = rest;
            // What passes no further and has its length is an error.
            let Some(size) = size(&held).filter(|size| *size <= held.len()) else { break };
            let rest = held.split_off(size);
            self.has_ended |= code(&held) == Some(READ_ONLY);
            self.done.extend(coded(held));
            held = rest;
        }
        self.held = held;
        unchanged
    }

    /// How many bytes there are before the next error or unknown length.
    fn pass(&mut self, bytes: &[u8]) -> usize {
        let mut at = self.passing.min(bytes.len());
        self.passing -= at;
        while let Some(rest) = bytes.get(at..)
            && let Some(size) = size(rest)
            && rest.first() != Some(&b'E')
        {
            let here = size.min(rest.len());
            self.passing = size - here;
            at += here;
        }
        at
    }

    /// Hands on what is done; returns whether there was anything.
    fn give(&mut self, buf: &mut ReadBuf<'_>) -> bool {
        let (first, _) = self.done.as_slices();
        let count = first.len().min(buf.remaining());
        buf.put_slice(first.get(..count).unwrap_or_default());
        self.done.drain(..count);
        count > 0
    }
}

/// The size of the message that begins here, if its length is here.
fn size(bytes: &[u8]) -> Option<usize> {
    let length = u32::from_be_bytes(bytes.get(1..)?.first_chunk().copied()?);
    Some(1 + usize::try_from(length).ok()?.max(4))
}

/// The SQLSTATE of writing on a standby.
const READ_ONLY: &[u8] = b"25006";

/// The error's SQLSTATE. Its fields are a letter and a text that ends with a zero.
fn code(error: &[u8]) -> Option<&[u8]> {
    let mut fields = error.get(5..)?.split(|byte| *byte == 0);
    fields.find_map(|field| field.strip_prefix(b"C"))
}

/// The error with its SQLSTATE as its last field; a zero ends the fields. An error without one stays as it is.
fn coded(error: Vec<u8>) -> Vec<u8> {
    let fields = error.get(5..).and_then(|body| body.strip_suffix(b"\0"));
    let Some((code, fields)) = code(&error).zip(fields) else { return error };
    let body = [fields, b"H", code, b"\0\0"].concat();
    let Ok(length) = u32::try_from(body.len() + 4) else { return error };
    [&b"E"[..], &length.to_be_bytes(), &body].concat()
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    fn message(letter: u8, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 4).unwrap();
        [&[letter][..], &length.to_be_bytes(), body].concat()
    }

    /// What the server says, and what arrives.
    fn conversation() -> (Vec<u8>, Vec<u8>) {
        let row = message(b'D', &[b'E'; 300]);
        let said = message(b'E', b"SFEHLER\0C57014\0Mstorniere Anfrage\0HHinweis\0\0");
        let coded = message(b'E', b"SFEHLER\0C57014\0Mstorniere Anfrage\0HHinweis\0H57014\0\0");
        let broken = message(b'E', b"no code");
        let ready = message(b'Z', b"E");
        let all =
            |error: &[u8]| [&row[..], error, error, &ready, &broken, &row, error, &ready].concat();
        (all(&said), all(&coded))
    }

    /// However the bytes are cut when they are read.
    #[tokio::test]
    async fn each_error_gets_its_sqlstate_and_nothing_else_changes() {
        let (said, expected) = conversation();
        for pieces in [1, 2, 3, 5, 7, 64, 301, 1000] {
            let mut script = in_pieces(&said, pieces);
            let mut heard = Vec::new();
            Coded::plain(&mut script).read_to_end(&mut heard).await.unwrap();
            assert_eq!(heard, expected, "in pieces of {pieces}");
        }
    }

    #[tokio::test]
    async fn a_connection_ends_with_the_error_of_a_standby() {
        let before = message(b'D', b"row");
        let error = message(b'E', b"SERROR\0C25006\0Mread-only\0\0");
        let told = message(b'E', b"SERROR\0C25006\0Mread-only\0H25006\0\0");
        let said = [&before[..], &error, &message(b'Z', b"I")].concat();
        for pieces in [1, 7, 1000] {
            let mut heard = Vec::new();
            Coded::plain(&mut in_pieces(&said, pieces)).read_to_end(&mut heard).await.unwrap();
            assert!(heard.starts_with(&[&before[..], &told].concat()), "in pieces of {pieces}");
        }
    }

    /// Reads no more than so many bytes at once.
    fn in_pieces(bytes: &[u8], pieces: usize) -> impl AsyncRead + Unpin {
        let (mut client, server) = tokio::io::duplex(pieces);
        let bytes = bytes.to_vec();
        tokio::spawn(async move {
            client.write_all(&bytes).await.unwrap();
        });
        server
    }

    #[test]
    fn what_may_succeed_later_is_known_by_its_class() {
        for (code, passes, is_late) in [
            ("57014", true, true),
            ("55P03", true, true),
            ("40P01", true, false),
            ("40001", true, false),
            ("53100", true, false),
            ("53300", true, false),
            ("57P01", true, false),
            ("57P03", true, false),
            ("58030", true, false),
            ("25006", true, false),
            ("25P03", true, false),
            ("08006", true, false),
            ("42501", false, false),
            ("22012", false, false),
            ("P0001", false, false),
            ("28000", false, false),
            ("", false, false),
        ] {
            let state = SqlState::from_code(code);
            assert_eq!((is_passing(&state), is_timeout(&state)), (passes, is_late), "{code}");
        }
    }
}
