//! Asks a person before something is done that cannot be taken back.

use std::io::{self, BufRead, Write};

use clap::Args;

use super::Failure;

/// The flag of commands that ask.
#[derive(Clone, Copy, Debug, Args)]
pub(in crate::cli) struct Confirm {
    /// Do it without asking, for scripts
    #[arg(long, short = 'y')]
    pub(in crate::cli) yes: bool,
}

impl Confirm {
    /// Shows what is to be done, then waits for `y` or `yes`.
    ///
    /// # Errors
    /// Another answer, or none: nothing is done.
    pub(in crate::cli) fn agree(self, shown: &str, question: &str) -> Result<(), Failure> {
        let is_yes = |answer: &str| ["y", "yes"].iter().any(|yes| answer.eq_ignore_ascii_case(yes));
        self.ask(shown, &format!("{question} [y/N] "), is_yes)
    }

    /// Shows what is to be done, then waits for this name.
    ///
    /// # Errors
    /// Another answer, or none: nothing is done.
    pub(in crate::cli) fn type_name(
        self,
        shown: &str,
        verb: &str,
        name: &str,
    ) -> Result<(), Failure> {
        self.ask(shown, &format!("Type `{name}` to {verb}: "), |answer| answer == name)
    }

    fn ask(
        self,
        shown: &str,
        question: &str,
        agrees: impl Fn(&str) -> bool,
    ) -> Result<(), Failure> {
        if self.yes {
            return Ok(());
        }
        // On standard error: standard output is for the result.
        let mut to = io::stderr().lock();
        write!(to, "{}\n\n{question}", shown.trim_end()).map_err(Failure::new)?;
        to.flush().map_err(Failure::new)?;
        let mut answer = String::new();
        let read = io::stdin().lock().read_line(&mut answer).map_err(Failure::new)?;
        if agrees(answer.trim()) {
            return Ok(());
        }
        if read == 0 {
            writeln!(to).map_err(Failure::new)?;
            return Err(Failure::new("not confirmed, nothing was done: scripts pass --yes"));
        }
        Err(Failure::new("not confirmed, nothing was done"))
    }
}
