//! Checks whether a running service is ready, for a container's health check.

use std::{io, net::SocketAddr, time::Duration};

use authority_client::{deepest, reachable};
use authority_config::{Config, OpenToAll, Tls};
use reqwest::{StatusCode, redirect::Policy};
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
pub async fn check(config: &Config) -> Result<&'static str, Failure> {
    let address = reachable(config.listen.main);
    let asked = async {
        if config.tls.is_on() {
            ask_over_tls(address, &config.tls).await
        } else {
            ask(address).await
        }
    };
    let told = match timeout(PATIENCE, asked).await {
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

/// Asks without a check of the service's certificate, which rarely has the name of this address. The
/// request has no secret, and the response is only the status.
async fn ask_over_tls(address: SocketAddr, tls: &Tls) -> io::Result<bool> {
    drop(TcpStream::connect(address).await?);
    let http = reqwest::Client::builder()
        .timeout(PATIENCE)
        .no_proxy()
        .redirect(Policy::none())
        .tls_danger_accept_invalid_certs(true)
        .build()
        .map_err(io::Error::other)?;
    let needs_certificate =
        tls.client_ca_file.is_some() && !tls.without_certificate.contains(&OpenToAll::Health);
    let answer = http.get(format!("https://{address}/health/ready")).send().await;
    let answer = answer.map_err(|error| {
        let cause = deepest(error);
        // The service may close the connection before its alert is read.
        io::Error::other(if needs_certificate { format!("{cause}; {ADVICE}") } else { cause })
    })?;
    match answer.status() {
        StatusCode::FORBIDDEN => Err(io::Error::other(format!("status 403; {ADVICE}"))),
        status => Ok(status == StatusCode::OK),
    }
}

/// The check has no client certificate.
const ADVICE: &str = "add `health` to `tls.without_certificate`, to permit health checks without a \
                      client certificate";
