//! The device flow (RFC 8628): a person opens a page of the identity provider on any device and
//! types a code.

use std::{
    fmt,
    time::{Duration, Instant},
};

use authority_client::{address, is_loopback};
use authority_process::clock::Clock;
use chrono::{DateTime, TimeDelta, Utc};
use reqwest::{
    StatusCode,
    header::{ACCEPT, CONTENT_TYPE},
    redirect::Policy,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tokio::time::sleep;
use url::Url;

use crate::{
    http::{authority_remedy, deepest},
    outcome::Failure,
    text::plain,
};

const PATIENCE: Duration = Duration::from_secs(30);
/// A token that expires within this time is refreshed before use.
const MARGIN: TimeDelta = TimeDelta::seconds(60);
/// `offline_access` requests a refresh token (OIDC Core, 11).
const SCOPES: [&str; 4] = ["openid", "profile", "email", "offline_access"];
const JSON: &str = "application/json";
const FORM: &str = "application/x-www-form-urlencoded";
const DEVICE_CODE: &str = "urn:ietf:params:oauth:grant-type:device_code";
/// How much longer to wait between requests after `slow_down` (RFC 8628, 3.5).
const SLOWER: Duration = Duration::from_secs(5);
/// The longest wait between requests to a provider that does not respond.
const MOST_BACKOFF: Duration = Duration::from_secs(10);

/// An identity provider, and this command line as its client.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Provider {
    pub(crate) issuer: Url,
    pub(crate) client_id: String,
    pub(crate) audience: Option<String>,
    pub(crate) scopes: Vec<String>,
}

/// The tokens that the provider issued.
#[derive(Clone, Deserialize, Serialize)]
pub(crate) struct Tokens {
    access_token: String,
    id_token: Option<String>,
    refresh_token: Option<String>,
    /// The expiry of the access token, if the provider returns it.
    expires_at: Option<DateTime<Utc>>,
}

/// Omits the secret fields.
impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokens").field("expires_at", &self.expires_at).finish_non_exhaustive()
    }
}

impl Tokens {
    /// Returns the token for the service: the access token, or the ID token if the access token is
    /// not a JWT. The service can verify only JWTs.
    pub(crate) fn bearer(&self) -> &str {
        match &self.id_token {
            Some(id_token) if self.access_token.split('.').count() != 3 => id_token,
            _ => &self.access_token,
        }
    }

    pub(super) fn ends_soon(&self, now: DateTime<Utc>) -> bool {
        self.expires_at.is_some_and(|end| end - now < MARGIN)
    }
}

/// The relevant fields of a provider's `/.well-known/openid-configuration` (OIDC Discovery, 4).
#[derive(Deserialize)]
struct Metadata {
    issuer: String,
    token_endpoint: Url,
    device_authorization_endpoint: Option<Url>,
    /// Defined in RFC 8414.
    revocation_endpoint: Option<Url>,
}

/// A device authorization (RFC 8628, 3.2).
#[derive(Deserialize)]
struct Authorization {
    device_code: String,
    user_code: String,
    /// Some providers use the name of an early draft.
    #[serde(alias = "verification_url")]
    verification_uri: String,
    verification_uri_complete: Option<String>,
    /// In seconds.
    expires_in: u64,
    /// The least time between requests, in seconds.
    interval: Option<u64>,
}

/// Issued tokens (RFC 6749, 5.1; OIDC Core, 3.1.3.3).
#[derive(Deserialize)]
struct Issued {
    access_token: String,
    /// Required, but every type is accepted: the service verifies the token.
    #[serde(rename = "token_type")]
    _token_type: String,
    id_token: Option<String>,
    refresh_token: Option<String>,
    /// In seconds.
    expires_in: Option<u64>,
}

/// An error of the protocol (RFC 6749, 5.2).
#[derive(Deserialize)]
struct Refusal {
    error: String,
    error_description: Option<String>,
    error_uri: Option<String>,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.error)?;
        if let Some(description) = &self.error_description {
            write!(f, ": {description}")?;
        }
        self.error_uri.iter().try_for_each(|uri| write!(f, " (see {uri})"))
    }
}

/// Why a request failed.
enum Fault {
    Refused(Refusal),
    Away(reqwest::Error),
    /// The response does not conform to the protocol.
    Unfit(String),
}

