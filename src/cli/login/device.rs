//! The device flow (RFC 8628): a person opens a page of the identity provider on any device and
//! types a code.

use std::time::Duration;

use authority_core::clock::Clock;
use chrono::{DateTime, TimeDelta, Utc};
use oauth2::{
    AuthType, Client, ClientId, DeviceAuthorizationUrl, EmptyExtraDeviceAuthorizationFields,
    EndpointNotSet, EndpointSet, ExtraTokenFields, HttpRequest, HttpResponse, RefreshToken,
    RequestTokenError, Scope, StandardDeviceAuthorizationResponse, StandardRevocableToken,
    StandardTokenResponse, TokenResponse, TokenUrl,
    basic::{
        BasicErrorResponse, BasicRevocationErrorResponse, BasicTokenIntrospectionResponse,
        BasicTokenType,
    },
};
use reqwest::{StatusCode, Url, redirect::Policy};
use serde::{Deserialize, Serialize};
use tokio::time::sleep;

use crate::cli::{
    Failure,
    http::{address, deepest, is_loopback},
    text::plain,
};

const PATIENCE: Duration = Duration::from_secs(30);
/// A token that expires within this time is refreshed before use.
const MARGIN: TimeDelta = TimeDelta::seconds(60);
/// `offline_access` requests a refresh token (OIDC Core, 11).
const SCOPES: [&str; 4] = ["openid", "profile", "email", "offline_access"];

/// An identity provider, and this command line as its client.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(in crate::cli) struct Provider {
    pub(in crate::cli) issuer: Url,
    pub(in crate::cli) client_id: String,
    pub(in crate::cli) audience: Option<String>,
    pub(in crate::cli) scopes: Vec<String>,
}

