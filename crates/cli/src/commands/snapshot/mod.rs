//! `snapshot push`: submits a dated observation of an anchor, from a file or an address.
//!
//! `source.rs` reads the content, `format.rs` and `ecb.rs` parse the observed values, `key.rs`
//! signs the snapshot.

mod cubes;
mod document;
mod ecb;
mod format;
mod key;
mod source;
mod times;

use std::path::PathBuf;

use authority_crypto::sha256;
use authority_ids::{EntityId, EntityRef, IdParts, TenantRef};
use authority_model::{proto::reality::RealitySnapshot, wire::Time};
use authority_process::clock::Clock;
use authority_registry::signed_snapshot;
use chrono::{DateTime, TimeDelta, Utc};
use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};

use crate::{
    arguments::tenant_id,
    connect::{Connector, ServerArgs},
    outcome::{CommandOutput, Failure},
    record::Record,
};
use format::Format;
use key::Key;
use source::Source;

#[derive(Debug, Subcommand)]
pub enum Snapshot {
    /// Submits a snapshot of an anchor, as the owner or with an API key among its feeders
    Push(Box<Push>),
}

#[derive(Debug, Args)]
pub struct Push {
    /// The observed anchor
    #[arg(long, value_name = "ID", value_parser = anchor)]
    anchor: Anchor,
    /// Its content: a file, an https address, or `-` for the standard input; 4 MiB at most
    #[arg(long, value_name = "FILE|URL", value_parser = source::parse)]
    from: Source,
    /// The format of the content [default: by the content]
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// When it was observed: RFC 3339, or `now` [default: the time in the content, otherwise the
    /// file's modification time, otherwise now]
    #[arg(long, value_name = "TIME", value_parser = times::moment)]
    sampled_at: Option<DateTime<Utc>>,
    /// How long it is valid from then on: seconds, or `90m`, `26h`, `4d`
    #[arg(long, value_name = "SECONDS|26h", value_parser = times::duration)]
    valid_for: Option<TimeDelta>,
    /// The source's own version of the content [default: the version in the content]
    #[arg(long, value_name = "TEXT")]
    source_version: Option<String>,
    /// A value of a JSON document to observe, as JSON Pointer (RFC 6901): `/a/b`; repeat it
    #[arg(long, value_name = "POINTER")]
    observe: Vec<String>,
    /// A tag; repeat it
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// The private key to sign with, PKCS #8 in PEM: Ed25519, P-256, P-384 or RSA
    #[arg(long, value_name = "KEY.pem")]
    sign: Option<PathBuf>,
    /// The key's id in the anchor's `jwks` [default: its thumbprint, RFC 7638]
    #[arg(long, requires = "sign")]
    kid: Option<String>,
    /// Print the snapshot and, with --sign, the public key for the anchor, without sending
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    server: ServerArgs,
}

/// An anchor, and its tenant, which is part of the id.
#[derive(Clone, Debug)]
struct Anchor {
    id: EntityRef,
    tenant_id: TenantRef,
}

const RECORD: Record =
    Record { path: &["api", "v1", "reality-snapshots"], envelope: Some("reality_snapshot") };
/// The path at which API keys submit snapshots.
const FEEDING: [&str; 2] = ["v1", "reality-snapshots"];

impl Snapshot {
    pub(super) async fn run(self, connector: &Connector<'_>) -> Result<CommandOutput, Failure> {
        match self {
            Self::Push(push) => push.run(connector).await,
        }
    }
}

impl Push {
    async fn run(self, connector: &Connector<'_>) -> Result<CommandOutput, Failure> {
        // Read before any content is fetched.
        let key = self.sign.as_deref().map(|file| Key::read(file, self.kid.clone()));
        let key = key.transpose()?;
        let snapshot = self.snapshot(key.as_ref()).await?;
        let body = body(&snapshot);
        if self.dry_run {
            return Ok(would_send(&body, key.as_ref()));
        }
        let server = connector.connect(self.server).await?;
        let path = if server.has_api_key() { &FEEDING[..] } else { RECORD.path };
        let made = server.post(path, &body).await?;
        RECORD.shown(&server, made)
    }

