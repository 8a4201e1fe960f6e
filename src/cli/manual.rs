//! The manual page, from the command tree.

use std::fmt::Write;

use clap::{Arg, Command};

/// Returns the manual page in the language of man(7). A date would make the pages of
/// equal builds differ.
pub(super) fn page(mut root: Command) -> String {
    root.build();
    let name = root.get_name().to_owned();
    let about = escaped(&root.get_about().map(ToString::to_string).unwrap_or_default());
    let version = root.get_version().unwrap_or_default();
    let mut page = format!(
        ".TH {} 1 \"\" \"{name} {version}\"\n.SH NAME\n{} \\- {about}\n.SH SYNOPSIS\n.B {}\n[\\fIOPTIONS\\fR] \
         [\\fICOMMAND\\fR]\n.SH DESCRIPTION\n{about}.\nWithout a command it runs the service.\n.SH OPTIONS\n\
         Every command takes these options.\n",
        name.to_uppercase(),
        escaped(&name),
        escaped(&name),
    );
    root.get_arguments().for_each(|arg| argument(&mut page, arg));
    page.push_str(".SH COMMANDS\n");
    root.get_subcommands().for_each(|command| section(&mut page, "", command));
    page
}

/// Adds a command and its subcommands.
fn section(page: &mut String, above: &str, command: &Command) {
    if command.is_hide_set() || command.get_name() == "help" {
        return;
    }
    let path = format!("{above}{} ", command.get_name());
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    // Writing to a String cannot fail.
    let _ = writeln!(page, ".SS {}\n{}", escaped(path.trim_end()), escaped(&about));
    let own = command.get_arguments().filter(|arg| !arg.is_global_set());
    own.filter(|arg| !["help", "version"].contains(&arg.get_id().as_str()))
        .for_each(|arg| argument(page, arg));
    command.get_subcommands().for_each(|command| section(page, &path, command));
}

/// Adds an option or an operand, with its help.
fn argument(page: &mut String, arg: &Arg) {
    if arg.is_hide_set() {
        return;
    }
    let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
    let names = [
        arg.get_short().map(|short| format!("-{short}")),
        arg.get_long().map(|long| format!("--{long}")),
    ];
    let names: Vec<_> = names.into_iter().flatten().collect();
    let values = arg.get_value_names().unwrap_or_default().join(" ");
    let takes = arg.get_action().takes_values() && !values.is_empty();
    let value = if takes { format!(" \\fI{}\\fR", escaped(&values)) } else { String::new() };
    let _ =
        writeln!(page, ".TP\n\\fB{}\\fR{value}\n{}", escaped(&names.join(", ")), escaped(&help));
}

/// Escapes the characters that roff interprets.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\e").replace('-', "\\-");
    let lines = text.lines().map(|line| {
        if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line.to_owned() }
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::args::Args;

    #[test]
    fn the_page_has_every_visible_command_and_nothing_that_roff_would_run() {
        let page = page(Args::command());
        for part in [
            ".TH AGENT-AUTHORITY 1",
            ".SS serve\n",
            ".SS dev\n",
            ".SS keys rewrap\n",
            "\\-\\-data\\-dir",
        ] {
            assert!(page.contains(part), "{part}: {page}");
        }
        assert!(!page.contains(".SS man\n") && !page.contains(".SS keys help"), "{page}");
        let known = [".TH ", ".SH ", ".SS ", ".TP", ".B "];
        let unknown = page.lines().find(|line| {
            line.starts_with(['.', '\'']) && !known.iter().any(|name| line.starts_with(name))
        });
        assert_eq!(unknown, None);
        assert_eq!(escaped(".so x\n'a \\ -b"), "\\&.so x\n\\&'a \\e \\-b");
    }
}
