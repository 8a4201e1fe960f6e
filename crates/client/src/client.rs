//! A client of the service, with one credential.

use std::{fmt::Display, time::Duration};

use reqwest::{Identity, RequestBuilder, Response, Url, header::HeaderValue, redirect::Policy};
use serde::{Serialize, de::DeserializeOwned, ser::Error as _};
use serde_json::Value;

use crate::{
    base::Base,
    error::{ApiError, Error, Refusal, deepest},
    lines::Lines,
};

/// The timeout of connecting.
pub const TO_CONNECT: Duration = Duration::from_secs(5);
/// The timeout of the whole response.
const PATIENCE: Duration = Duration::from_secs(60);
/// The timeout of a stream: practically none. The silence of a stream is limited instead.
const ENDLESS: Duration = Duration::from_secs(365 * 24 * 60 * 60);

const BEARER: &str = "Bearer ";

/// A client of one service.
pub struct Client {
    base: Base,
    token: HeaderValue,
    http: reqwest::Client,
}

/// The answer to a request with an idempotency key.
pub struct OnceAnswer {
    pub body: String,
    /// Whether an earlier request with this key had the same answer.
    pub replayed: bool,
}

impl Client {
    /// Returns a client with a JWT or an API key.
    ///
    /// # Errors
    /// The credential has characters that can't be sent, or TLS is not available.
    pub fn new(base: Base, credential: &str) -> Result<Self, Error> {
        Self::with_certificate(base, credential, None)
    }

    /// Returns a client that also presents a client certificate: its PEM text, and its key's.
    ///
    /// # Errors
    /// Like [`Client::new`], or the certificate or its key can't be read.
    pub fn with_certificate(
        base: Base,
        credential: &str,
        pem: Option<&[u8]>,
    ) -> Result<Self, Error> {
        let bearer = format!("{BEARER}{}", credential.trim());
        let mut token = HeaderValue::try_from(bearer).map_err(|_| Error::Credential)?;
        token.set_sensitive(true);
        // A redirect could lead from https to anywhere.
        let http = reqwest::Client::builder()
            .timeout(PATIENCE)
            .connect_timeout(TO_CONNECT)
            .redirect(Policy::none());
        let http = if base.is_loopback() { http.no_proxy() } else { http };
        // Reading the machine's hundreds of certificates would take as long as a whole command.
        let http = if base.is_encrypted() { http } else { http.tls_certs_only([]) };
        let http = match pem {
            Some(pem) => http.identity(Identity::from_pem(pem)?),
            None => http,
        };
        Ok(Self { base, token, http: http.build()? })
    }

    /// The service's location.
    pub fn base(&self) -> &Base {
        &self.base
    }

    /// The credential without the scheme.
    pub fn credential(&self) -> &str {
        let bearer = self.token.to_str().unwrap_or_default();
        bearer.strip_prefix(BEARER).unwrap_or_default()
    }

    /// Returns the address of a path of the service. The members of `query` with a value become
    /// parameters.
    ///
    /// # Errors
    /// The service's address can't take a path.
    pub fn url(&self, path: &[&str], query: &impl Serialize) -> Result<Url, Error> {
        let mut url = self.base.url(path)?;
        let parameters = parameters(query)?;
        if !parameters.is_empty() {
            url.query_pairs_mut().extend_pairs(parameters);
        }
        Ok(url)
    }

    /// Returns the body of a success, unchanged.
    ///
    /// # Errors
    /// The service refuses the request, or does not answer.
    pub async fn get(&self, path: &[&str], query: &impl Serialize) -> Result<String, Error> {
        self.send(self.http.get(self.url(path, query)?)).await
    }

    /// Calls an operation with this body, and returns the body of its success, unchanged.
    ///
    /// # Errors
    /// The service refuses the request, or does not answer.
    pub async fn post(&self, path: &[&str], body: &impl Serialize) -> Result<String, Error> {
        self.send(self.http.post(self.base.url(path)?).json(body)).await
    }

