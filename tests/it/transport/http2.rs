//! An HTTP/2 peer that misbehaves on purpose: frames by hand (RFC 9113), as no client library sends them.

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
/// `END_STREAM` and `END_HEADERS`.
const WHOLE: u8 = 5;

pub(super) struct Frame {
    pub(super) kind: u8,
    pub(super) stream: u32,
    pub(super) body: Vec<u8>,
}

pub(super) struct Peer {
    socket: TcpStream,
    /// Answers settings and pings.
    polite: bool,
}

impl Peer {
    /// `window` is the flow-control window for responses, in bytes.
    pub(super) async fn new(mut socket: TcpStream, polite: bool, window: u32) -> Self {
        socket.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
        let mut peer = Self { socket, polite };
        let [a, b, c, d] = window.to_be_bytes();
        peer.send(SETTINGS, 0, 0, &[0, 4, a, b, c, d]).await;
        peer
    }

    /// GET; `path` is sent as a literal of HPACK (RFC 7541).
    pub(super) async fn get(&mut self, stream: u32, path: &str) {
        let mut block = vec![0x82, 0x86, 0x04, u8::try_from(path.len()).unwrap()];
        block.extend(path.as_bytes());
        block.extend([0x01, 1, b'x']);
        self.send(HEADERS, WHOLE, stream, &block).await;
    }

    /// The next frame other than settings and pings; `None` once the service closed.
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
        let [_, a, b, c] = u32::try_from(body.len()).unwrap().to_be_bytes();
        let mut frame = vec![a, b, c, kind, flags];
        frame.extend(stream.to_be_bytes());
        frame.extend(body);
        // The service may have closed: then reading says so.
        let _ = self.socket.write_all(&frame).await;
    }
}
