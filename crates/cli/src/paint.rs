//! Colours, used only on a terminal and only in addition to the word.

use std::io::{self, IsTerminal};

use clap::builder::styling::{AnsiColor, Style};

/// Returns a state or a decision, coloured by its meaning on a terminal.
pub(crate) fn state(word: &str) -> String {
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

/// Whether colours are allowed, by <https://no-color.org> and the terminal's `TERM`.
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
        // Tests have no terminal, or a terminal without colours: no escapes are written to a pipe.
        assert!(io::stdout().is_terminal() || state("deny") == "deny");
    }
}
