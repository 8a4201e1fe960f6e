//! Colours, on a terminal only and never alone: the word is always there.

use std::io::{self, IsTerminal};

use clap::builder::styling::{AnsiColor, Style};

/// A state or a decision in the colour of its sense, on a terminal.
pub(in crate::cli) fn state(word: &str) -> String {
    if io::stdout().is_terminal() && allowed() { coloured(word) } else { word.to_owned() }
}

fn coloured(word: &str) -> String {
    let colour = match word {
        "allow" | "allow_with_constraints" | "approved" | "active" | "valid" => AnsiColor::Green,
        "require_approval" | "pending" | "draft" | "suspended" | "paused" => AnsiColor::Yellow,
        "deny" | "declined" | "revoked" | "void" | "disabled" | "invalid" => AnsiColor::Red,
        _ => return word.to_owned(),
    };
    let style = Style::new().fg_color(Some(colour.into()));
    format!("{style}{word}{style:#}")
}

/// By <https://no-color.org> and what a terminal says of itself.
#[expect(clippy::disallowed_methods, reason = "the terminal's, not a setting of the service")]
fn allowed() -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    !is_set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_coloured_word_is_still_the_word() {
        assert_eq!(coloured("deny"), "\u{1b}[31mdeny\u{1b}[0m");
        assert_eq!(coloured("used"), "used");
        // Tests have no terminal, or none that may be coloured: no escape leaves through a pipe.
        assert!(io::stdout().is_terminal() || state("deny") == "deny");
    }
}
