//! The identity provider: its endpoints, and the exchange of a code for tokens.

use std::{sync::Arc, time::Duration};

use authority_config::Secret;
use authority_process::clock::Clock;
use axum::{Router, body::Body};
use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use chrono::{DateTime, TimeDelta, Utc};
use http::{Request, StatusCode, header};
use http_body_util::{BodyExt, Limited};
use parking_lot::RwLock;
use serde::Deserialize;
use tower::ServiceExt;

use crate::{kit::query::encoded, texts as t};

/// The provider's metadata is read again after this time.
const REFRESHED: TimeDelta = TimeDelta::hours(1);
const TIMEOUT: Duration = Duration::from_secs(5);
/// The largest answer, in bytes.
const LARGEST: usize = 256 * 1024;
/// The path to which the first provider redirects people after the sign-in.
pub(super) const CALLBACK: &str = "/console/sign-in/callback";
const FORM: &str = "application/x-www-form-urlencoded";

/// A provider's metadata (OIDC Discovery 1.0).
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Metadata {
    pub(crate) issuer: String,
    pub(crate) authorization_endpoint: String,
    pub(crate) token_endpoint: String,
    pub(crate) end_session_endpoint: Option<String>,
    #[serde(default)]
    pub(crate) scopes_supported: Vec<String>,
    #[serde(default)]
    pub(crate) token_endpoint_auth_methods_supported: Vec<String>,
    /// The supported values of `prompt`; empty if they are not listed.
    #[serde(default)]
    pub(crate) prompt_values_supported: Vec<String>,
    /// Whether the provider's answers have its issuer (RFC 9207).
    #[serde(default)]
    pub(crate) authorization_response_iss_parameter_supported: bool,
}

impl Metadata {
    /// Whether it has the scope with which clients request a refresh token (OIDC Core 1.0, 11).
    pub(crate) fn has_offline_access(&self) -> bool {
        self.scopes_supported.iter().any(|scope| scope == "offline_access")
    }
}

/// A provider's response to a code or a refresh token.
#[derive(Deserialize)]
pub(crate) struct TokenResponse {
    pub(crate) access_token: String,
    pub(crate) id_token: Option<String>,
    pub(crate) refresh_token: Option<String>,
}

/// Why the provider returned no tokens.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// It does not respond, or reports that it is unavailable.
    #[error("{}", t::session::away(.0))]
    Away(String),
    #[error("{}", t::session::answered(.0))]
    Answer(String),
    /// The code or the refresh token is spent, expired or withdrawn (`invalid_grant` of RFC 6749, 5.2).
    #[error("{}", t::session::provider_refused(.0))]
    InvalidGrant(String),
    /// Another part of the request was refused, such as the client's own secret.
    #[error("{}", t::session::provider_refused(.0))]
    Refused(String),
}

/// The way to call the provider's endpoints.
pub(crate) enum Transport {
    Http(reqwest::Client),
    /// The development provider is in this process.
    InProcess(Router),
}

/// The console's client at a provider.
pub(crate) struct Client {
    /// The provider's name in `console.issuers`; `None` for the first provider.
    pub(crate) name: Option<String>,
    pub(crate) client_id: String,
    pub(crate) client_secret: Option<Secret>,
    /// Scopes that a sign-in requests besides the usual ones.
    pub(crate) scopes: Vec<String>,
}

/// The provider at which people sign in.
pub(crate) struct Provider {
    issuer: String,
    pub(crate) client: Client,
    transport: Transport,
    clock: Clock,
    known: RwLock<Option<(Arc<Metadata>, DateTime<Utc>)>>,
}

impl Provider {
    /// The configured provider. The first call is at the first sign-in: starting does not depend on
    /// the provider.
    ///
    /// # Errors
    /// The HTTP client cannot be created.
    pub(crate) fn remote(issuer: String, client: Client, clock: Clock) -> Result<Self, String> {
        let http = reqwest::Client::builder()
            .timeout(TIMEOUT)
            .connect_timeout(TIMEOUT)
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .map_err(t::session::no_client)?;
        let transport = Transport::Http(http);
        Ok(Self { issuer, client, transport, clock, known: RwLock::default() })
    }

    /// The development provider, which is at `public_url` for browsers.
    pub(crate) fn development(
        issuer: &str,
        client_id: &str,
        public_url: &str,
        router: Router,
        clock: Clock,
    ) -> Self {
        let metadata = Metadata {
            issuer: issuer.to_owned(),
            authorization_endpoint: format!("{public_url}/dev-idp/authorize"),
            token_endpoint: "/dev-idp/token".to_owned(),
            authorization_response_iss_parameter_supported: true,
            ..Metadata::default()
        };
        let (client_id, scopes) = (client_id.to_owned(), Vec::new());
        let client = Client { name: None, client_id, client_secret: None, scopes };
        let known = RwLock::new(Some((Arc::new(metadata), DateTime::<Utc>::MAX_UTC)));
        let transport = Transport::InProcess(router);
        Self { issuer: issuer.to_owned(), client, transport, clock, known }
    }

    pub(crate) fn issuer(&self) -> &str {
        &self.issuer
    }

    /// The path to which it redirects people after the sign-in.
    pub(super) fn callback_path(&self) -> String {
        match &self.client.name {
            Some(name) => format!("{CALLBACK}/{name}"),
            None => CALLBACK.to_owned(),
        }
    }

