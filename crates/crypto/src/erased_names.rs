//! Codes that replace the names of erased people.
//!
//! A code is computed from a name with a secret of the installation. It does not reveal the name,
//! but a person who returns with the same name is recognised. Erasing a person therefore never
//! lifts an exclusion from approving.

use std::{fmt, sync::Arc};

/// The prefix of a `sub`'s code, and the only "issuer" of an erased identity.
const ERASED: &str = "erased";
/// The host of erased addresses. No real address can have this host (RFC 2606).
const HOST: &str = "@erased.invalid";

/// Computes a message authentication code of bytes in a domain.
type Code = dyn Fn(&str, &[u8]) -> [u8; 32] + Send + Sync;

/// Computes codes. Without a secret, as in tests of the graph, no names are erased.
#[derive(Clone, Default)]
pub struct ErasedNames(Option<Arc<Code>>);

impl fmt::Debug for ErasedNames {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("ErasedNames")
    }
}

impl ErasedNames {
    pub fn new(code: impl Fn(&str, &[u8]) -> [u8; 32] + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(code)))
    }

    /// Returns the code for a `sub`: `erased:` and hex.
    pub fn subject(&self, subject: &str) -> Option<String> {
        Some(format!("{ERASED}:{}", self.code("erased-subject", subject)?))
    }

    /// Returns the code for `<iss>|<sub>`. The issuer is left out: identities with the same `sub`
    /// are one person.
    pub fn identity(&self, identity: &str) -> Option<String> {
        let subject = identity.split_once('|').map_or(identity, |(_, subject)| subject);
        Some(format!("{ERASED}|{}", self.subject(subject)?))
    }

    /// Returns the code for an address, regardless of case. It is an address with a host that does
    /// not exist.
    pub fn email(&self, email: &str) -> Option<String> {
        let email = email.trim().to_lowercase();
        Some(format!("{}{HOST}", self.code("erased-email", &email)?))
    }

    fn code(&self, domain: &str, name: &str) -> Option<String> {
        // An absent name has no code.
        let code = self.0.as_ref().filter(|_| !name.is_empty())?;
        Some(hex::encode(code(domain, name.as_bytes())))
    }
}
