//! Checks whether a running service is ready, for a container's health check.

use std::{io, net::SocketAddr, time::Duration};

use authority_client::reachable;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

use crate::outcome::Failure;

const PATIENCE: Duration = Duration::from_secs(5);
/// The number of bytes to read: the status line and more.
const ENOUGH: u64 = 256;

/// Returns `ready`, or the reason as an error.
pub async fn check(listen: SocketAddr) -> Result<&'static str, Failure> {
    let address = reachable(listen);
    let told = match timeout(PATIENCE, ask(address)).await {
        Ok(Ok(true)) => return Ok("ready"),
        Ok(Ok(false)) => format!("the service at {address} is not ready"),
        Ok(Err(error)) => format!("no service at {address}: {error}"),
        Err(_) => format!("the service at {address} does not answer"),
    };
    Err(Failure::new(told))
}

async fn ask(address: SocketAddr) -> io::Result<bool> {
    let mut stream = TcpStream::connect(address).await?;
    let request =
        format!("GET /health/ready HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.take(ENOUGH).read_to_end(&mut answer).await?;
    Ok(answer.starts_with(b"HTTP/1.1 200 "))
}
