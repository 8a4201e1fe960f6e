//! Checks an export of decisions, line by line: each record's digest, id and signature, and that
//! the lines are one whole export of one tenant.
//!
//! The lines can't show that the service exported every decision. For that, `places.rs` checks the
//! places of the decisions' packs in the log.

use std::{cmp::Ordering, collections::BTreeMap};

use base64::{Engine, engine::general_purpose::STANDARD};
use chrono::DateTime;
use serde_json::Value;

use authority_decision::Amount;

use super::{
    canonical::{canonical, digest},
    fault::{Fault, need},
    pack, read,
    shape::{EXPORT_END, EXPORT_LINE, fit},
    signed,
    trust::KeySet,
};

/// The reason why an export or its packs are not valid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExportFault {
    #[error("unreadable: the file is empty: no decision was verified")]
    Empty,
    #[error("invalid: the export contains no decision to verify")]
    NoDecision,
    #[error("{}", placed("", *.line, .fault))]
    Line { line: u64, fault: Fault },
    #[error("invalid: line {line}: is cut off: it is not JSON and has no line break")]
    CutLine { line: u64 },
    #[error("invalid: the export is cut off after line {line}, `{last}`: no line has `end`")]
    NoEnd { line: u64, last: String },
    #[error("invalid: line {line}: follows the line with `end`, the last of an export")]
    AfterEnd { line: u64 },
    #[error("invalid: line {line}: count: is {stated}, but {found} decisions precede it")]
    Count { line: u64, stated: u64, found: u64 },
    #[error("invalid: line {line}: decision.decision_id: repeats line {earlier}")]
    Repeated { line: u64, earlier: u64 },
    #[error(
        "invalid: line {line}: decision.decision_id: is out of order: `{id}` is before the id of the previous line"
    )]
    OutOfOrder { line: u64, id: String },
    #[error(
        "invalid: line {line}: decision.tenant_id: is `{found}`, but the lines before are of `{wanted}`"
    )]
    OtherTenant { line: u64, found: String, wanted: String },
    #[error("{}", placed(" of the packs", *.line, .fault))]
    Pack { line: u64, fault: Fault },
    #[error("invalid: the packs end before line {line} of the export, `{id}`")]
    NoPack { line: u64, id: String },
    #[error("invalid: line {line} of the packs: follows the pack of the last decision")]
    SurplusPack { line: u64 },
    #[error(
        "invalid: log.index: {count} of `{origin}` are missing, the first is {first}: the log has decisions that \
         are not in the export"
    )]
    Missing { origin: String, first: u64, count: u64 },
}

impl ExportFault {
    /// Whether the file can't be read. Otherwise it is an invalid export.
    pub fn is_unreadable(&self) -> bool {
        let fault = match self {
            Self::Line { fault, .. } | Self::Pack { fault, .. } => Some(fault),
            _ => None,
        };
        *self == Self::Empty || matches!(fault, Some(Fault::Unreadable(_)))
    }
}

/// Returns the text of a fault with its line.
fn placed(file: &str, line: u64, fault: &Fault) -> String {
    match fault {
        Fault::Invalid { path, what, .. } if path.is_empty() => {
            format!("invalid: line {line}{file}: {what}")
        }
        Fault::Invalid { path, what, .. } => format!("invalid: line {line}{file}: {path}: {what}"),
        Fault::Unreadable(what) => format!("unreadable: line {line}{file}: {what}"),
        Fault::Unproven { .. } => fault.to_string(),
    }
}

/// A verified decision of an export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Exported {
    /// The number of its line, from 1.
    pub line: u64,
    pub decision_id: String,
    pub tenant_id: String,
    pub decision: String,
    /// RFC 3339, UTC.
    pub evaluated_at: String,
    /// The address of its receipt, without the id.
    receipts: String,
}

/// The content of a valid export.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    pub first: Exported,
    pub last: Exported,
    /// The number of decisions by result.
    pub decided: BTreeMap<String, u64>,
}

/// Verifies the lines of one export. The memory used does not grow with the file.
#[derive(Clone)]
pub struct Export<'a> {
    keys: &'a KeySet,
    lines: u64,
    first: Option<Exported>,
    last: Option<Exported>,
    decided: BTreeMap<String, u64>,
    is_complete: bool,
}

impl<'a> Export<'a> {
    /// `keys` are the trusted keys of the service: an export contains no keys.
    pub fn new(keys: &'a KeySet) -> Self {
        Self {
            keys,
            lines: 0,
            first: None,
            last: None,
            decided: BTreeMap::new(),
            is_complete: false,
        }
    }

    /// Verifies the next line, with its line break. Returns its decision; `None` for the last line.
    ///
    /// # Errors
    /// The first fault of the line, or of its place in the export.
    pub fn line(&mut self, text: &[u8]) -> Result<Option<&Exported>, ExportFault> {
        self.lines += 1;
        let line = self.lines;
        if self.is_complete {
            return Err(ExportFault::AfterEnd { line });
        }
        let document = read::strict(text).map_err(|fault| match fault {
            Fault::Unreadable(_) if !text.ends_with(b"\n") => ExportFault::CutLine { line },
            fault => ExportFault::Line { line, fault },
        })?;
        if document["end"] == true {
            self.end(&document)?;
            return Ok(None);
        }
        let found = decision(&document, self.keys, line);
        let found = found.map_err(|fault| ExportFault::Line { line, fault })?;
        if let Some(last) = &self.last {
            follows(last, &found)?;
        }
        *self.decided.entry(found.decision.clone()).or_default() += 1;
        if self.first.is_none() {
            self.first = Some(found.clone());
        }
        let last: &Exported = self.last.insert(found);
        Ok(Some(last))
    }

