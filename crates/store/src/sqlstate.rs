//! Adds the SQLSTATE to Postgres errors. The SQLSTATE identifies an error. The error text is in the
//! language that the server is configured for.
//!
//! diesel-async passes on the texts of an error and the names in it, but not its SQLSTATE. Each
//! error therefore gets its SQLSTATE as its hint, between the server and tokio-postgres. The
//! server's own hints are not shown.

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

/// Returns the SQLSTATE of an error that Postgres reported.
pub(super) fn sqlstate(about: &dyn DatabaseErrorInformation) -> Option<SqlState> {
    about.hint().map(SqlState::from_code)
}

/// Whether Postgres ended the statement by a timeout.
pub(super) fn has_timed_out(error: &Sql) -> bool {
    matches!(error, Sql::DatabaseError(_, about)
        if sqlstate(&**about).is_some_and(|state| is_timeout(&state)))
}

/// Whether a table of the statement does not exist.
pub(super) fn is_undefined_table(error: &Sql) -> bool {
    matches!(error, Sql::DatabaseError(_, about)
        if sqlstate(&**about) == Some(SqlState::UNDEFINED_TABLE))
}

/// Whether the same statement may succeed later.
///
/// This covers a lost connection, a lack of resources, a stop by an operator, an exceeded time
/// limit, a conflict with another transaction, and a write on a standby.
pub(super) fn is_passing(state: &SqlState) -> bool {
    is_timeout(state)
        || ["08", "40", "53", "57", "58"].contains(&state.code().get(..2).unwrap_or_default())
        || [SqlState::READ_ONLY_SQL_TRANSACTION, SqlState::IDLE_IN_TRANSACTION_SESSION_TIMEOUT]
            .contains(state)
}

/// Whether a statement was cancelled or waited too long for a lock.
pub(super) fn is_timeout(state: &SqlState) -> bool {
    [SqlState::QUERY_CANCELED, SqlState::LOCK_NOT_AVAILABLE].contains(state)
}

/// A connection that adds the SQLSTATE to each error as its hint.
pub(super) struct Coded<S> {
    inner: S,
    binding: fn(&S) -> ChannelBinding,
    messages: Messages,
}

impl<S> Coded<S> {
    /// Wraps a stream without TLS.
    pub(super) fn plain(inner: S) -> Self {
        Self { inner, binding: |_| ChannelBinding::none(), messages: Messages::default() }
    }

    /// Wraps a stream with TLS, and the function that returns what SCRAM is bound to.
    pub(super) fn bound(inner: S, binding: fn(&S) -> ChannelBinding) -> Self {
        Self { inner, binding, messages: Messages::default() }
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

/// The server's messages. A message is a letter, four bytes of length, and the content. The length
/// includes its own four bytes.
#[derive(Default)]
struct Messages {
    /// The remaining bytes of the current message, which are passed on unchanged.
    passing: usize,
    /// The start of an error, or of a message without a complete length.
    held: Vec<u8>,
    /// Finished bytes, passed on before any further reading.
    done: VecDeque<u8>,
    /// Whether reading has ended because the server is a standby, or became one. A pool does not
    /// keep an ended connection.
    has_ended: bool,
}

impl Messages {
    /// Takes the bytes that were read. Returns how many of them are passed on unchanged; the rest
    /// is stored.
    fn take(&mut self, read: &[u8]) -> usize {
        let unchanged = if self.held.is_empty() { self.pass(read) } else { 0 };
        self.held.extend_from_slice(read.get(unchanged..).unwrap_or_default());
        let mut held = std::mem::take(&mut self.held);
        loop {
            let passed = self.pass(&held);
            let rest = held.split_off(passed);
            self.done.extend(held);
            held = rest;
            // `pass` stops at a complete message only if the message is an error.
            let Some(size) = size(&held).filter(|size| *size <= held.len()) else { break };
            let rest = held.split_off(size);
            self.has_ended |= code(&held) == Some(READ_ONLY);
            self.done.extend(coded(held));
            held = rest;
        }
        self.held = held;
        unchanged
    }

    /// Returns the number of bytes before the next error or incomplete length.
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

    /// Passes on finished bytes. Returns whether there were any.
    fn give(&mut self, buf: &mut ReadBuf<'_>) -> bool {
        let (first, _) = self.done.as_slices();
        let count = first.len().min(buf.remaining());
        buf.put_slice(first.get(..count).unwrap_or_default());
        self.done.drain(..count);
        count > 0
    }
}

/// Returns the size of the message that starts here, if its length is complete.
fn size(bytes: &[u8]) -> Option<usize> {
    let length = u32::from_be_bytes(bytes.get(1..)?.first_chunk().copied()?);
    Some(1 + usize::try_from(length).ok()?.max(4))
}

/// The SQLSTATE of writing on a standby.
const READ_ONLY: &[u8] = b"25006";

/// Returns the error's SQLSTATE. A field is a letter and a text that ends with a zero.
fn code(error: &[u8]) -> Option<&[u8]> {
    let mut fields = error.get(5..)?.split(|byte| *byte == 0);
    fields.find_map(|field| field.strip_prefix(b"C"))
}

/// Adds the SQLSTATE as the error's last field. A zero ends the fields. An error without a SQLSTATE
/// stays unchanged.
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

    /// Returns the bytes sent by the server, and the expected bytes.
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

    /// Reads the bytes in pieces of different sizes.
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

    /// Reads at most this many bytes at once.
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
