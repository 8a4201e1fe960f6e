//! Reads streams of the service: lines of JSON, as they arrive.

use std::time::Duration;

use reqwest::Response;
use serde::Serialize;
use serde_json::Value;
use tokio::time::timeout;

use super::server::Server;
use crate::cli::{Failure, http::deepest};

/// The longest silence of an open stream. The service sends a line, which may be empty, at least
/// every 15 seconds.
const SILENCE: Duration = Duration::from_secs(50);

/// An open stream.
pub(super) struct Lines<'a> {
    server: &'a Server,
    response: Response,
    read: Vec<u8>,
}

/// The next part of a stream.
pub(super) enum Next {
    /// A line, and the JSON in it.
    Line(String, Value),
    /// The service ended it.
    End,
    /// The connection broke, or was silent for too long.
    Lost(String),
}

impl Server {
    /// Opens the stream at a path.
    ///
    /// # Errors
    /// The service refuses it, or does not answer.
    pub(super) async fn lines(
        &self,
        path: &[&str],
        query: &impl Serialize,
    ) -> Result<Lines<'_>, Failure> {
        let response = self.stream(path, query).await?;
        Ok(Lines { server: self, response, read: Vec::new() })
    }
}

impl Lines<'_> {
    /// Returns the next line. Empty lines only keep the connection alive.
    ///
    /// # Errors
    /// The service ended the stream with an error, or it is not JSON.
    pub(super) async fn next(&mut self) -> Result<Next, Failure> {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=end).collect();
                let line = String::from_utf8_lossy(&line).trim().to_owned();
                if line.is_empty() {
                    continue;
                }
                let value = self.server.json(&line)?;
                if value["ok"] == false && value["error"].is_string() {
                    return Err(Failure::refused(&value));
                }
                return Ok(Next::Line(line, value));
            }
            match timeout(SILENCE, self.response.chunk()).await {
                Ok(Ok(Some(bytes))) => self.read.extend_from_slice(&bytes),
                Ok(Ok(None)) => return Ok(Next::End),
                Ok(Err(error)) => return Ok(Next::Lost(deepest(error))),
                Err(_) => return Ok(Next::Lost("no data for 50 s".to_owned())),
            }
        }
    }
}
