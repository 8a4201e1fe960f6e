//! The receiver's expectations.

use serde_json::Value;

use crate::{error::VerifyError, suite::Suite};

/// The default [`Options::tolerance`], in seconds.
///
/// It covers clock differences between sender and receiver and the time in transit.
pub const DEFAULT_TOLERANCE: u64 = 300;

/// The receiver's expectations. Start from [`Options::new`] and add a JWKS, secrets, or both.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// The service's JSON Web Key Set (RFC 7517), for the suites `rfc9421` and `jwt`.
    ///
    /// Fetch it again when a key is [unknown](VerifyError::UnknownKey), and drop keys that are no
    /// longer in it.
    pub jwks: Option<&'a Value>,
    /// The endpoint's secret, `whsec_…`, for the suite `standard-webhooks/v1`. During a rotation,
    /// the old and the new secret.
    pub secrets: &'a [&'a str],
    /// The accepted suites, in order of preference. If empty, every suite that has keys is
    /// accepted, in the order of [`Suite::ALL`].
    pub accept: &'a [Suite],
    /// The endpoint's URL as the service shows it.
    pub url: &'a str,
    /// The id of the expected tenant. It is checked because other tenants of the same service can
    /// also send deliveries to this URL.
    pub tenant_id: &'a str,
    /// The maximum difference between the time of a signature and `now`, in seconds;
    /// [`DEFAULT_TOLERANCE`] by default. Signatures of the suites `rfc9421` and `jwt` also expire
    /// after 300 seconds.
    pub tolerance: u64,
}

impl<'a> Options<'a> {
    /// Returns options without keys. Add a JWKS or secrets before use.
    pub fn new(url: &'a str, tenant_id: &'a str) -> Self {
        let tolerance = DEFAULT_TOLERANCE;
        Self { jwks: None, secrets: &[], accept: &[], url, tenant_id, tolerance }
    }

    pub(crate) fn accepted(&self) -> Result<Vec<Suite>, VerifyError> {
        let has_keys = |suite: Suite| match suite {
            Suite::StandardWebhooks => !self.secrets.is_empty(),
            Suite::Rfc9421 | Suite::Jwt => self.jwks.is_some(),
        };
        if self.url.is_empty() || self.tenant_id.is_empty() {
            return Err(VerifyError::Configuration("url and tenant_id are required"));
        }
        if !self.accept.iter().all(|suite| has_keys(*suite)) {
            return Err(VerifyError::Configuration(
                "accept names a suite without keys: rfc9421 and jwt need jwks, \
                 standard-webhooks/v1 needs secrets",
            ));
        }
        let accepted: Vec<_> = match self.accept {
            [] => Suite::ALL.into_iter().filter(|suite| has_keys(*suite)).collect(),
            accept => accept.to_vec(),
        };
        if accepted.is_empty() {
            return Err(VerifyError::Configuration("give jwks, secrets, or both"));
        }
        Ok(accepted)
    }
}