    /// Reads the content as a snapshot, signed if a key is given.
    async fn snapshot(&self, key: Option<&Key>) -> Result<RealitySnapshot, Failure> {
        let content = self.from.read().await?;
        let now = Clock::default().now();
        let document = format::read(&content.bytes, self.format, &self.observe, now)?;
        let sampled_at = self.sampled_at.or(document.sampled_at).unwrap_or(content.at);
        let valid_until = self.valid_for.map(|time| {
            let until = sampled_at.checked_add_signed(time);
            until.and_then(stored).ok_or_else(|| Failure::usage("--valid-for: is too long"))
        });
        let sampled_at = stored(sampled_at)
            .ok_or_else(|| Failure::usage("--sampled-at: must be of the years 1 to 9999"))?;
        let mut snapshot = RealitySnapshot {
            tenant_id: Some((&self.anchor.tenant_id).into()),
            anchor_id: (&self.anchor.id).into(),
            sampled_at: Some(sampled_at),
            valid_until: valid_until.transpose()?,
            source_version: self.source_version.clone().or(document.source_version),
            content_hash: format!("sha256:{}", hex::encode(sha256(&content.bytes))),
            observations: document.observations,
            tags: self.tags.clone(),
            ..RealitySnapshot::default()
        };
        if !snapshot.observations.is_empty() {
            let hash = signed_snapshot::digest(&snapshot.observations).map_err(Failure::new)?;
            snapshot.observations_hash = Some(hash);
        }
        if let Some(key) = key {
            snapshot.signature = Some(key.signature(&snapshot)?);
        }
        Ok(snapshot)
    }
}

/// Returns the time as the service stores it, if it is in range.
fn stored(at: DateTime<Utc>) -> Option<Time> {
    let time = Time::from(at);
    time.moment().map(|_| time)
}

/// The fields of a snapshot that a caller sets.
fn body(snapshot: &RealitySnapshot) -> Value {
    let list = |items: Value| Some(items).filter(|items| *items != json!([]));
    let members = [
        ("tenant_id", snapshot.tenant_id.clone().map(Value::from)),
        ("anchor_id", Some(snapshot.anchor_id.clone().into())),
        ("sampled_at", snapshot.sampled_at.map(|at| at.to_string().into())),
        ("valid_until", snapshot.valid_until.map(|at| at.to_string().into())),
        ("source_version", snapshot.source_version.clone().map(Value::from)),
        ("content_hash", Some(snapshot.content_hash.clone().into())),
        ("observations", list(json!(snapshot.observations))),
        ("tags", list(json!(snapshot.tags))),
        ("signature", snapshot.signature.as_ref().map(|signature| json!(signature))),
    ];
    let given = members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(given.collect::<Map<_, _>>())
}

fn would_send(body: &Value, key: Option<&Key>) -> CommandOutput {
    let aside = key.map(|key| format!("for the anchor's `source.jwks`: {}", key.public_jwk()));
    CommandOutput {
        text: format!("{body:#}"),
        json: Some(body.to_string()),
        aside: aside.unwrap_or_default(),
        ..CommandOutput::default()
    }
}

/// Parses `--anchor`.
fn anchor(text: &str) -> Result<Anchor, &'static str> {
    let parts = IdParts::of(text).filter(|parts| parts.kind == "reality_anchor");
    let slug = parts.and_then(|parts| parts.tenant_slug).filter(|_| EntityId::check(text).is_ok());
    let slug = slug.ok_or("is not an anchor's id, `svc:ent:<tenant>:reality_anchor:<id>`")?;
    Ok(Anchor { id: text.into(), tenant_id: tenant_id(slug) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_anchors_id_contains_its_tenant() {
        let made = anchor("svc:ent:acme:reality_anchor:1").unwrap();
        assert_eq!(made.tenant_id, "svc:tenant:acme");
        for other in ["", "acme", "svc:ent:acme:principal:1", "svc:ent::reality_anchor:1"] {
            assert!(anchor(other).is_err(), "{other}");
        }
    }

    #[test]
    fn what_was_not_given_is_not_sent() {
        let snapshot = RealitySnapshot {
            tenant_id: Some("svc:tenant:acme".to_owned()),
            content_hash: "sha256:a".to_owned(),
            sampled_at: Some(DateTime::UNIX_EPOCH.into()),
            observations_hash: Some("sha256:b".to_owned()),
            ..RealitySnapshot::default()
        };
        let expected = json!({"tenant_id": "svc:tenant:acme", "anchor_id": "",
                              "sampled_at": "1970-01-01T00:00:00Z", "content_hash": "sha256:a"});
        assert_eq!(body(&snapshot), expected);
    }
}