impl Provider {
    /// Shows the page and the code on standard error, and waits for the person. With `fresh` the
    /// provider must authenticate the person again even if they are signed in (`prompt` and
    /// `max_age` of OIDC Core, 3.1.2.1).
    pub(crate) async fn log_in(&self, fresh: bool) -> Result<Tokens, Failure> {
        let http = Http::new(&self.issuer)?;
        let metadata = http.metadata(&self.issuer).await?;
        let device = metadata.device_authorization_endpoint.clone().ok_or_else(|| {
            Failure::new(format!(
                "{} does not support the device flow (RFC 8628): its metadata has no endpoint",
                self.issuer
            ))
        })?;
        let scopes = match self.scopes.as_slice() {
            [] => SCOPES.join(" "),
            scopes => scopes.join(" "),
        };
        let mut form = vec![("scope", scopes.as_str()), ("client_id", &self.client_id)];
        form.extend(self.audience.as_deref().map(|audience| ("audience", audience)));
        if fresh {
            form.extend([("prompt", "login"), ("max_age", "0")]);
        }
        let asked: Authorization =
            http.post(&safe(&device)?, &form).await.map_err(|fault| self.failed(fault))?;
        show(&asked);
        let issued = self.confirmed(&http, &metadata.token_endpoint, &asked).await;
        Ok(tokens(issued.map_err(|fault| self.failed(fault))?, None))
    }

    /// Waits until the person has confirmed the code (RFC 8628, 3.4 and 3.5).
    async fn confirmed(
        &self,
        http: &Http,
        endpoint: &Url,
        asked: &Authorization,
    ) -> Result<Issued, Fault> {
        let form = [
            ("grant_type", DEVICE_CODE),
            ("device_code", &asked.device_code),
            ("client_id", &self.client_id),
        ];
        let (start, lasts) = (Instant::now(), Duration::from_secs(asked.expires_in));
        let mut interval = Duration::from_secs(asked.interval.unwrap_or(5));
        while start.elapsed() <= lasts {
            match http.post(endpoint, &form).await {
                Err(Fault::Refused(refusal)) if refusal.error == "authorization_pending" => {}
                Err(Fault::Refused(refusal)) if refusal.error == "slow_down" => {
                    interval = interval.saturating_add(SLOWER);
                }
                Err(Fault::Away(_)) => {
                    interval = interval.max(interval.saturating_mul(2).min(MOST_BACKOFF));
                }
                answered => return answered,
            }
            sleep(interval).await;
        }
        Err(Fault::Refused(Refusal {
            error: "expired_token".to_owned(),
            error_description: Some("This device code has expired.".to_owned()),
            error_uri: None,
        }))
    }

    /// Gets new tokens for the refresh token of `old`.
    pub(super) async fn refreshed(&self, old: &Tokens) -> Result<Tokens, Failure> {
        let Some(refresh_token) = &old.refresh_token else {
            return Err(Failure::new(
                "the login has expired, and the provider issued no refresh token",
            ));
        };
        let http = Http::new(&self.issuer)?;
        let endpoint = http.metadata(&self.issuer).await?.token_endpoint;
        // A command line cannot keep a secret: it is a public client.
        let form = [
            ("grant_type", "refresh_token"),
            ("refresh_token", refresh_token),
            ("client_id", &self.client_id),
        ];
        let issued = http.post(&endpoint, &form).await.map_err(|fault| self.failed(fault))?;
        Ok(tokens(issued, Some(old)))
    }

    /// Revokes the refresh token at the provider (RFC 7009), to make copies of it useless.
    ///
    /// # Errors
    /// The reason the token stays valid at the provider.
    pub(crate) async fn revoke(&self, tokens: &Tokens) -> Result<(), Failure> {
        let Some(refresh_token) = &tokens.refresh_token else { return Ok(()) };
        let http = Http::new(&self.issuer)?;
        let endpoint = http.metadata(&self.issuer).await?.revocation_endpoint;
        let endpoint = endpoint.ok_or_else(|| {
            Failure::new(format!("{} names no `revocation_endpoint`", self.issuer))
        })?;
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.extend_pairs([
            ("token", refresh_token.as_str()),
            ("token_type_hint", "refresh_token"),
            ("client_id", &self.client_id),
        ]);
        let request = http.0.post(safe(&endpoint)?).body(form.finish());
        let answer = request
            .header(CONTENT_TYPE, FORM)
            .send()
            .await
            .map_err(|error| away(endpoint.as_str(), error))?;
        match answer.status() {
            status if status.is_success() => Ok(()),
            status => Err(Failure::new(format!("{endpoint} answered {status}"))),
        }
    }

    fn failed(&self, fault: Fault) -> Failure {
        let issuer = &self.issuer;
        match fault {
            Fault::Refused(refusal) => {
                Failure::new(format!("{issuer} refused: {}", plain(&refusal.to_string())))
            }
            Fault::Away(error) => away(issuer.as_str(), error),
            Fault::Unfit(why) => Failure::new(format!(
                "the response of {issuer} does not conform to RFC 8628: {}",
                plain(&why)
            )),
        }
    }
}

