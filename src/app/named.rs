//! Objects that the settings refer to: the key ring, the database's address, the rules of webhooks,
//! the credentials for NATS and the key of Web Push. They are parsed and checked before the start.

use std::path::Path;

use authority_archive::Bucket;
use authority_config::{Config, NatsConfig};
use authority_crypto::KeyRing;
use authority_events::{NatsSettings, PushSettings};
use authority_keys::{self as keys, key_ring, push_key};
use authority_process::{clock::Clock, folder::private_folder};
use authority_registry::Issuers;
use authority_store::Address;
use authority_webhook::destination::{AddressRules, RuleError, UrlRules};
use rustls::RootCertStore;
use rustls_pki_types::{CertificateDer, pem::PemObject};

use super::{error::Error, issuers::configured, mail::mailer};
use crate::{telemetry::Exporter, transport::Tls};

/// The configured ring; `None` only in development, which creates one.
pub(super) fn ring(config: &Config) -> Result<Option<KeyRing>, keys::Error> {
    Ok(match (&config.keys.ring, &config.keys.ring_file) {
        (Some(ring), _) => Some(KeyRing::parse(ring.reveal())?),
        (None, Some(file)) => Some(key_ring::load(file)?),
        (None, None) => None,
    })
}

/// The issuers that may sign certifications in addition to this service.
pub(super) fn issuers(config: &Config, clock: &Clock) -> Result<Issuers, String> {
    Issuers::new(&config.programme.issuers, clock)
}

/// The permitted destinations of webhooks.
pub(super) fn url_rules(config: &Config) -> Result<UrlRules, RuleError> {
    let development = !config.production();
    let addresses = AddressRules::new(&config.webhooks.allow_cidrs, development)?;
    Ok(UrlRules { ports: config.webhooks.ports.clone(), development, addresses })
}

/// Additional root certificates for receivers, besides the public web's certificate authorities.
pub(super) fn webhook_roots(config: &Config) -> Result<RootCertStore, Error> {
    let mut roots = RootCertStore::empty();
    let Some(path) = &config.webhooks.ca_file else { return Ok(roots) };
    let unread =
        |fault: &dyn std::fmt::Display| Error::Roots(format!("`{}`: {fault}", path.display()));
    for certificate in CertificateDer::pem_file_iter(path).map_err(|fault| unread(&fault))? {
        let certificate = certificate.map_err(|fault| unread(&fault))?;
        roots.add(certificate).map_err(|fault| unread(&fault))?;
    }
    if roots.is_empty() { Err(unread(&"it holds no certificate")) } else { Ok(roots) }
}

/// The NATS server of audit streams, if configured.
pub(super) fn nats(config: &Config) -> Result<Option<NatsSettings>, Error> {
    let NatsConfig { url, credentials } = config.nats.clone();
    if url.is_some() && !cfg!(feature = "nats") {
        return Err(Error::Feature("nats.url", "nats"));
    }
    url.map(|url| NatsSettings::new(url, credentials).map_err(Error::Nats)).transpose()
}

/// The storage for archived months of decisions. A folder is created for this user alone.
pub(super) fn bucket(config: &Config) -> Result<Option<Bucket>, Error> {
    if !cfg!(feature = "archive") {
        // In development the folder is a default, which may be absent.
        return match config.archive.url {
            Some(_) => Err(Error::Feature("archive.url", "archive")),
            None => Ok(None),
        };
    }
    let unfit = |why: &dyn std::fmt::Display| Error::Archive(why.to_string());
    let Some(url) = config.archive_url().map_err(|why| unfit(&why))? else { return Ok(None) };
    let bucket = Bucket::open(&url).map_err(|why| unfit(&why))?;
    if let Some(folder) = url.strip_prefix("file://") {
        private_folder(Path::new(folder)).map_err(|why| unfit(&format!("`{folder}`: {why}")))?;
    }
    Ok(Some(bucket))
}

/// The installation's identity for push services; `None` if push is off. A key that is not
/// configured is created in the data folder, in development only.
pub(super) fn push(config: &Config) -> Result<Option<PushSettings>, keys::Error> {
    let Some(subject) = config.push.subject.clone() else { return Ok(None) };
    let signer = match &config.push.key_file {
        Some(file) => push_key::load(file)?,
        None => push_key::load_or_create(&config.data_dir.join("push.pem"))?,
    };
    Ok(Some(PushSettings { subject, signer }))
}

/// The collector of the metrics, if configured.
pub(super) fn exporter(config: &Config) -> Result<Option<Exporter>, Error> {
    Exporter::new(&config.metrics).map_err(|fault| Error::Metrics(fault.to_string()))
}

/// Checks that the configured objects can be used, without creating or connecting to anything.
///
/// # Errors
/// All problems, one on each line.
pub fn check(config: &Config) -> Result<(), String> {
    let setting = if config.keys.ring.is_some() { "keys.ring" } else { "keys.ring_file" };
    let ring = ring(config).err().map(|fault| format!("`{setting}`: {fault}"));
    let url = config.database.url.as_ref();
    let address = url.and_then(|url| Address::parse(url.reveal()).err());
    let address = address.map(|fault| format!("`database.url` (or DATABASE_URL): {fault}"));
    let owner = config.database.owner_url.as_ref();
    let owner = owner.and_then(|url| Address::parse(url.reveal()).err());
    let owner = owner.map(|fault| format!("`database.owner_url` (or DATABASE_OWNER_URL): {fault}"));
    let networks = url_rules(config).err();
    let networks = networks.map(|fault| format!("`webhooks.allow_cidrs`: {fault}"));
    let roots = webhook_roots(config).err().map(|fault| fault.to_string());
    let nats = nats(config).err().map(|fault| fault.to_string());
    let push_key = config.push.key_file.as_ref().and_then(|file| push_key::load(file).err());
    let push_key = push_key.map(|fault| fault.to_string());
    let trusted = configured(config, &Clock::default()).err();
    let issuers = issuers(config, &Clock::default()).err();
    let issuers = issuers.map(|fault| format!("`programme.issuers`: {fault}"));
    let archive = config.archive.url.as_ref().and_then(|url| Bucket::open(url).err());
    let archive = archive.map(|fault| format!("`archive.url`: {fault}"));
    let mail = mailer(config).err().map(|fault| fault.to_string());
    let metrics = exporter(config).err().map(|fault| fault.to_string());
    let tls = Tls::load(config).err().map(|fault| fault.to_string());
    let faults = [
        ring, address, owner, networks, roots, nats, push_key, mail, trusted, issuers, archive,
        metrics, tls,
    ];
    let faults: Vec<_> = faults.into_iter().flatten().collect();
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n")) }
}
