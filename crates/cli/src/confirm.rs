//! Requires a confirmation before an action that cannot be undone.

use std::io::{self, BufRead, Write};

use clap::Args;

use crate::outcome::Failure;

/// The flag of commands that require a confirmation.
#[derive(Clone, Copy, Debug, Args)]
pub struct Confirm {
    /// Skip the confirmation, for scripts
    #[arg(long, short = 'y')]
    pub(crate) yes: bool,
}

impl Confirm {
    /// Shows the planned action, then waits for `y` or `yes`.
    ///
    /// # Errors
    /// The action was not confirmed.
    pub(crate) fn agree(self, shown: &str, question: &str) -> Result<(), Failure> {
        let is_yes = |answer: &str| ["y", "yes"].iter().any(|yes| answer.eq_ignore_ascii_case(yes));
        self.ask(shown, &format!("{question} [y/N] "), is_yes)
    }

    /// Shows the planned action, then waits for this name.
    ///
    /// # Errors
    /// The action was not confirmed.
    pub fn type_name(self, shown: &str, verb: &str, name: &str) -> Result<(), Failure> {
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
            return Err(Failure::new("not confirmed, no change was made: scripts pass --yes"));
        }
        Err(Failure::new("not confirmed, no change was made"))
    }
}
