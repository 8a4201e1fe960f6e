//! The output of a command, for people or for a script.

use std::{
    fmt::{self, Display, Formatter},
    io::{self, IsTerminal, Write},
    process::ExitCode,
};

use authority_client::ApiError;
use authority_config as config;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::refusal::text;

/// The reason a command failed.
#[derive(Debug)]
pub struct Failure {
    message: String,
    code: u8,
    /// Whether the service did not respond.
    unreached: bool,
    /// Whether the service refuses this caller the operation, whatever the request.
    forbidden: bool,
    /// The output before the failure, on standard output.
    found: Option<CommandOutput>,
}

impl Display for Failure {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Failure {
    /// A failure with exit code 1.
    pub fn new(error: impl Display) -> Self {
        Self {
            message: error.to_string(),
            code: 1,
            unreached: false,
            forbidden: false,
            found: None,
        }
    }

    /// Wrong usage or settings: exit code 2.
    pub fn usage(error: impl Display) -> Self {
        Self {
            message: error.to_string(),
            code: 2,
            unreached: false,
            forbidden: false,
            found: None,
        }
    }

    /// The service did not respond: exit code 1.
    pub(crate) fn unreached(error: impl Display) -> Self {
        Self { message: error.to_string(), code: 1, unreached: true, forbidden: false, found: None }
    }

    /// Whether the service did not respond.
    pub(crate) fn is_unreached(&self) -> bool {
        self.unreached
    }

    /// Marks the failure as a refusal of the operation to this caller, whatever the request.
    pub(crate) fn forbidden(mut self) -> Self {
        self.forbidden = true;
        self
    }

    /// Whether the service refuses this caller the operation, whatever the request.
    pub(crate) fn is_forbidden(&self) -> bool {
        self.forbidden
    }

    /// The service refused a request, and `body` is its response: exit code 1.
    pub fn refused(body: &Value) -> Self {
        match ApiError::deserialize(body) {
            Ok(error) => Self::new(text(&error)),
            Err(_) => Self::new(body),
        }
    }

    /// Adds the output that the command produced before the failure.
    pub(crate) fn after(mut self, found: CommandOutput) -> Self {
        self.found = Some(found);
        self
    }

    /// Adds a line to the message.
    pub(crate) fn with(mut self, line: &str) -> Self {
        self.message.push('\n');
        self.message.push_str(line);
        self
    }
}

impl From<config::Error> for Failure {
    fn from(error: config::Error) -> Self {
        Self::usage(error)
    }
}

/// The output of a command: text for people, which a shell can capture, and JSON for scripts.
#[derive(Debug, Default)]
pub struct CommandOutput {
    pub text: String,
    /// One line of JSON; `None` if the text is JSON.
    pub json: Option<String>,
    /// Notes for people, on standard error.
    pub aside: String,
    /// Whether a file receives exactly the text's bytes, without an added line break.
    pub is_exact: bool,
}

impl CommandOutput {
    pub fn nothing() -> Self {
        Self::default()
    }

    pub fn named(name: &str, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { json: Some(json!({ name: text }).to_string()), text, ..Self::default() }
    }

    pub fn list(name: &str, items: &[String]) -> Self {
        let json = Some(json!({ name: items }).to_string());
        Self { text: items.join("\n"), json, ..Self::default() }
    }

    /// The same output for people and scripts.
    pub fn whole(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Like [`whole`](Self::whole), but exactly these bytes unless written to a terminal.
    pub(crate) fn exactly(text: impl Into<String>) -> Self {
        Self { is_exact: true, ..Self::whole(text) }
    }

    fn write(&self, as_json: bool) -> io::Result<()> {
        let mut to = io::stdout();
        match self.json.as_ref().filter(|_| as_json) {
            Some(json) => line(&mut to, json),
            None if self.is_exact && !to.is_terminal() => {
                to.write_all(self.text.as_bytes()).and_then(|()| to.flush())
            }
            None => line(&mut to, &self.text).and_then(|()| line(&mut io::stderr(), &self.aside)),
        }
    }
}

pub fn print(outcome: Result<CommandOutput, Failure>, as_json: bool) -> ExitCode {
    let (written, code) = match outcome {
        Ok(output) => (output.write(as_json), 0),
        Err(failure) => {
            let text = if as_json {
                json!({ "ok": false, "error": failure.message }).to_string()
            } else {
                format!("error: {}", failure.message.replace('\n', "\n       "))
            };
            let found = failure.found.map_or(Ok(()), |found| found.write(as_json));
            (found.and_then(|()| line(&mut io::stderr(), &text)), failure.code)
        }
    };
    // A reader that closed its pipe (`| head`) needs no more output. That is not an error.
    let lost = written.is_err_and(|error| error.kind() != io::ErrorKind::BrokenPipe);
    ExitCode::from(if lost { 1 } else { code })
}

fn line(to: &mut impl Write, text: &str) -> io::Result<()> {
    if text.is_empty() {
        return Ok(());
    }
    writeln!(to, "{}", text.trim_end())?;
    to.flush()
}
