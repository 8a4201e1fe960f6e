//! Checks that `docs/reference/command-line.md` lists every command with the text of its own help.

use std::{env, fmt::Write, fs};

use super::run;

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/reference/command-line.md");
/// The line above the generated part of the page.
const MARK: &str = "<!-- from `agent-authority help`; AUTHORITY_UPDATE=1 cargo test --test it -- command_line::help -->\n";
/// Flags that every command has, which the tables omit.
const GLOBAL: [&str; 8] = [
    "--listen",
    "--data-dir",
    "--config",
    "--production",
    "--json",
    "--utc",
    "--help",
    "--version",
];

/// Returns the commands of a help text, each with its one-line description.
fn commands(help: &str) -> Vec<(String, String)> {
    let below = help.split_once("Commands:\n").map_or("", |(_, below)| below);
    let lines = below.lines().take_while(|line| !line.is_empty());
    let pairs = lines.filter_map(|line| line.trim().split_once("  "));
    let pairs = pairs.map(|(name, about)| (name.to_owned(), about.trim().to_owned()));
    pairs.filter(|(name, _)| name != "help").collect()
}

/// Returns the command's own arguments and flags, in the order of the help.
fn flags(help: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in help.lines().map(str::trim_start) {
        let name = line.split_whitespace().find(|word| word.starts_with("--"));
        let is_flag = line.starts_with('-') && name.is_some();
        let name = name.unwrap_or_default().trim_end_matches(',');
        if is_flag && !GLOBAL.contains(&name) && !["--url", "--token"].contains(&name) {
            found.push(format!("`{name}`"));
        }
    }
    found
}

fn table(of: &[String], out: &mut String) {
    let args: Vec<_> = of.iter().map(String::as_str).chain(["-h"]).collect();
    let (_, help, _) = run(&args, &[]);
    for (name, about) in commands(&help) {
        let path = [of, &[name]].concat();
        let args: Vec<_> = path.iter().map(String::as_str).chain(["-h"]).collect();
        let (code, help, told) = run(&args, &[]);
        assert_eq!(code, 0, "{told}");
        let about = about.replace('|', "\\|");
        let usage = help.lines().find_map(|line| line.strip_prefix("Usage: agent-authority "));
        let usage = usage.unwrap_or_default().replace(" [OPTIONS]", "").replace('|', "\\|");
        if commands(&help).is_empty() || !flags(&help).is_empty() {
            let flags = flags(&help).join(" ");
            writeln!(out, "| `{usage}` | {about} | {flags} |").unwrap();
        }
        table(&path, out);
    }
}

#[expect(clippy::disallowed_methods, reason = "a switch of the test run, not a setting")]
#[test]
fn the_page_has_every_command_as_its_help_says_it() {
    let mut table = "| Command | Description | Flags of its own |\n|---|---|---|\n".to_owned();
    self::table(&[], &mut table);
    let page = fs::read_to_string(PAGE).unwrap();
    let (head, below) = page.split_once(MARK).expect("the mark");
    if env::var_os("AUTHORITY_UPDATE").is_some() {
        fs::write(PAGE, format!("{head}{MARK}{table}")).unwrap();
        return;
    }
    assert!(below == table, "docs/reference/command-line.md is old: {}", MARK.trim());
}
