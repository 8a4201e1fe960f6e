//! The key ring, the database's address and the rules of webhooks in the settings: parsed, and checked before
//! the start.

use authority_core::{
    config::Config,
    keys::{self, key_ring},
    store::Address,
};
use authority_crypto::KeyRing;
use authority_webhook::destination::{AddressRules, RuleError, UrlRules};
use rustls::RootCertStore;
use rustls_pki_types::{CertificateDer, pem::PemObject};

use super::Error;

/// The configured ring; `None` only in development, which creates one.
pub(super) fn ring(config: &Config) -> Result<Option<KeyRing>, keys::Error> {
    Ok(match (&config.keys.ring, &config.keys.ring_file) {
        (Some(ring), _) => Some(KeyRing::parse(ring.reveal())?),
        (None, Some(file)) => Some(key_ring::load(file)?),
        (None, None) => None,
    })
}

/// Where webhooks may go.
pub(super) fn url_rules(config: &Config) -> Result<UrlRules, RuleError> {
    let development = !config.production();
    let addresses = AddressRules::new(&config.webhooks.allow_cidrs, development)?;
    Ok(UrlRules { ports: config.webhooks.ports.clone(), development, addresses })
}

/// Whom receivers' certificates may lead to, besides the authorities of the public web.
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

/// Checks whether the configured ones can be used, without creating or connecting to anything.
///
/// # Errors
/// All reasons, one on each line.
pub fn check(config: &Config) -> Result<(), String> {
    let setting = if config.keys.ring.is_some() { "keys.ring" } else { "keys.ring_file" };
    let ring = ring(config).err().map(|fault| format!("`{setting}`: {fault}"));
    let url = config.database.url.as_ref();
    let address = url.and_then(|url| Address::parse(url.reveal()).err());
    let address = address.map(|fault| format!("`database.url` (or DATABASE_URL): {fault}"));
    let networks = url_rules(config).err();
    let networks = networks.map(|fault| format!("`webhooks.allow_cidrs`: {fault}"));
    let roots = webhook_roots(config).err().map(|fault| fault.to_string());
    let faults: Vec<_> = ring.into_iter().chain(address).chain(networks).chain(roots).collect();
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n")) }
}
