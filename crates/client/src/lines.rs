//! Reads streams of the service: lines of JSON, as they arrive.

use std::time::Duration;

use reqwest::Response;
use serde::Deserialize;
use serde_json::Value;
use tokio::time::timeout;

use crate::error::{ApiError, Error, deepest};

/// The longest silence of an open stream. The service sends a line, which may be empty, at least
/// every 15 seconds.
const SILENCE: Duration = Duration::from_secs(50);

/// An open stream.
pub struct Lines {
    /// The service's address, for errors.
    base: String,
    response: Response,
    read: Vec<u8>,
}

/// The next part of a stream.
pub enum Next {
    /// A line, and the JSON in it.
    Line(String, Value),
    /// The service ended the stream.
    End,
    /// The connection broke, or was silent for too long.
    Lost(String),
}

impl Lines {
    pub(crate) fn new(base: String, response: Response) -> Self {
        Self { base, response, read: Vec::new() }
    }

    /// Returns the next line. Empty lines only keep the connection alive.
    ///
    /// # Errors
    /// The service ended the stream with an error, or a line is not JSON.
    pub async fn next(&mut self) -> Result<Next, Error> {
        loop {
            if let Some(end) = self.read.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.read.drain(..=end).collect();
                let line = String::from_utf8_lossy(&line).trim().to_owned();
                if line.is_empty() {
                    continue;
                }
                let value = serde_json::from_str(&line).map_err(|error| self.unexpected(&error))?;
                if is_error(&value) {
                    let error = ApiError::deserialize(&value);
                    let error = error.map_err(|error| self.unexpected(&error))?;
                    return Err(Error::Ended(Box::new(error)));
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

    fn unexpected(&self, error: &serde_json::Error) -> Error {
        Error::Unexpected { base: self.base.clone(), what: error.to_string() }
    }
}

fn is_error(value: &Value) -> bool {
    value["ok"] == false && value["error"].is_string()
}
