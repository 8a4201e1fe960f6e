//! The output of a command, for people or for a script.

use std::{
    fmt::{self, Display, Formatter},
    io::{self, IsTerminal, Write},
    process::ExitCode,
};

use serde::Deserialize;
use serde_json::{Value, json};

use super::remote::ApiError;

/// Why a command failed.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    code: u8,
    /// Whether the service did not answer.
    unreached: bool,
    /// What was found before, on standard output.
    found: Option<CommandOutput>,
}

impl Display for Failure {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Failure {
    /// Something went wrong: exit code 1.
    pub(crate) fn new(error: impl Display) -> Self {
        Self { message: error.to_string(), code: 1, unreached: false, found: None }
    }

    /// Wrong usage or settings: exit code 2.
    pub(crate) fn usage(error: impl Display) -> Self {
        Self { message: error.to_string(), code: 2, unreached: false, found: None }
    }

    /// The service did not answer: exit code 1.
    pub(super) fn unreached(error: impl Display) -> Self {
        Self { message: error.to_string(), code: 1, unreached: true, found: None }
    }

    /// Whether the service did not answer.
    pub(super) fn is_unreached(&self) -> bool {
        self.unreached
    }

    /// The service refused a request, with this body: exit code 1.
    pub(crate) fn refused(body: &Value) -> Self {
        match ApiError::deserialize(body) {
            Ok(error) => Self::new(error.text()),
            Err(_) => Self::new(body),
        }
    }

    /// The same after some output.
    pub(super) fn after(mut self, found: CommandOutput) -> Self {
        self.found = Some(found);
        self
    }

    /// The same with another line.
    pub(super) fn with(mut self, line: &str) -> Self {
        self.message.push('\n');
        self.message.push_str(line);
        self
    }
}

/// Text for people, alone on its line so that a shell can capture it; the same as JSON for scripts.
#[derive(Debug, Default)]
pub(super) struct CommandOutput {
    pub(super) text: String,
    /// One line of JSON; `None` if it is the text.
    pub(super) json: Option<String>,
    /// Notes for people, on standard error.
    pub(super) aside: String,
    /// Whether a file gets the text's bytes alone, without a line break.
    pub(super) is_exact: bool,
}

impl CommandOutput {
    pub(super) fn nothing() -> Self {
        Self::default()
    }

    pub(super) fn named(name: &str, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { json: Some(json!({ name: text }).to_string()), text, ..Self::default() }
    }

    pub(super) fn list(name: &str, items: &[String]) -> Self {
        let json = Some(json!({ name: items }).to_string());
        Self { text: items.join("\n"), json, ..Self::default() }
    }

    /// The same output for people and scripts.
    pub(super) fn whole(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// The same, and byte for byte where it is not shown in a terminal.
    pub(super) fn exactly(text: impl Into<String>) -> Self {
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

pub(super) fn print(outcome: Result<CommandOutput, Failure>, as_json: bool) -> ExitCode {
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
    // A reader that closed its pipe (`| head`) has read enough.
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
