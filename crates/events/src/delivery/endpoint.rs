//! An endpoint as deliveries need it: its row, with the encrypted columns decrypted.

use std::collections::BTreeMap;

use authority_ids::{EndpointRef, TenantRef};
use authority_keys::{EndpointColumn, Keys};
use authority_webhook::{
    destination::{EndpointUrl, UrlRules, check_headers},
    retry::{RetryPolicy, Schedule},
    signing::{Secret, Suite, check_suites},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use chrono::{DateTime, Utc};
use diesel::{
    QueryableByName,
    sql_types::{Array, Bytea, Jsonb, Nullable, Text, Timestamptz},
};
use http::{HeaderName, HeaderValue};
use serde_json::Value;

/// The columns of [`EndpointRow`] in `webhook_endpoints e`.
pub(super) const COLUMNS: &str = "e.id AS endpoint_id, e.tenant_id, e.xmin::text AS version, e.url, \
    e.retry_policy, e.signing_suites, e.secret, e.previous_secret, e.previous_until, e.sealed_headers";

/// An endpoint as it is stored.
#[derive(QueryableByName)]
pub(super) struct EndpointRow {
    #[diesel(sql_type = Text, deserialize_as = String)]
    pub(super) endpoint_id: EndpointRef,
    #[diesel(sql_type = Text, deserialize_as = String)]
    pub(super) tenant_id: TenantRef,
    /// A value that changes with each update of the row.
    #[diesel(sql_type = Text)]
    version: String,
    #[diesel(sql_type = Text)]
    url: String,
    #[diesel(sql_type = Jsonb)]
    retry_policy: Value,
    #[diesel(sql_type = Array<Text>)]
    signing_suites: Vec<String>,
    #[diesel(sql_type = Nullable<Bytea>)]
    secret: Option<Vec<u8>>,
    #[diesel(sql_type = Nullable<Bytea>)]
    previous_secret: Option<Vec<u8>>,
    #[diesel(sql_type = Nullable<Timestamptz>)]
    previous_until: Option<DateTime<Utc>>,
    #[diesel(sql_type = Nullable<Bytea>)]
    sealed_headers: Option<Vec<u8>>,
}

/// An endpoint that is ready for attempts.
pub(super) struct Endpoint {
    pub(super) id: EndpointRef,
    pub(super) tenant_id: TenantRef,
    /// The version of the row when it was read.
    pub(super) version: String,
    /// `None` if the installation no longer permits the URL.
    pub(super) url: Option<EndpointUrl>,
    pub(super) schedule: Schedule,
    pub(super) suites: Vec<Suite>,
    /// The secrets for signing, the current one first.
    pub(super) secrets: Vec<Secret>,
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
}

/// Why the row of an endpoint cannot be used.
///
/// The fault is in the service or its key ring, not in the receiver.
#[derive(Debug, thiserror::Error)]
pub(super) enum EndpointError {
    #[error("{column:?} cannot be opened: {fault}")]
    Sealed { column: EndpointColumn, fault: authority_keys::Error },
    #[error("{0:?} has unexpected content")]
    Content(EndpointColumn),
    #[error(transparent)]
    Suites(#[from] authority_webhook::signing::SuitesError),
}

impl EndpointRow {
    /// Decrypts the sealed columns. The previous secret is used only until `previous_until`.
    pub(super) fn open(
        &self,
        keys: &Keys,
        rules: &UrlRules,
        now: DateTime<Utc>,
    ) -> Result<Endpoint, EndpointError> {
        let open = |column, sealed: Option<&Vec<u8>>| {
            let opened = sealed.map(|sealed| keys.open_endpoint(&self.endpoint_id, column, sealed));
            opened.transpose().map_err(|fault| EndpointError::Sealed { column, fault })
        };
        let overlaps = self.previous_until.is_some_and(|until| now < until);
        let previous = self.previous_secret.as_ref().filter(|_| overlaps);
        let mut secrets = Vec::new();
        for (column, sealed) in [
            (EndpointColumn::Secret, self.secret.as_ref()),
            (EndpointColumn::PreviousSecret, previous),
        ] {
            let Some(bytes) = open(column, sealed)? else { continue };
            let bytes: [u8; 32] = bytes.try_into().map_err(|_| EndpointError::Content(column))?;
            secrets.push(Secret::new(bytes));
        }
        let column = EndpointColumn::Headers;
        let headers = open(column, self.sealed_headers.as_ref())?;
        let headers: BTreeMap<String, String> = match headers {
            Some(json) => {
                serde_json::from_slice(&json).map_err(|_| EndpointError::Content(column))?
            }
            None => BTreeMap::new(),
        };
        let headers = headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let headers = check_headers(headers).map_err(|_| EndpointError::Content(column))?;
        Ok(Endpoint {
            id: self.endpoint_id.clone(),
            tenant_id: self.tenant_id.clone(),
            version: self.version.clone(),
            url: self.url(rules),
            schedule: schedule(&self.endpoint_id, &self.retry_policy),
            suites: check_suites(&self.signing_suites)?,
            secrets,
            headers,
        })
    }

    fn url(&self, rules: &UrlRules) -> Option<EndpointUrl> {
        EndpointUrl::parse(&self.url, rules).ok()
    }
}

impl Endpoint {
    /// Returns the texts to mask in a response, because a receiver may echo the request.
    pub(super) fn hidden(&self) -> Vec<String> {
        let secrets = self.secrets.iter().map(Secret::reveal).flat_map(|text| {
            let encoded = text.split_once('_').map(|(_, encoded)| encoded.to_owned());
            [Some(text), encoded].into_iter().flatten()
        });
        let values = self.headers.iter().filter_map(|(_, value)| value.to_str().ok());
        let forms = secrets.chain(values.flat_map(parts)).flat_map(|text| {
            let escaped = Value::from(text.as_str()).to_string();
            [escaped[1..escaped.len() - 1].to_owned(), text]
        });
        forms.collect()
    }
}

/// Returns the parts of a header's value that must be hidden.
///
/// These are the value, the credentials after its scheme (RFC 9110, 11.4), and the decoded text and
/// the password of Basic credentials.
fn parts(value: &str) -> Vec<String> {
    let mut parts = vec![value.to_owned()];
    let Some((_, credentials)) = value.split_once(' ') else { return parts };
    parts.push(credentials.trim().to_owned());
    let decoded = STANDARD.decode(credentials.trim()).ok().and_then(|b| String::from_utf8(b).ok());
    if let Some(decoded) = decoded {
        parts.extend(decoded.split_once(':').map(|(_, password)| password.to_owned()));
        parts.push(decoded);
    }
    parts.retain(|part| !part.is_empty());
    parts
}

/// Reads the delays of a retry policy, which was checked when it was written.
///
/// Returns the default delays if the policy can no longer be read.
fn schedule(endpoint_id: &EndpointRef, policy: &Value) -> Schedule {
    let policy: Result<RetryPolicy, _> = serde_json::from_value(policy.clone());
    let schedule = policy.map_err(|fault| fault.to_string()).and_then(|policy| {
        Schedule::try_from(&policy).map_err(|fault| format!("{} {fault}", fault.member()))
    });
    schedule.unwrap_or_else(|fault| {
        tracing::error!(
            endpoint.id = endpoint_id.as_str(),
            error = fault,
            "failed to read a retry policy; using the default"
        );
        Schedule::default()
    })
}

#[cfg(test)]
mod tests {
    use super::parts;

    #[test]
    fn credentials_are_hidden_in_each_form() {
        assert_eq!(parts("plain"), ["plain"]);
        assert_eq!(parts("Bearer token"), ["Bearer token", "token"]);
        let basic = parts("Basic YW5uOnNlY3JldA==");
        assert_eq!(basic, ["Basic YW5uOnNlY3JldA==", "YW5uOnNlY3JldA==", "secret", "ann:secret"]);
    }
}
