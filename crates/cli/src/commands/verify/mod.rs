//! `verify` and `replay`: evidence files, offline, without a service or a database.

mod export;
mod trust;

use std::{
    fs,
    path::{Path, PathBuf},
};

use authority_evidence::verify::{
    Fault, Trust, Valid, consistency_path, sealed_in, verify, verify_seen,
};
use serde_json::{Value, json};

use crate::{
    outcome::{CommandOutput, Failure},
    text::plain,
};
use trust::TrustArgs;

/// The file, and the trusted keys.
#[derive(Debug, clap::Args)]
pub struct Verify {
    /// An evidence pack or a bundle, as `seal --pack` and `seal --bundle` write them, or a replay proof
    #[arg(required_unless_present = "export")]
    file: Option<PathBuf>,
    /// An export of one tenant's decisions, as `decisions export` writes it
    #[arg(long, value_name = "FILE", requires = "jwks", conflicts_with_all = ["file", "seen"])]
    export: Option<PathBuf>,
    /// The packs or bundles of the export's decisions, one on each line, in the same order: shows that no decision
    /// between the first and the last is missing
    #[arg(long, value_name = "FILE", requires = "export")]
    packs: Option<PathBuf>,
    #[command(flatten)]
    trust: TrustArgs,
    /// A checkpoint of the log that was seen elsewhere: a signed note, or a message of an audit stream
    #[arg(long, value_name = "FILE")]
    seen: Option<PathBuf>,
    /// The log's proof that one checkpoint continues the other; if missing, the command shows how
    /// to fetch it
    #[arg(long, value_name = "FILE", requires = "seen")]
    consistency: Option<PathBuf>,
    /// Fail unless every signature is by a given key
    #[arg(long)]
    require_trust: bool,
}

impl Verify {
    /// Exits with 0 if valid, 1 if invalid, 2 if unreadable.
    pub fn run(&self) -> Result<CommandOutput, Failure> {
        let trust = self.trust.read()?;
        match (&self.export, &self.file) {
            (Some(export), _) => export::verify(export, self.packs.as_deref(), &trust),
            (None, Some(file)) => self.evidence(file, &trust),
            (None, None) => Err(Failure::usage("a file to verify is missing")),
        }
    }

    fn evidence(&self, file: &Path, trust: &Trust) -> Result<CommandOutput, Failure> {
        let file = read(file).map_err(failure)?;
        let valid = verify(&file, trust).map_err(|fault| {
            let failure = failure(fault);
            if is_export(&file) { failure.with(EXPORT) } else { failure }
        })?;
        if let Some(seen) = &self.seen {
            let proof = self.consistency.as_deref().map(read).transpose().map_err(failure)?;
            read(seen)
                .and_then(|seen| verify_seen(&file, trust, &seen, proof.as_deref()))
                .map_err(failure)?;
        }
        if self.require_trust && valid != Valid::Trusted {
            return Err(Failure::new(valid));
        }
        let (text, about) = (valid.to_string(), about(&file));
        let trusted = valid == Valid::Trusted;
        let json = json!({"ok": true, "trusted": trusted, "found": text, "about": about});
        // Standard output has only the line defined in EVIDENCE.md.
        let aside = [said(&about), unchecked(&valid).to_owned()];
        let aside = aside.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>();
        let (json, aside) = (Some(json.to_string()), aside.join("\n"));
        Ok(CommandOutput { text, json, aside, ..CommandOutput::default() })
    }
}

/// The advice for an export.
const EXPORT: &str = "an export has a decision on each line and is not an evidence pack: verify it \
                      with `agent-authority verify --export FILE --jwks FILE`";

/// Whether a file has several documents, or a document from a list.
fn is_export(file: &[u8]) -> bool {
    let mut documents = serde_json::Deserializer::from_slice(file).into_iter::<Value>();
    let first = documents.next().and_then(Result::ok).unwrap_or_default();
    let is_line = first["decision_id"].is_string() && first["kind"].is_null();
    documents.next().is_some_and(|next| next.is_ok()) || first["decisions"].is_array() || is_line
}

/// Describes the verified file: the decision and, for a proof, the result of replaying it.
fn about(file: &[u8]) -> Value {
    let document: Value = serde_json::from_slice(file).unwrap_or_default();
    let pack = if document["pack"].is_object() { &document["pack"] } else { &document };
    let record = &pack["record"];
    json!({
        "decision_id": pack["decision_id"],
        "decision": record["verdict"]["decision"],
        "reason_code": record["verdict"]["reason_code"],
        "subject": record["request"]["subject"],
        "action": record["request"]["action"],
        "evaluated_at": record["evaluated_at"],
        "replay": pack["result"],
    })
}