    /// The provider's metadata; the last known metadata while it does not respond.
    pub(crate) async fn metadata(&self) -> Result<Arc<Metadata>, Error> {
        let now = self.clock.now();
        let known = self.known.read().clone();
        match known {
            Some((metadata, until)) if now < until => Ok(metadata),
            Some((metadata, _)) => match self.discovered(now).await {
                Err(Error::Away(_)) => Ok(metadata),
                other => other,
            },
            None => self.discovered(now).await,
        }
    }

    async fn discovered(&self, now: DateTime<Utc>) -> Result<Arc<Metadata>, Error> {
        let url = format!("{}/.well-known/openid-configuration", self.issuer.trim_end_matches('/'));
        let (status, body) = self.send(Request::get(url), Bytes::new()).await?;
        if status != StatusCode::OK {
            return Err(Error::Answer(t::session::description_status(status)));
        }
        let metadata: Metadata = serde_json::from_slice(&body)
            .map_err(|error| Error::Answer(t::session::description_unreadable(error)))?;
        if metadata.issuer != self.issuer {
            let text = t::session::other_issuer(&metadata.issuer);
            return Err(Error::Answer(text));
        }
        let metadata = Arc::new(metadata);
        *self.known.write() = Some((Arc::clone(&metadata), now + REFRESHED));
        Ok(metadata)
    }

    /// The provider's tokens for these parameters, which include the grant type.
    pub(crate) async fn tokens(&self, grant: &[(&str, &str)]) -> Result<TokenResponse, Error> {
        let metadata = self.metadata().await?;
        let (request, form) = self.grant_request(&metadata, grant);
        let (status, body) = self.send(request, form).await?;
        if status != StatusCode::OK {
            return Err(refusal(status, &body));
        }
        serde_json::from_slice(&body)
            .map_err(|error| Error::Answer(t::session::tokens_unreadable(error)))
    }

    /// The request for a grant, with the client's own credential, and its form.
    fn grant_request(
        &self,
        metadata: &Metadata,
        grant: &[(&str, &str)],
    ) -> (http::request::Builder, Bytes) {
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.extend_pairs(grant);
        let mut request = Request::post(&metadata.token_endpoint)
            .header(header::CONTENT_TYPE, FORM)
            .header(header::ACCEPT, "application/json");
        let methods = &metadata.token_endpoint_auth_methods_supported;
        let has = |method: &str| methods.iter().any(|known| known == method);
        let client_id = self.client.client_id.as_str();
        match &self.client.client_secret {
            // `client_secret_basic` is the default (OIDC Core 1.0, 9).
            Some(secret) if has("client_secret_basic") || !has("client_secret_post") => {
                let text = format!("{}:{}", encoded(client_id), encoded(secret.reveal()));
                let value = format!("Basic {}", STANDARD.encode(text));
                request = request.header(header::AUTHORIZATION, value);
            }
            Some(secret) => {
                form.append_pair("client_id", client_id);
                form.append_pair("client_secret", secret.reveal());
            }
            None => {
                form.append_pair("client_id", client_id);
            }
        }
        (request, form.finish().into())
    }

    async fn send(
        &self,
        request: http::request::Builder,
        body: Bytes,
    ) -> Result<(StatusCode, Bytes), Error> {
        let request = request.body(body).map_err(|error| Error::Answer(error.to_string()))?;
        let (status, body) = match &self.transport {
            Transport::InProcess(router) => in_process(router, request).await?,
            Transport::Http(http) => over_http(http, request).await?,
        };
        if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
            return Err(Error::Away(t::session::status(status)));
        }
        Ok((status, body))
    }
}

async fn in_process(
    router: &Router,
    request: Request<Bytes>,
) -> Result<(StatusCode, Bytes), Error> {
    let Ok(answer) = router.clone().oneshot(request.map(Body::from)).await;
    let (head, body) = answer.into_parts();
    let body = Limited::new(body, LARGEST).collect().await;
    let body = body.map_err(|error| Error::Answer(error.to_string()))?;
    Ok((head.status, body.to_bytes()))
}

async fn over_http(
    http: &reqwest::Client,
    request: Request<Bytes>,
) -> Result<(StatusCode, Bytes), Error> {
    // Leaves out the URL, which the log already has and a page does not need.
    let away = |error: reqwest::Error| Error::Away(error.without_url().to_string());
    let mut answer = http.execute(request.try_into().map_err(away)?).await.map_err(away)?;
    let (status, mut body) = (answer.status(), Vec::new());
    while let Some(chunk) = answer.chunk().await.map_err(away)? {
        if body.len() + chunk.len() > LARGEST {
            return Err(Error::Answer(t::session::TOO_LARGE.to_owned()));
        }
        body.extend_from_slice(&chunk);
    }
    Ok((status, body.into()))
}

/// The code and description of an OAuth error (RFC 6749, 5.2).
fn refusal(status: StatusCode, body: &[u8]) -> Error {
    #[derive(Deserialize)]
    struct Fault {
        error: String,
        error_description: Option<String>,
    }
    let Ok(Fault { error, error_description }) = serde_json::from_slice(body) else {
        return Error::Refused(status.to_string());
    };
    let text = error_description.map(|about| format!("{error}: {about}"));
    let text = text.unwrap_or_else(|| error.clone());
    if error == "invalid_grant" { Error::InvalidGrant(text) } else { Error::Refused(text) }
}

/// Adds a query to an endpoint of the identity provider. The endpoint may already have a query.
pub(super) fn with_query(endpoint: &str, query: &str) -> String {
    let joint = if endpoint.contains('?') { '&' } else { '?' };
    format!("{endpoint}{joint}{query}")
}
