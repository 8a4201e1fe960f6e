//! What stands for the names of people who were erased.
//!
//! A code is made from a name under a secret of the installation. It tells nobody who it was; but whoever comes
//! with that name again is recognised, so that erasing a person never lets them approve what they could not
//! approve before.

use std::{fmt, sync::Arc};

/// Before the code of a `sub`; the only "issuer" of an erased identity.
const ERASED: &str = "erased";
/// The host of erased addresses: nobody can have one there (RFC 2606).
const HOST: &str = "@erased.invalid";

/// A message authentication code of bytes in a domain.
type Code = dyn Fn(&str, &[u8]) -> [u8; 32] + Send + Sync;

/// Makes codes. Without a secret, as in tests of the graph alone, nobody was erased.
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

    /// What stands for a `sub`: `erased:` and hex.
    pub fn subject(&self, subject: &str) -> Option<String> {
        Some(format!("{ERASED}:{}", self.code("erased-subject", subject)?))
    }

    /// What stands for `<iss>|<sub>`: the issuer is left out, so that one `sub` is one person.
    pub fn identity(&self, identity: &str) -> Option<String> {
        let subject = identity.split_once('|').map_or(identity, |(_, subject)| subject);
        Some(format!("{ERASED}|{}", self.subject(subject)?))
    }

    /// What stands for an address, whatever its case: itself an address, of a host that does not exist.
    pub fn email(&self, email: &str) -> Option<String> {
        let email = email.trim().to_lowercase();
        Some(format!("{}{HOST}", self.code("erased-email", &email)?))
    }

    fn code(&self, domain: &str, name: &str) -> Option<String> {
        // An absent name is nobody's.
        let code = self.0.as_ref().filter(|_| !name.is_empty())?;
        Some(hex::encode(code(domain, name.as_bytes())))
    }
}
