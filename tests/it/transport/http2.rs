//! An HTTP/2 peer that breaks the rules on purpose. It writes frames itself (RFC 9113), because
//! client libraries would not.

use std::time::Duration;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
pub(super) const GOAWAY: u8 = 7;
const ACK: u8 = 1;
/// The error code `CANCEL` of a stream that its client cancelled.
const CANCEL: u8 = 8;
/// The flags `END_STREAM` and `END_HEADERS`.
const WHOLE: u8 = 5;

pub(super) struct Frame {
    pub(super) kind: u8,
    pub(super) stream: u32,
    pub(super) body: Vec<u8>,
}

pub(super) struct Peer {
    socket: TcpStream,
    /// Whether the peer acknowledges settings and pings.
    polite: bool,
}

impl Peer {
    /// Connects. `window` is the flow-control window for responses, in bytes.
    pub(super) async fn new(mut socket: TcpStream, polite: bool, window: u32) -> Self {
        socket.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
        let mut peer = Self { socket, polite };
        let [a, b, c, d] = window.to_be_bytes();
        peer.send(SETTINGS, 0, 0, &[0, 4, a, b, c, d]).await;
        peer
    }

    pub(super) async fn get(&mut self, stream: u32, path: &str) {
        self.get_with(stream, path, &[]).await;
    }

    /// Sends a GET with further headers.
    pub(super) async fn get_with(&mut self, stream: u32, path: &str, headers: &[(&str, &str)]) {
        self.send(HEADERS, WHOLE, stream, &head(path, headers)).await;
    }

    /// Sends many requests at once, without a wait between them.
    pub(super) async fn get_all(&mut self, streams: impl Iterator<Item = u32>, path: &str) {
        let requests = streams.flat_map(|one| frame(HEADERS, WHOLE, one, &head(path, &[])));
        self.write(&requests.collect::<Vec<u8>>()).await;
    }

    /// Sends requests and cancels each at once, all in a single write.
    pub(super) async fn cancel_all(&mut self, streams: impl Iterator<Item = u32>) {
        let calls = streams.flat_map(|one| {
            let begun = frame(HEADERS, WHOLE, one, &head("/slow", &[]));
            [begun, frame(RST_STREAM, 0, one, &[0, 0, 0, CANCEL])].concat()
        });
        self.write(&calls.collect::<Vec<u8>>()).await;
    }

    /// Returns the next frame that is neither settings nor a ping, or `None` once the service has
    /// closed.
    pub(super) async fn next(&mut self) -> Option<Frame> {
        loop {
            let frame = timeout(Duration::from_secs(10), self.read()).await.expect("in time")?;
            let (kind, flags) = frame.1;
            match kind {
                SETTINGS | PING if flags & ACK == 0 => {
                    if self.polite {
                        let body = if kind == PING { frame.0.body } else { Vec::new() };
                        self.send(kind, ACK, 0, &body).await;
                    }
                }
                SETTINGS | PING | 8 => {}
                _ => return Some(frame.0),
            }
        }
    }

    async fn read(&mut self) -> Option<(Frame, (u8, u8))> {
        let mut head = [0; 9];
        self.socket.read_exact(&mut head).await.ok()?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        let mut body = vec![0; length];
        self.socket.read_exact(&mut body).await.ok()?;
        Some((Frame { kind: head[3], stream, body }, (head[3], head[4])))
    }

    async fn send(&mut self, kind: u8, flags: u8, stream: u32, body: &[u8]) {
        self.write(&frame(kind, flags, stream, body)).await;
    }

    async fn write(&mut self, bytes: &[u8]) {
        // If the service has closed the connection, the next read shows it.
        let _ = self.socket.write_all(bytes).await;
    }
}

/// Encodes the head of a GET for the authority `x`, as HPACK literals (RFC 7541).
fn head(path: &str, headers: &[(&str, &str)]) -> Vec<u8> {
    let mut block = vec![0x82, 0x86, 0x04];
    text(&mut block, path);
    block.push(0x01);
    text(&mut block, "x");
    for (name, value) in headers {
        block.push(0);
        text(&mut block, name);
        text(&mut block, value);
    }
    block
}

fn text(block: &mut Vec<u8>, text: &str) {
    block.push(u8::try_from(text.len()).unwrap());
    block.extend(text.as_bytes());
}

fn frame(kind: u8, flags: u8, stream: u32, body: &[u8]) -> Vec<u8> {
    let [_, a, b, c] = u32::try_from(body.len()).unwrap().to_be_bytes();
    let mut frame = vec![a, b, c, kind, flags];
    frame.extend(stream.to_be_bytes());
    frame.extend(body);
    frame
}