/// Whether the provider is temporarily unavailable: then waiting helps, and logging in again does
/// not.
fn is_passing(error: &reqwest::Error) -> bool {
    error.is_timeout() || error.is_connect() || error.status().is_some_and(is_away)
}

fn is_away(status: StatusCode) -> bool {
    status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS
}

/// The failure for an address of the provider that does not respond.
fn away(url: &str, error: reqwest::Error) -> Failure {
    let (is_passing, why) = (is_passing(&error), deepest(error));
    // An untrusted certificate is not a temporary problem.
    if is_passing && !why.contains("certificate") {
        Failure::unreached(format!(
            "the identity provider does not answer; try again\n{url}: {why}"
        ))
    } else {
        let remedy = authority_remedy(&why).map(|remedy| format!("\n{remedy}"));
        Failure::unreached(format!("{url}: {why}{}", remedy.unwrap_or_default()))
    }
}

fn show(asked: &Authorization) {
    let code = plain(&asked.user_code);
    let page = plain(&asked.verification_uri);
    let minutes = asked.expires_in / 60;
    eprintln!(
        "Open {page} on any device and type this code, within {minutes} minutes:\n\n    {code}\n"
    );
    if let Some(whole) = &asked.verification_uri_complete {
        eprintln!("or open {}\nand compare the code.\n", plain(whole));
    }
}

/// Returns the issued tokens. A refresh token that was not issued again is taken from `old`.
fn tokens(issued: Issued, old: Option<&Tokens>) -> Tokens {
    let lasts = issued.expires_in.map(Duration::from_secs);
    let lasts = lasts.and_then(|lasts| TimeDelta::from_std(lasts).ok());
    Tokens {
        access_token: issued.access_token,
        id_token: issued.id_token,
        refresh_token: issued.refresh_token.or_else(|| old?.refresh_token.clone()),
        expires_at: lasts.map(|lasts| Clock::default().now() + lasts),
    }
}

/// Checks that secrets go only over https, or http on this machine.
fn safe(url: &Url) -> Result<Url, Failure> {
    address(url.as_str())
        .map_err(|why| Failure::new(format!("the identity provider names {url}: {why}")))
}

struct Http(reqwest::Client);

impl Http {
    fn new(issuer: &Url) -> Result<Self, Failure> {
        // A redirect could send a token to any address.
        let http = reqwest::Client::builder().timeout(PATIENCE).redirect(Policy::none());
        let http = if is_loopback(issuer) { http.no_proxy() } else { http };
        Ok(Self(http.build().map_err(Failure::new)?))
    }

    /// Sends a form, and reads the JSON of the response.
    async fn post<T: DeserializeOwned>(
        &self,
        url: &Url,
        form: &[(&str, &str)],
    ) -> Result<T, Fault> {
        let form = form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        let request = self.0.post(url.clone()).header(ACCEPT, JSON).header(CONTENT_TYPE, FORM);
        let answer = request.body(form).send().await.map_err(Fault::Away)?;
        // A temporary failure has no response of the protocol, and is an error here.
        let answer = if is_away(answer.status()) {
            answer.error_for_status().map_err(Fault::Away)?
        } else {
            answer
        };
        let (status, kind) = (answer.status(), answer.headers().get(CONTENT_TYPE).cloned());
        let body = answer.bytes().await.map_err(Fault::Away)?;
        let unfit = |error: serde_json::Error| Fault::Unfit(error.to_string());
        if status != StatusCode::OK {
            return Err(serde_json::from_slice(&body).map_or_else(unfit, Fault::Refused));
        }
        if let Some(kind) = kind
            && !kind.to_str().is_ok_and(|kind| kind.to_ascii_lowercase().starts_with(JSON))
        {
            return Err(Fault::Unfit(format!("the content type is {kind:?}, not {JSON}")));
        }
        serde_json::from_slice(&body).map_err(unfit)
    }

    async fn metadata(&self, issuer: &Url) -> Result<Metadata, Failure> {
        let base = issuer.as_str().trim_end_matches('/');
        let url = format!("{base}/.well-known/openid-configuration");
        let unfit = |why: String| Failure::new(format!("{url}: {why}"));
        let read =
            async { self.0.get(&url).send().await?.error_for_status()?.json::<Metadata>().await };
        let found = read.await.map_err(|error| {
            if is_passing(&error) { away(&url, error) } else { unfit(deepest(error)) }
        })?;
        if found.issuer.trim_end_matches('/') != base {
            return Err(unfit(format!("it is of another issuer, {}", plain(&found.issuer))));
        }
        Ok(Metadata { token_endpoint: safe(&found.token_endpoint)?, ..found })
    }
}
