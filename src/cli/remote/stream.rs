//! Streams of the service: lines of JSON, as they come.

use std::time::Duration;

use reqwest::Response;
use serde::Serialize;
use serde_json::Value;
use tokio::time::timeout;

use super::server::Server;
use crate::cli::{Failure, http::deepest};

/// The service sends a line, or a sign of life, at least every 15 seconds.
const SILENCE: Duration = Duration::from_secs(50);

/// An open stream.
pub(super) struct Lines<'a> {
    server: &'a Server,
    response: Response,
    read: Vec<u8>,
}

/// How a stream goes on.
pub(super) enum Next {
    /// A line, and the JSON in it.
    Line(String, Value),
    /// The service ended it.
    End,
    /// The connection broke, or nothing came for too long.
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
    /// The next line; empty ones are signs of life.
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
                Err(_) => return Ok(Next::Lost("nothing came for 50 s".to_owned())),
            }
        }
    }
}
