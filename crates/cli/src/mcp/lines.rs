//! Reads and writes messages, one a line.

use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt},
    sync::mpsc::UnboundedReceiver,
};

/// The longest line that is kept. The rest of a longer one is dropped, and the line is then no JSON.
const LONGEST: usize = 32 * 1024 * 1024;

/// Returns the next line that is not empty, without its end; `None` at the end of the stream.
pub(crate) async fn next(from: &mut (impl AsyncBufRead + Unpin)) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    loop {
        let chunk = from.fill_buf().await.ok().filter(|chunk| !chunk.is_empty())?;
        let end = chunk.iter().position(|byte| *byte == b'\n');
        let part = chunk.get(..end.unwrap_or(chunk.len())).unwrap_or_default();
        let room = LONGEST.saturating_sub(line.len()).min(part.len());
        line.extend_from_slice(part.get(..room).unwrap_or_default());
        let used = part.len() + usize::from(end.is_some());
        from.consume(used);
        if end.is_some() {
            if line.last() == Some(&b'\r') {
                line.pop();
            }
            if !line.trim_ascii().is_empty() {
                return Some(line);
            }
            line.clear();
        }
    }
}

/// Writes lines until their sender ends, or the reader does.
pub(crate) async fn write(mut to: impl AsyncWrite + Unpin, mut lines: UnboundedReceiver<Vec<u8>>) {
    while let Some(mut line) = lines.recv().await {
        line.push(b'\n');
        if to.write_all(&line).await.is_err() || to.flush().await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::BufReader;

    use super::*;

    #[tokio::test]
    async fn lines_are_read_as_they_are() {
        let text = b"{\"a\": 1}\r\n\n  \n{\"b\":\xff}\nunfinished";
        let mut from = BufReader::with_capacity(3, &text[..]);
        assert_eq!(next(&mut from).await.as_deref(), Some(&b"{\"a\": 1}"[..]));
        assert_eq!(next(&mut from).await.as_deref(), Some(&b"{\"b\":\xff}"[..]));
        assert_eq!(next(&mut from).await, None);
    }
}
