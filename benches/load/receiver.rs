//! A webhook receiver over HTTP/1.1 with keep-alive. It responds with 204 at once.

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Notify,
    time::timeout,
};

use crate::Fault;

/// The maximum time without a delivery.
const PATIENCE: Duration = Duration::from_secs(60);
const ANSWER: &[u8] = b"HTTP/1.1 204 No Content\r\n\r\n";

/// Counts the received deliveries.
#[derive(Clone)]
pub(crate) struct Receiver {
    pub(crate) address: SocketAddr,
    count: Arc<AtomicU64>,
    came: Arc<Notify>,
}

impl Receiver {
    pub(crate) async fn start() -> Result<Self, Fault> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let receiver =
            Self { address: listener.local_addr()?, count: Arc::default(), came: Arc::default() };
        let serving = receiver.clone();
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                tokio::spawn(serving.clone().serve(socket));
            }
        });
        Ok(receiver)
    }

    pub(crate) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    /// Waits until it has received this number of deliveries.
    pub(crate) async fn reach(&self, expected: u64) -> Result<(), Fault> {
        while self.count() < expected {
            if timeout(PATIENCE, self.came.notified()).await.is_err() {
                return Err(
                    format!("{} of {expected} deliveries, and no more", self.count()).into()
                );
            }
        }
        Ok(())
    }

    /// Serves the connection until the sender closes it.
    async fn serve(self, mut socket: TcpStream) {
        let mut read = Vec::with_capacity(16 * 1024);
        loop {
            match socket.read_buf(&mut read).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
            while let Some(length) = request(&read) {
                read.drain(..length);
                self.count.fetch_add(1, Ordering::Relaxed);
                self.came.notify_one();
                if socket.write_all(ANSWER).await.is_err() {
                    return;
                }
            }
        }
    }
}

/// Returns the length of the first request, if it is complete.
fn request(read: &[u8]) -> Option<usize> {
    let head = read.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let text = std::str::from_utf8(&read[..head]).ok()?;
    let length = text.split("\r\n").find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    let whole = head + length.unwrap_or(0);
    (read.len() >= whole).then_some(whole)
}
