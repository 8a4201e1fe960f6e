//! `verify --export`: each line of an export, and its completeness by the packs of its decisions.
//!
//! One line of each file is in memory at a time.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read},
    path::Path,
};

use authority_evidence::verify::{
    Cause, Export, ExportFault, Exported, Fault, LogPlaces, LogSpan, Summary, Trust,
};
use serde_json::{Value, json};

use crate::{
    commands::archive::NEWER_KEYS,
    outcome::{CommandOutput, Failure},
    text::plain,
};

/// The maximum length of a line in bytes. The service's lines are far shorter.
const LONGEST: usize = 16 * 1024 * 1024;

/// Verifies an export. With `packs`, checks that the log has no other decision between the first
/// and the last.
pub(super) fn verify(
    file: &Path,
    packs: Option<&Path>,
    trust: &Trust,
) -> Result<CommandOutput, Failure> {
    let keys = trust.keys.as_ref().ok_or_else(|| Failure::usage("`--export` needs --jwks"))?;
    let mut lines = Lines::open(file)?;
    let mut packs = packs.map(Lines::open).transpose()?;
    let (mut export, mut places) = (Export::new(keys), LogPlaces::default());
    while let Some(line) = lines.next()? {
        let found = export.line(line).map_err(|fault| failure(fault, file))?;
        if let (Some(packs), Some(found)) = (&mut packs, found) {
            let missing =
                || ExportFault::NoPack { line: found.line, id: found.decision_id.clone() };
            let pack = packs.next()?.ok_or_else(|| failure(missing(), file))?;
            places.pack(pack, found, trust).map_err(|fault| failure(fault, file))?;
        }
    }
    let summary = export.finish().map_err(|fault| failure(fault, file))?;
    let mut spans = None;
    if let Some(mut packs) = packs {
        if packs.next()?.is_some() {
            return Err(failure(ExportFault::SurplusPack { line: packs.number }, file));
        }
        spans = Some(places.finish().map_err(|fault| failure(fault, file))?);
    }
    Ok(output(&summary, spans.as_deref()))
}

fn output(summary: &Summary, spans: Option<&[LogSpan]>) -> CommandOutput {
    let Summary { first, last, decided } = summary;
    let count: u64 = decided.values().sum();
    let (text, unchecked) = match spans {
        Some(_) => ("valid", ""),
        None => ("valid; completeness not checked", UNCHECKED),
    };
    let results: Vec<String> =
        decided.iter().map(|(word, count)| format!("{} {count}", plain(word))).collect();
    let mut lines = vec![
        format!("tenant     {}", plain(&first.tenant_id)),
        format!("decisions  {count}: {}", results.join(", ")),
        format!("first      {}, {}", first.decision_id, plain(&first.evaluated_at)),
        format!("last       {}, {}", last.decision_id, plain(&last.evaluated_at)),
    ];
    for span in spans.into_iter().flatten() {
        let origin = plain(&span.origin);
        lines
            .push(format!("log        {origin}: every index from {} to {}", span.first, span.last));
    }
    lines.extend(Some(unchecked.to_owned()).filter(|text| !text.is_empty()));
    let spans = spans.map(|spans| spans.iter().map(shown).collect::<Vec<_>>());
    let end =
        |of: &Exported| json!({"decision_id": of.decision_id, "evaluated_at": of.evaluated_at});
    let about = json!({"tenant_id": first.tenant_id, "decisions": count, "decided": decided,
                       "first": end(first), "last": end(last), "log": spans});
    let json = json!({"ok": true, "trusted": true, "found": text, "about": about});
    let (text, json) = (text.to_owned(), Some(json.to_string()));
    CommandOutput { text, json, aside: lines.join("\n"), ..CommandOutput::default() }
}

/// The limit of an export without packs.
const UNCHECKED: &str = "Each decision is genuine. Completeness was not checked: a line that was removed together \
                         with its count does not show. Pass the decisions' packs with --packs (docs/guides/audit.md).";

fn shown(span: &LogSpan) -> Value {
    json!({"origin": span.origin, "first_index": span.first, "last_index": span.last})
}