/// The tokens that the provider issued.
#[derive(Clone, Deserialize, Serialize)]
pub(in crate::cli) struct Tokens {
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
    pub(in crate::cli) fn bearer(&self) -> &str {
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

/// The field that OIDC adds to a token response.
#[derive(Debug, Deserialize, Serialize)]
struct IdToken {
    id_token: Option<String>,
}

impl ExtraTokenFields for IdToken {}

type Issued = StandardTokenResponse<IdToken, BasicTokenType>;
type PublicClient<Device = EndpointNotSet> = Client<
    BasicErrorResponse,
    Issued,
    BasicTokenIntrospectionResponse,
    StandardRevocableToken,
    BasicRevocationErrorResponse,
    EndpointNotSet,
    Device,
    EndpointNotSet,
    EndpointNotSet,
    EndpointSet,
>;

impl Provider {
    /// Shows the page and the code on standard error, and waits for the person. With `fresh` the
    /// provider must authenticate the person again even if they are signed in (`prompt` and
    /// `max_age` of OIDC Core, 3.1.2.1).
    pub(in crate::cli) async fn log_in(&self, fresh: bool) -> Result<Tokens, Failure> {
        let http = Http::new(&self.issuer)?;
        let metadata = http.metadata(&self.issuer).await?;
        let device = metadata.device_authorization_endpoint.clone().ok_or_else(|| {
            Failure::new(format!(
                "{} does not support the device flow (RFC 8628): its metadata has no endpoint",
                self.issuer
            ))
        })?;
        let client: PublicClient<EndpointSet> = self
            .client(&metadata)
            .set_device_authorization_url(DeviceAuthorizationUrl::from_url(safe(&device)?));
        let call = |request| http.call(request);
        let mut asking = client.exchange_device_code();
        let scopes: Vec<_> = match self.scopes.as_slice() {
            [] => SCOPES.map(str::to_owned).into(),
            scopes => scopes.to_vec(),
        };
        asking = asking.add_scopes(scopes.into_iter().map(Scope::new));
        if let Some(audience) = &self.audience {
            asking = asking.add_extra_param("audience", audience.clone());
        }
        if fresh {
            asking = asking.add_extra_param("prompt", "login").add_extra_param("max_age", "0");
        }
        let asked: StandardDeviceAuthorizationResponse =
            asking.request_async(&call).await.map_err(|error| self.failed(error))?;
        show(&asked);
        let issued = client.exchange_device_access_token(&asked).request_async(&call, sleep, None);
        Ok(tokens(&issued.await.map_err(|error| self.failed(error))?, None))
    }

    /// Gets new tokens for the refresh token of `old`.
    pub(super) async fn refreshed(&self, old: &Tokens) -> Result<Tokens, Failure> {
        let Some(refresh_token) = &old.refresh_token else {
            return Err(Failure::new(
                "the login has expired, and the provider issued no refresh token",
            ));
        };
        let http = Http::new(&self.issuer)?;
        let client = self.client(&http.metadata(&self.issuer).await?);
        let refresh_token = RefreshToken::new(refresh_token.clone());
        let call = |request| http.call(request);
        let issued = client.exchange_refresh_token(&refresh_token).request_async(&call);
        Ok(tokens(&issued.await.map_err(|error| self.failed(error))?, Some(old)))
    }

    /// Revokes the refresh token at the provider (RFC 7009), to make copies of it useless.
    ///
    /// # Errors
    /// The reason the token stays valid at the provider.
    pub(in crate::cli) async fn revoke(&self, tokens: &Tokens) -> Result<(), Failure> {
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
        let request = request.header("content-type", "application/x-www-form-urlencoded");
        let answer = request.send().await.map_err(|error| away(endpoint.as_str(), error))?;
        match answer.status() {
            status if status.is_success() => Ok(()),
            status => Err(Failure::new(format!("{endpoint} answered {status}"))),
        }
    }

    /// A public client: a command line cannot keep a secret.
    fn client(&self, metadata: &Metadata) -> PublicClient {
        Client::new(ClientId::new(self.client_id.clone()))
            .set_auth_type(AuthType::RequestBody)
            .set_token_uri(TokenUrl::from_url(metadata.token_endpoint.clone()))
    }

    fn failed<T: oauth2::ErrorResponse + std::fmt::Display>(
        &self,
        error: RequestTokenError<reqwest::Error, T>,
    ) -> Failure {
        let issuer = &self.issuer;
        match error {
            RequestTokenError::ServerResponse(refusal) => {
                Failure::new(format!("{issuer} refused: {}", plain(&refusal.to_string())))
            }
            RequestTokenError::Request(error) => away(issuer.as_str(), error),
            RequestTokenError::Parse(error, _) => Failure::new(format!(
                "the response of {issuer} does not conform to RFC 8628: {}",
                plain(&error.to_string())
            )),
            RequestTokenError::Other(why) => Failure::new(format!("{issuer}: {}", plain(&why))),
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
        Failure::unreached(format!("{url}: {why}"))
    }
}

fn show(asked: &oauth2::DeviceAuthorizationResponse<EmptyExtraDeviceAuthorizationFields>) {
    let code = plain(asked.user_code().secret());
    let page = plain(asked.verification_uri());
    let minutes = asked.expires_in().as_secs() / 60;
    eprintln!(
        "Open {page} on any device and type this code, within {minutes} minutes:\n\n    {code}\n"
    );
    if let Some(whole) = asked.verification_uri_complete() {
        eprintln!("or open {}\nand compare the code.\n", plain(whole.secret()));
    }
}

/// Returns the issued tokens. A refresh token that was not issued again is taken from `old`.
fn tokens(issued: &Issued, old: Option<&Tokens>) -> Tokens {
    let lasts = issued.expires_in().and_then(|lasts| TimeDelta::from_std(lasts).ok());
    let refresh_token = issued.refresh_token().map(|token| token.secret().clone());
    Tokens {
        access_token: issued.access_token().secret().clone(),
        id_token: issued.extra_fields().id_token.clone(),
        refresh_token: refresh_token.or_else(|| old?.refresh_token.clone()),
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

    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, reqwest::Error> {
        let answer = self.0.execute(request.try_into()?).await?;
        // A temporary failure has no response of the protocol, and is an error here.
        let answer = if is_away(answer.status()) { answer.error_for_status()? } else { answer };
        let mut response = HttpResponse::new(Vec::new());
        *response.status_mut() = answer.status();
        response.headers_mut().clone_from(answer.headers());
        *response.body_mut() = answer.bytes().await?.into();
        Ok(response)
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
