//! The refusal of a person's act on an approval: the rule, and the people who could act instead.

use std::fmt;

/// The two parts of a refusal. A page shows the rule first.
#[derive(Clone, Debug)]
pub struct Ineligible {
    pub rule: String,
    /// Roles and conditions, no names. `None` if no other person is needed.
    pub remedy: Option<String>,
}

impl fmt::Display for Ineligible {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str(&self.rule)?;
        self.remedy.iter().try_for_each(|remedy| write!(to, "; {remedy}"))
    }
}