    /// Calls an operation under an idempotency key: however often it is sent, it has one effect.
    ///
    /// # Errors
    /// The service refuses the request, or does not answer.
    pub async fn post_once(
        &self,
        path: &[&str],
        body: &impl Serialize,
        key: &str,
    ) -> Result<OnceAnswer, Error> {
        let request = self.http.post(self.base.url(path)?).json(body);
        let answer = self.open(request.header("idempotency-key", key)).await?;
        let replayed = answer.headers().contains_key("idempotency-replayed");
        let body = answer.text().await.map_err(|error| self.unreached(error))?;
        Ok(OnceAnswer { body, replayed })
    }

    /// Opens a stream of lines.
    ///
    /// # Errors
    /// The service refuses the stream, or does not answer.
    pub async fn lines(&self, path: &[&str], query: &impl Serialize) -> Result<Lines, Error> {
        let request = self.http.get(self.url(path, query)?).timeout(ENDLESS);
        Ok(Lines::new(self.base.to_string(), self.open(request).await?))
    }

    /// Reads the body of a response.
    ///
    /// # Errors
    /// The body is not the expected JSON.
    pub fn read<T: DeserializeOwned>(&self, body: &str) -> Result<T, Error> {
        serde_json::from_str(body).map_err(|error| self.unexpected(error))
    }

    /// The error if the address belongs to another service.
    pub fn unexpected(&self, what: impl Display) -> Error {
        Error::Unexpected { base: self.base.to_string(), what: what.to_string() }
    }

    async fn send(&self, request: RequestBuilder) -> Result<String, Error> {
        let answer = self.open(request).await?;
        answer.text().await.map_err(|error| self.unreached(error))
    }

    /// Sends a request and returns the successful response; its body is not read yet.
    async fn open(&self, request: RequestBuilder) -> Result<Response, Error> {
        let request = request.header("authorization", self.token.clone()).build()?;
        let (method, path) = (request.method().clone(), request.url().path().to_owned());
        let answer = self.http.execute(request).await.map_err(|error| self.unreached(error))?;
        let status = answer.status();
        if status.is_success() {
            return Ok(answer);
        }
        let body = answer.text().await.map_err(|error| self.unreached(error))?;
        let Ok(error) = serde_json::from_str::<ApiError>(&body) else {
            return Err(self.unexpected(format!("status {status}")));
        };
        Err(Error::Refused(Box::new(Refusal { status, method, path, error })))
    }

    fn unreached(&self, error: reqwest::Error) -> Error {
        Error::Unreached { base: self.base.to_string(), cause: deepest(error) }
    }
}

/// The query parameters of a filter: its members, without absent or false ones. A list of texts
/// becomes a repeated parameter.
fn parameters(filter: &impl Serialize) -> Result<Vec<(String, String)>, Error> {
    let members = match serde_json::to_value(filter)? {
        Value::Object(members) => members,
        Value::Null => return Ok(Vec::new()),
        other => return Err(serde_json::Error::custom(format!("{other} has no members")).into()),
    };
    let mut given = Vec::new();
    for (name, value) in members {
        match value {
            Value::Null | Value::Bool(false) => {}
            Value::String(text) => given.push((name, text)),
            Value::Array(items) => {
                let texts = items.iter().filter_map(Value::as_str);
                given.extend(texts.map(|text| (name.clone(), text.to_owned())));
            }
            other => given.push((name, other.to_string())),
        }
    }
    Ok(given)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_filter_must_have_members() {
        assert!(parameters(&()).unwrap().is_empty());
        assert!(parameters(&[("page_token", "x")]).is_err());
    }

    #[test]
    fn absent_and_false_members_are_no_parameters() {
        let filter = json!({"state": "active", "limit": 5, "count": true, "deleted": false, "a": null, "t": ["x", "y"]});
        let parameters = parameters(&filter).unwrap();
        let parameters: Vec<_> = parameters.iter().map(|(n, v)| (n.as_str(), v.as_str())).collect();
        assert_eq!(
            parameters,
            [("state", "active"), ("limit", "5"), ("count", "true"), ("t", "x"), ("t", "y")]
        );
    }
}