/// Returns the description for people, one line for each item.
fn said(about: &Value) -> String {
    let lines = [
        ("decision", "decision_id"),
        ("outcome", "decision"),
        ("reason", "reason_code"),
        ("who", "subject"),
        ("what", "action"),
        ("when", "evaluated_at"),
        ("replay", "replay"),
    ];
    let lines = lines.iter().filter_map(|(heading, member)| {
        Some(format!("{heading:11}{}", plain(about[*member].as_str()?)))
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Describes checks that were skipped because no trusted key was given.
fn unchecked(valid: &Valid) -> &'static str {
    match valid {
        Valid::Trusted => "",
        Valid::IssuerNotPinned(_) => {
            "The issuer was not verified: the signature was checked with the key in the file, and \
             anyone can create such a file. Pass the service's published keys with --jwks."
        }
        Valid::LogNotPinned => {
            "The log's identity was not verified: pass --checkpoint-key, or a JWKS with the log's key."
        }
        Valid::CheckpointUnchecked => {
            "The signature of the log's checkpoint was not verified: pass --checkpoint-key, or a \
             JWKS with the log's key."
        }
    }
}

/// The bundle.
#[derive(Debug, clap::Args)]
pub struct Replay {
    /// An evidence bundle, as `seal --bundle` writes it
    file: PathBuf,
}

impl Replay {
    /// Repeats the decision on the bundle's own facts; exits with 1 if the record differs.
    pub fn run(&self) -> Result<CommandOutput, Failure> {
        let sealed = read(&self.file).and_then(|file| sealed_in(&file)).map_err(failure)?;
        let again = sealed.decide_again().map_err(Failure::new)?;
        if again.written.record != sealed.record {
            return Err(Failure::new(format!(
                "mismatch: deciding again gives `{}` ({}) as {}",
                again.verdict.decision, again.verdict.reason_code, again.written.decision_id
            )));
        }
        let (decision, reason) = (again.verdict.decision, again.verdict.reason_code);
        let id = again.written.decision_id;
        let json = json!({"result": "match", "decision": decision, "reason_code": reason,
                          "decision_id": id});
        let text = format!("match: {decision} ({reason}), {id}");
        Ok(CommandOutput { text, json: Some(json.to_string()), ..CommandOutput::default() })
    }
}

fn read(file: &Path) -> Result<Vec<u8>, Fault> {
    fs::read(file).map_err(|why| Fault::Unreadable(format!("{}: {why}", file.display())))
}

fn failure(fault: Fault) -> Failure {
    match fault {
        Fault::Invalid { .. } => Failure::new(fault),
        Fault::Unreadable(_) => Failure::usage(fault),
        Fault::Unproven { ref slug, from, to } => {
            let path = consistency_path(slug, from, to);
            Failure::usage(&fault)
                .with(
                    "fetch it, with a key that has `evidence:read`, and give it as --consistency:",
                )
                .with(&format!(
                    "curl -H \"Authorization: Bearer $KEY\" \"$URL{path}\" > proof.json"
                ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_export_is_told_from_a_bundle() {
        let line = json!({"decision_id": "svc:decision:01"});
        assert!(is_export(format!("{line}\n{line}\n").as_bytes()));
        assert!(is_export(line.to_string().as_bytes()));
        assert!(is_export(json!({"decisions": [line]}).to_string().as_bytes()));
        for other in [json!({"pack": line}).to_string(), String::new(), "{".to_owned()] {
            assert!(!is_export(other.as_bytes()), "{other}");
        }
    }

    #[test]
    fn what_was_verified_is_said() {
        let record = json!({"evaluated_at": "2026-11-23T08:09:36Z",
            "request": {"subject": "svc:agent:acme:bot", "action": "pay\u{1b}"},
            "verdict": {"decision": "deny", "reason_code": "no_authority"}});
        let pack = json!({"decision_id": "svc:decision:01", "record": record});
        let expected = "\
decision   svc:decision:01
outcome    deny
reason     no_authority
who        svc:agent:acme:bot
what       pay\\u{1b}
when       2026-11-23T08:09:36Z";
        // A bundle contains its pack.
        for file in [pack.clone(), json!({"pack": pack})] {
            assert_eq!(said(&about(file.to_string().as_bytes())), expected);
        }
        let proof = json!({"decision_id": "svc:decision:01", "result": "match"});
        let shown = said(&about(proof.to_string().as_bytes()));
        assert_eq!(shown, "decision   svc:decision:01\nreplay     match");
    }
}
