//! `archive`: archived months of decisions, without a service or a database.

use std::path::PathBuf;

use authority_archive::{
    Bucket, Error,
    offline::{self, ArchivedMonth, Damage},
};
use authority_evidence::{
    archive::Manifest,
    verify::{Trust, Valid, key_set},
};
use authority_ids::{DecisionId, DecisionRef};
use clap::Subcommand;
use serde_json::{Value, json};

use crate::outcome::{CommandOutput, Failure};

const PLACE: &str = "The archive, or a folder of it: file:///folder or s3://bucket/prefix";

/// The location of archives: `file:///folder` or `s3://bucket/prefix` (credentials, region and
/// endpoint in `AWS_*`).
#[derive(Debug, Subcommand)]
pub enum Archive {
    /// Verify archives: signatures, digests, indexes, and every decision's bundle
    Verify {
        #[arg(help = PLACE)]
        url: String,
        /// The service's trusted public keys (its /.well-known/jwks.json, saved before)
        #[arg(long, value_name = "FILE")]
        jwks: Option<PathBuf>,
        /// Fail unless every signature is by a given key
        #[arg(long, requires = "jwks")]
        require_trust: bool,
    },
    /// Print the evidence bundle of an archived decision
    Get {
        #[arg(help = PLACE)]
        url: String,
        decision_id: DecisionRef,
    },
    /// List the archived months
    List {
        #[arg(help = PLACE)]
        url: String,
    },
}

impl Archive {
    pub async fn run(&self) -> Result<CommandOutput, Failure> {
        match self {
            Self::Verify { url, jwks, require_trust } => {
                let keys = jwks.as_ref().map(|file| {
                    let unread = |why| Failure::usage(format!("{}: {why}", file.display()));
                    key_set(&std::fs::read(file).map_err(unread)?).map_err(Failure::usage)
                });
                let trust = Trust { keys: keys.transpose()?, log_key: None };
                verify(url, &trust, *require_trust).await
            }
            Self::Get { url, decision_id } => {
                let id = DecisionId::parse(decision_id);
                let id = id.map_err(|why| Failure::usage(format!("`{decision_id}` {why}")))?;
                let found = offline::get(&open(url)?, &id).await.map_err(failure)?;
                let missing = || Failure::new(format!("no archive below {url} has `{id}`"));
                Ok(CommandOutput::exactly(found.ok_or_else(missing)?))
            }
            Self::List { url } => list(url).await,
        }
    }
}

fn open(url: &str) -> Result<Bucket, Failure> {
    Bucket::open(url).map_err(Failure::usage)
}

/// Maps an error to an exit code: 1 for damage, 2 for a bucket that cannot be read.
fn failure(error: Error) -> Failure {
    match error {
        Error::Damaged(..) | Error::Format(_) => Failure::new(error),
        error => Failure::usage(error),
    }
}

/// The advice for a signature by a key that is not among the trusted keys.
pub(super) const NEWER_KEYS: &str =
    "save the service's /.well-known/jwks.json again: its keys are replaced from time to time";

/// Finds all archives below a URL. It is an error if there are none.
async fn find(bucket: &Bucket, url: &str, trust: &Trust) -> Result<Vec<ArchivedMonth>, Failure> {
    let found = offline::list(bucket, trust).await.map_err(failure)?;
    if found.is_empty() {
        return Err(Failure::usage(format!("no archive manifest found below {url}")));
    }
    Ok(found)
}