/// Adds the remedy to a fault. If a line is out of order because it repeats an earlier line, reports
/// the earlier line.
fn failure(fault: ExportFault, file: &Path) -> Failure {
    let fault = match fault {
        ExportFault::OutOfOrder { line, id } => match earlier(file, line, &id) {
            Some(earlier) => ExportFault::Repeated { line, earlier },
            None => ExportFault::OutOfOrder { line, id },
        },
        fault => fault,
    };
    let advice = advice(&fault);
    let failure = if fault.is_unreadable() { Failure::usage(fault) } else { Failure::new(fault) };
    failure.with(advice)
}

fn advice(fault: &ExportFault) -> &'static str {
    match fault {
        ExportFault::Line { fault, .. } | ExportFault::Pack { fault, .. } if fault.lacks_key() => {
            NEWER_KEYS
        }
        ExportFault::Empty | ExportFault::NoDecision => {
            "check the tenant and the times of the export: agent-authority decisions export --tenant, --since, --until"
        }
        ExportFault::Line { line: 1, fault } if is_foreign(fault) => {
            "an export has a decision on each line, as `agent-authority decisions export` writes it; packs and bundles \
             are verified without --export"
        }
        ExportFault::OtherTenant { .. } => {
            "verify an export of one tenant: agent-authority decisions export --tenant"
        }
        ExportFault::CutLine { .. } | ExportFault::NoEnd { .. } => {
            "export again, until the command reports that the export is complete"
        }
        ExportFault::AfterEnd { .. } => "verify each export in a file of its own",
        ExportFault::Missing { .. } => {
            "export without --subject, --action, --decision and --reason-code, and from a minute earlier to a minute \
             later: the log is not exactly in the order of time"
        }
        ExportFault::Pack { .. } | ExportFault::NoPack { .. } | ExportFault::SurplusPack { .. } => {
            "write the packs of this export's decisions again, in the same order: agent-authority decisions packs"
        }
        ExportFault::Line { .. }
        | ExportFault::Count { .. }
        | ExportFault::Repeated { .. }
        | ExportFault::OutOfOrder { .. } => {
            "the file is not as the service wrote it: export again, and compare the two files"
        }
    }
}

/// Whether the first line is of another kind of file.
fn is_foreign(fault: &Fault) -> bool {
    match fault {
        Fault::Invalid { cause, .. } => *cause == Cause::Fields,
        _ => true,
    }
}

/// Returns the line before `line` that has the same decision. A pipe can't be read again.
fn earlier(file: &Path, line: u64, id: &str) -> Option<u64> {
    file.metadata().ok().filter(std::fs::Metadata::is_file)?;
    let mut lines = Lines::open(file).ok()?;
    while let Some(text) = lines.next().ok()? {
        if std::str::from_utf8(text).is_ok_and(|text| text.contains(id)) {
            break;
        }
    }
    Some(lines.number).filter(|number| *number < line)
}

/// A file, line by line.
struct Lines {
    file: String,
    from: BufReader<File>,
    line: Vec<u8>,
    /// The number of the last line, from 1.
    number: u64,
}

impl Lines {
    fn open(file: &Path) -> Result<Self, Failure> {
        let shown = file.display().to_string();
        let opened = File::open(file)
            .map_err(|why| Failure::usage(format!("unreadable: {shown}: {why}")))?;
        Ok(Self { file: shown, from: BufReader::new(opened), line: Vec::new(), number: 0 })
    }

    /// Returns the next line with its line break.
    fn next(&mut self) -> Result<Option<&[u8]>, Failure> {
        self.line.clear();
        let most = u64::try_from(LONGEST + 1).unwrap_or(u64::MAX);
        let mut limited = self.from.by_ref().take(most);
        limited
            .read_until(b'\n', &mut self.line)
            .map_err(|why| Failure::usage(format!("unreadable: {}: {why}", self.file)))?;
        if self.line.is_empty() {
            return Ok(None);
        }
        self.number += 1;
        if self.line.len() > LONGEST {
            let (line, file) = (self.number, &self.file);
            return Err(Failure::usage(format!(
                "unreadable: line {line} of {file} is longer than {LONGEST} bytes: it is not an \
                 export"
            )));
        }
        Ok(Some(&self.line))
    }
}