    fn end(&mut self, document: &Value) -> Result<(), ExportFault> {
        let line = self.lines;
        let empty = ["decision", "record", "evidence_pack", "context"];
        fit(document, &EXPORT_END, "")
            .and_then(|()| absent(document, &empty, "does not belong to the last line"))
            .map_err(|fault| ExportFault::Line { line, fault })?;
        let (stated, found) = (document["count"].as_u64().unwrap_or_default(), line - 1);
        if stated != found {
            return Err(ExportFault::Count { line, stated, found });
        }
        self.is_complete = true;
        Ok(())
    }

    /// Returns the content of the export. Call it after the last line.
    ///
    /// # Errors
    /// The export has no last line, or no decision.
    pub fn finish(self) -> Result<Summary, ExportFault> {
        match (self.first, self.last) {
            (Some(first), Some(last)) if self.is_complete => {
                Ok(Summary { first, last, decided: self.decided })
            }
            (_, Some(last)) => Err(ExportFault::NoEnd { line: self.lines, last: last.decision_id }),
            _ if self.is_complete => Err(ExportFault::NoDecision),
            _ => Err(ExportFault::Empty),
        }
    }
}

/// Checks that a decision may follow another in one export.
fn follows(last: &Exported, found: &Exported) -> Result<(), ExportFault> {
    let line = found.line;
    if found.tenant_id != last.tenant_id {
        let (found, wanted) = (found.tenant_id.clone(), last.tenant_id.clone());
        return Err(ExportFault::OtherTenant { line, found, wanted });
    }
    match found.decision_id.cmp(&last.decision_id) {
        Ordering::Greater => {}
        Ordering::Equal => return Err(ExportFault::Repeated { line, earlier: last.line }),
        Ordering::Less => {
            return Err(ExportFault::OutOfOrder { line, id: found.decision_id.clone() });
        }
    }
    let same = found.receipts == last.receipts;
    need(same, "decision.verify_url", "is of another address than the line before")
        .map_err(|fault| ExportFault::Line { line, fault })
}

fn absent(document: &Value, members: &[&str], what: &str) -> Result<(), Fault> {
    members.iter().try_for_each(|member| need(document[member].is_null(), member, what))
}

/// Verifies the line of a decision.
fn decision(document: &Value, keys: &KeySet, line: u64) -> Result<Exported, Fault> {
    fit(document, &EXPORT_LINE, "")?;
    absent(document, &["next", "count"], "belongs to the last line only")?;
    let is_inner = document["end"].is_null() || document["end"] == false;
    need(is_inner, "end", "must be true or false")?;
    let (summary, record) = (&document["decision"], &document["record"]);
    let (proof, bytes) = (&document["evidence_pack"], canonical(record)?);
    let text = |member: &str| summary[member].as_str().unwrap_or_default().to_owned();
    let id = String::from(&pack::decision_id(record, &bytes, "")?);
    let same = proof["record_digest"] == digest(&bytes).as_str();
    need(same, "evidence_pack.record_digest", "is not the record's")?;
    need(text("decision_id") == id, "decision.decision_id", "is not the record's")?;
    signed::check(&proof["signature"], "evidence", &bytes, keys, "evidence_pack.signature")?;
    let copies = [
        ("tenant_id", &record["tenant_id"]),
        ("subject", &record["request"]["subject"]),
        ("action", &record["request"]["action"]),
        ("decision", &record["verdict"]["decision"]),
        ("reason_code", &record["verdict"]["reason_code"]),
    ];
    for (member, signed) in copies {
        let same = summary[member] == *signed;
        need(same, &format!("decision.{member}"), "is not the record's")?;
    }
    // The two times may differ in trailing zeros of the fraction.
    let moment = |value: &Value| {
        let text = value.as_str().filter(|text| pack::milliseconds(text).is_some());
        DateTime::parse_from_rfc3339(text?).ok()
    };
    let same = moment(&summary["evaluated_at"]) == moment(&record["evaluated_at"]);
    need(same, "decision.evaluated_at", "is not the record's")?;
    let address = text("verify_url");
    let receipts = address.strip_suffix(&id);
    need(receipts.is_some(), "decision.verify_url", "does not end in the decision's id")?;
    let context = &document["context"];
    if !context.is_null() {
        let salt = STANDARD.decode(context["salt"].as_str().unwrap_or_default());
        let salted = [salt.unwrap_or_default(), canonical(&context["value"])?].concat();
        let same = record["request"]["context_digest"] == digest(&salted).as_str();
        need(same, "context", "does not have the record's digest")?;
        let amount = context["value"]["amount"].as_number().map(Amount::from_number);
        let amount = amount.and_then(Result::ok).map(|amount| amount.to_string());
        let same = summary["amount"].as_str() == amount.as_deref();
        need(same, "decision.amount", "is not the context's")?;
        let same = summary["currency"].as_str() == context["value"]["currency"].as_str();
        need(same, "decision.currency", "is not the context's")?;
    }
    Ok(Exported {
        line,
        tenant_id: text("tenant_id"),
        decision: text("decision"),
        evaluated_at: text("evaluated_at"),
        receipts: receipts.unwrap_or_default().to_owned(),
        decision_id: id,
    })
}