/// Verifies all archives below a URL. Valid archives are printed even if others are damaged.
async fn verify(url: &str, trust: &Trust, require_trust: bool) -> Result<CommandOutput, Failure> {
    let bucket = open(url)?;
    let found = find(&bucket, url, trust).await?;
    let (mut lines, mut shown) = (Vec::new(), Vec::new());
    let mut lacks_key = false;
    let mut faults: Vec<String> = offline::doubled(&found)
        .map(|(one, other)| format!("{} and {} contain the same month", one.path(), other.path()))
        .collect();
    for archive in &found {
        let (manifest, valid) = match &archive.manifest {
            Ok(manifest) => manifest,
            Err(fault) => {
                lacks_key |= fault.lacks_key();
                faults.push(format!("{}: {fault}", archive.path()));
                continue;
            }
        };
        let damages = offline::inspect(&bucket, archive, manifest, trust).await.map_err(failure)?;
        lacks_key |= damages.iter().any(|damage| damage.lacks_key);
        let wrong = wrong(archive, manifest, valid, &damages, require_trust);
        if wrong.is_empty() {
            lines.push(format!("{}: {valid}, {}", place(archive), counted(manifest)));
        }
        shown.push(json!({"folder": archive.folder, "found": valid.to_string(),
                          "decisions": manifest.decisions, "trusted": *valid == Valid::Trusted,
                          "ok": wrong.is_empty()}));
        faults.extend(wrong);
    }
    let json = json!({"ok": faults.is_empty(), "archives": shown}).to_string();
    let output =
        CommandOutput { text: lines.join("\n"), json: Some(json), ..CommandOutput::default() };
    if faults.is_empty() {
        return Ok(output);
    }
    if lacks_key {
        faults.push(NEWER_KEYS.to_owned());
    }
    Err(Failure::new(faults.join("\n")).after(output))
}

/// Returns all faults of an archive with an intact manifest.
fn wrong(
    archive: &ArchivedMonth,
    manifest: &Manifest,
    valid: &Valid,
    damages: &[Damage],
    require_trust: bool,
) -> Vec<String> {
    let mut wrong = Vec::new();
    if archive.is_misplaced() {
        wrong.push(format!(
            "{}: its manifest is for {} in {}, not for this folder",
            archive.path(),
            manifest.tenant_id,
            manifest.month
        ));
    }
    wrong
        .extend(damages.iter().map(|one| format!("{}: {}", archive.beside(&one.object), one.what)));
    if require_trust && *valid != Valid::Trusted {
        wrong.push(format!("{}: {valid}", archive.path()));
    }
    wrong
}

async fn list(url: &str) -> Result<CommandOutput, Failure> {
    let found = find(&open(url)?, url, &Trust::default()).await?;
    let lines: Vec<String> = found.iter().map(line).collect();
    let shown: Vec<Value> = found.iter().map(shown).collect();
    let json = json!({"archives": shown}).to_string();
    Ok(CommandOutput { text: lines.join("\n"), json: Some(json), ..CommandOutput::default() })
}

/// The archive's folder, or its manifest if the URL is the folder.
fn place(found: &ArchivedMonth) -> &str {
    if found.folder.is_empty() { &found.name } else { &found.folder }
}

fn line(found: &ArchivedMonth) -> String {
    match &found.manifest {
        Ok((manifest, _)) => {
            format!("{}: {}, {}", place(found), counted(manifest), manifest.archived_at)
        }
        Err(fault) => format!("{}: {fault}", found.path()),
    }
}

fn shown(found: &ArchivedMonth) -> Value {
    match &found.manifest {
        Ok((manifest, _)) => json!({
            "folder": found.folder, "manifest": found.name, "tenant_id": manifest.tenant_id,
            "month": manifest.month, "decisions": manifest.decisions, "versions": manifest.versions,
            "changes": manifest.changes, "bytes": bytes(manifest), "archived_at": manifest.archived_at,
        }),
        Err(fault) => {
            json!({"folder": found.folder, "manifest": found.name, "error": fault.to_string()})
        }
    }
}

fn counted(manifest: &Manifest) -> String {
    format!(
        "{} decisions, {} versions and {} changes in {} bytes",
        manifest.decisions,
        manifest.versions,
        manifest.changes,
        bytes(manifest)
    )
}

fn bytes(manifest: &Manifest) -> u64 {
    manifest.objects.iter().map(|object| object.bytes).sum()
}
