//! `archive`: archived months of decisions, without a service or a database.

use std::path::PathBuf;

use authority_archive::{
    Bucket, Error,
    offline::{self, Found},
};
use authority_evidence::{
    archive::Manifest,
    verify::{Fault, Trust, Valid, key_set},
};
use authority_ids::DecisionId;
use clap::Subcommand;
use serde_json::{Value, json};

use super::outcome::{CommandOutput, Failure};

const PLACE: &str = "The archive, or a folder of it: file:///folder or s3://bucket/prefix";

/// Where archives are: `file:///folder` or `s3://bucket/prefix` (credentials, region and endpoint in `AWS_*`).
#[derive(Debug, Subcommand)]
pub(super) enum Archive {
    /// Verify archives: signatures, digests, indexes, and every decision's bundle
    Verify {
        #[arg(help = PLACE)]
        url: String,
        /// The service's trusted public keys (its /.well-known/jwks.json, saved before)
        #[arg(long, value_name = "FILE")]
        jwks: Option<PathBuf>,
        /// Fail unless every signature is by a key that was given
        #[arg(long, requires = "jwks")]
        require_trust: bool,
    },
    /// Print the evidence bundle of an archived decision
    Get {
        #[arg(help = PLACE)]
        url: String,
        decision_id: String,
    },
    /// List the archived months
    List {
        #[arg(help = PLACE)]
        url: String,
    },
}

impl Archive {
    pub(super) async fn run(&self) -> Result<CommandOutput, Failure> {
        match self {
            Self::Verify { url, jwks, require_trust } => {
                let keys = jwks.as_ref().map(|file| {
                    let unread = |why| Failure::usage(format!("{}: {why}", file.display()));
                    key_set(&std::fs::read(file).map_err(unread)?).map_err(Failure::usage)
                });
                let trust = Trust { keys: keys.transpose()?, log_key: None };
                verify(&open(url)?, &trust, *require_trust).await
            }
            Self::Get { url, decision_id } => {
                let id = DecisionId::parse(decision_id);
                let id = id.map_err(|why| Failure::usage(format!("`{decision_id}` {why}")))?;
                let found = offline::get(&open(url)?, &id).await.map_err(failure)?;
                let missing = || Failure::new(format!("no archive below {url} has `{id}`"));
                Ok(CommandOutput::whole(found.ok_or_else(missing)?))
            }
            Self::List { url } => list(&open(url)?).await,
        }
    }
}

fn open(url: &str) -> Result<Bucket, Failure> {
    Bucket::open(url).map_err(Failure::usage)
}

/// What is damaged is found, and exit code 1; a bucket that cannot be read is 2.
fn failure(error: Error) -> Failure {
    match error {
        Error::Damaged(..) | Error::Format(_) => Failure::new(error),
        error => Failure::usage(error),
    }
}

async fn verify(
    bucket: &Bucket,
    trust: &Trust,
    require_trust: bool,
) -> Result<CommandOutput, Failure> {
    let found = offline::list(bucket, trust).await.map_err(failure)?;
    if found.is_empty() {
        return Err(Failure::usage("there is no manifest of an archive"));
    }
    let (mut lines, mut faults, mut shown) = (Vec::new(), Vec::new(), Vec::new());
    for archive in &found {
        let place = format!("{}/{}", archive.folder, archive.name);
        let (manifest, valid) = match &archive.manifest {
            Ok(manifest) => manifest,
            Err(fault @ Fault::Unreadable(_)) => {
                return Err(Failure::usage(format!("{place}: {fault}")));
            }
            Err(fault) => {
                faults.push(format!("{place}: {fault}"));
                continue;
            }
        };
        let damages = offline::inspect(bucket, archive, manifest, trust).await.map_err(failure)?;
        let folder = &archive.folder;
        faults.extend(damages.iter().map(|one| format!("{folder}/{}: {}", one.object, one.what)));
        if require_trust && *valid != Valid::Trusted {
            faults.push(format!("{place}: {valid}"));
        }
        lines.push(format!("{folder}: {valid}, {}", counted(manifest)));
        shown.push(json!({"folder": folder, "found": valid.to_string(),
                          "decisions": manifest.decisions, "trusted": *valid == Valid::Trusted}));
    }
    if !faults.is_empty() {
        return Err(Failure::new(faults.join("\n")));
    }
    let json = json!({"ok": true, "archives": shown}).to_string();
    Ok(CommandOutput { text: lines.join("\n"), json: Some(json), ..CommandOutput::default() })
}

async fn list(bucket: &Bucket) -> Result<CommandOutput, Failure> {
    let found = offline::list(bucket, &Trust::default()).await.map_err(failure)?;
    let lines: Vec<String> = found.iter().map(line).collect();
    let shown: Vec<Value> = found.iter().map(shown).collect();
    let json = json!({"archives": shown}).to_string();
    Ok(CommandOutput { text: lines.join("\n"), json: Some(json), ..CommandOutput::default() })
}

fn line(found: &Found) -> String {
    match &found.manifest {
        Ok((manifest, _)) => {
            format!("{}: {}, {}", found.folder, counted(manifest), manifest.archived_at)
        }
        Err(fault) => format!("{}/{}: {fault}", found.folder, found.name),
    }
}

fn shown(found: &Found) -> Value {
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
