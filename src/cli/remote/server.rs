//! Calls the service for a command: HTTP with a token, and errors in the terms of the command line.

use std::{
    fmt::{self, Display, Formatter},
    net::SocketAddr,
    time::Duration,
};

use agent_authority::transport::Surfaces;
use authority_core::config::Secret;
use reqwest::{
    Client, RequestBuilder, Response, StatusCode, Url, header::HeaderValue, redirect::Policy,
};
use serde::Serialize;
use serde_json::Value;

use super::{may, place, refusal::ApiError, surface::Surface};
use crate::cli::{
    Failure, health,
    http::{deepest, is_loopback},
    login,
    outcome::CommandOutput,
    view::View,
};

pub(super) const TO_CONNECT: Duration = Duration::from_secs(5);
/// The timeout of the whole response.
const PATIENCE: Duration = Duration::from_secs(60);
/// The timeout of a stream, which never passes. A stream has a limit on its silence instead.
const ENDLESS: Duration = Duration::from_secs(365 * 24 * 60 * 60);

const BEARER: &str = "Bearer ";

/// A service to call.
pub(in crate::cli) struct Server {
    base: Base,
    /// The surface that the token opens.
    surface: Surface,
    token: HeaderValue,
    http: Client,
    /// The advice if the service does not accept the token.
    advice: &'static str,
    view: View,
    /// The flags with which the user chose the service.
    place: String,
}

/// The location of a service.
pub(super) enum Base {
    Named(Url),
    /// On this machine.
    Local {
        main: SocketAddr,
        /// Each address with the surfaces that it serves.
        plan: Vec<(SocketAddr, Surfaces)>,
    },
}

impl Base {
    /// Returns the URL for a path of these segments.
    fn url(&self, path: &[&str]) -> Result<Url, Failure> {
        let mut url = match self {
            Self::Named(url) => url.clone(),
            Self::Local { main, plan } => {
                let path = format!("/{}", path.join("/"));
                let serving = plan.iter().find(|(_, surfaces)| surfaces.serve(&path));
                let address = health::reachable(serving.map_or(*main, |(address, _)| *address));
                Url::parse(&format!("http://{address}")).map_err(Failure::new)?
            }
        };
        url.path_segments_mut()
            .map_err(|()| Failure::usage("--url: cannot take a path"))?
            .pop_if_empty()
            .extend(path);
        Ok(url)
    }

    fn is_loopback(&self) -> bool {
        match self {
            Self::Named(url) => is_loopback(url),
            Self::Local { .. } => true,
        }
    }
}

impl Display for Base {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Named(url) => url.fmt(f),
            Self::Local { main, .. } => write!(f, "http://{main}/"),
        }
    }
}

impl Server {
    pub(super) fn new(
        base: Base,
        token: &Secret,
        advice: &'static str,
        view: View,
    ) -> Result<Self, Failure> {
        let surface = Surface::of(token.reveal().trim());
        let bearer = format!("{BEARER}{}", token.reveal().trim());
        let mut token = HeaderValue::try_from(bearer).map_err(|_| {
            Failure::usage("--token: has characters that an HTTP header may not contain")
        })?;
        token.set_sensitive(true);
        // A redirect could lead from https to anywhere.
        let http = Client::builder()
            .timeout(PATIENCE)
            .connect_timeout(TO_CONNECT)
            .redirect(Policy::none());
        let http = if base.is_loopback() { http.no_proxy() } else { http };
        let http = http.build().map_err(Failure::new)?;
        Ok(Self { base, surface, token, http, advice, view, place: String::new() })
    }

    /// Sets the flags with which the user chose the service.
    pub(super) fn named_by(self, place: String) -> Self {
        Self { place, ..self }
    }

    /// Returns a command that calls the same service, for a shell.
    pub(super) fn command(&self, typed: &str) -> String {
        format!("{} {typed}{}", place::program(), self.place)
    }

    /// Returns the address of a path of the service.
    pub(super) fn address_of(&self, path: &[&str]) -> Result<String, Failure> {
        self.base.url(path).map(|url| url.to_string())
    }

    /// The form of the output.
    pub(super) fn view(&self) -> View {
        self.view
    }

    /// Describes the caller's identity.
    pub(in crate::cli) fn whoami(&self) -> CommandOutput {
        login::identity_of(self.bearer(), &self.base.to_string(), self.view)
    }

    /// The credential without the scheme.
    fn bearer(&self) -> &str {
        let bearer = self.token.to_str().unwrap_or_default();
        bearer.strip_prefix(BEARER).unwrap_or_default()
    }

    /// The service's address, for people.
    pub(super) fn address(&self) -> String {
        self.base.to_string()
    }

    /// Whether the credential opens this surface.
    pub(super) fn opens(&self, surface: Surface) -> bool {
        self.surface == surface
    }

    /// The path with the credential's surface in place of the segment `SURFACE`.
    pub(super) fn path<'a>(&self, path: &[&'a str]) -> Vec<&'a str> {
        self.surface.path(path)
    }

    /// Whether the credential is an API key. Some operations have a separate path for API keys.
    pub(super) fn has_api_key(&self) -> bool {
        self.surface == Surface::ApiKeys
    }

    /// Returns the body of a success, unchanged. The members of `query` with a value become
    /// parameters.
    pub(super) async fn get(
        &self,
        path: &[&str],
        query: &impl Serialize,
    ) -> Result<String, Failure> {
        self.send(self.http.get(self.url(path, query)?)).await
    }

    /// Calls an operation with this body, and returns the body of its success, unchanged.
    pub(super) async fn post(
        &self,
        path: &[&str],
        body: &impl Serialize,
    ) -> Result<String, Failure> {
        self.send(self.http.post(self.base.url(path)?).json(body)).await
    }

    /// Opens a response with a body of unknown length.
    pub(super) async fn stream(
        &self,
        path: &[&str],
        query: &impl Serialize,
    ) -> Result<Response, Failure> {
        self.open(self.http.get(self.url(path, query)?).timeout(ENDLESS)).await
    }

    fn url(&self, path: &[&str], query: &impl Serialize) -> Result<Url, Failure> {
        let mut url = self.base.url(path)?;
        let parameters = parameters(query)?;
        if !parameters.is_empty() {
            url.query_pairs_mut().extend_pairs(parameters);
        }
        Ok(url)
    }

    async fn send(&self, request: RequestBuilder) -> Result<String, Failure> {
        let answer = self.open(request).await?;
        answer.text().await.map_err(|error| self.unreached(error))
    }

    /// Sends a request and returns the successful response; its body is not read yet.
    async fn open(&self, request: RequestBuilder) -> Result<Response, Failure> {
        let request = request.header("authorization", self.token.clone()).build();
        let request = request.map_err(Failure::new)?;
        let (method, path) = (request.method().clone(), request.url().path().to_owned());
        let answer = self.http.execute(request).await.map_err(|error| self.unreached(error))?;
        let status = answer.status();
        if status.is_success() {
            return Ok(answer);
        }
        let body = answer.text().await.map_err(|error| self.unreached(error))?;
        let who = || may::who(method.as_str(), &path);
        Err(self.refused(status, &body, who))
    }

    pub(super) fn json(&self, body: &str) -> Result<Value, Failure> {
        serde_json::from_str(body).map_err(|error| self.unexpected(error))
    }

    /// The failure for a refusal. `who` returns the people who may call the operation.
    fn refused(
        &self,
        status: StatusCode,
        body: &str,
        who: impl FnOnce() -> Option<String>,
    ) -> Failure {
        let Ok(refusal) = serde_json::from_str::<ApiError>(body) else {
            return self.unexpected(format!("status {status}"));
        };
        let advice = match status {
            _ if refusal.asks_for_a_sign_in() => self.fresh_login(),
            StatusCode::UNAUTHORIZED => self.advice.to_owned(),
            _ if refusal.is_of_rules() => self.not_permitted(who()),
            _ => refusal.remedy().to_owned(),
        };
        let failure = Failure::new(format!("{}{advice}", refusal.text()));
        if refusal.is_of_rules() { failure.forbidden() } else { failure }
    }

    /// Describes the caller, and the people who may call the operation.
    fn not_permitted(&self, who: Option<String>) -> String {
        let caller = login::caller_of(self.bearer());
        let open = who.map(|who| format!("; it is open to {who}")).unwrap_or_default();
        format!("\nyou are {caller}{open}")
    }

    /// The advice if the service requires a recent sign-in. It is empty for a token that the user
    /// passed, because only the user knows where that token comes from.
    fn fresh_login(&self) -> String {
        match &self.base {
            Base::Named(url) if !self.advice.is_empty() => {
                format!("\nsign in anew: agent-authority login --fresh --url {url}")
            }
            _ => String::new(),
        }
    }

    fn unreached(&self, error: reqwest::Error) -> Failure {
        Failure::unreached(format!(
            "no answer from {}: {}\ncheck the address, and that the service is running",
            self.base,
            deepest(error)
        ))
    }

    /// The failure if the address belongs to another service.
    pub(super) fn unexpected(&self, what: impl Display) -> Failure {
        let base = &self.base;
        Failure::new(format!("unexpected response from {base}: {what}"))
    }
}

/// The query parameters of a filter: its members, without absent or false ones. A list of texts
/// becomes a repeated parameter.
fn parameters(filter: &impl Serialize) -> Result<Vec<(String, String)>, Failure> {
    let Value::Object(members) = serde_json::to_value(filter).map_err(Failure::new)? else {
        return Ok(Vec::new());
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
    fn a_path_is_asked_for_at_the_address_that_serves_it() {
        let at = |port| SocketAddr::from(([0, 0, 0, 0], port));
        let plan = vec![(at(1), Surfaces::ALL.without(Surfaces::ADMIN)), (at(2), Surfaces::ADMIN)];
        let base = Base::Local { main: at(1), plan };
        let url = |path: &[&str]| base.url(path).unwrap().to_string();
        assert_eq!(url(&["api", "v1", "tenants"]), "http://127.0.0.1:2/api/v1/tenants");
        assert_eq!(url(&["v1", "decisions", "a/b"]), "http://127.0.0.1:1/v1/decisions/a%2Fb");
        let base = Base::Named(Url::parse("https://a.example/under/").unwrap());
        assert_eq!(base.url(&["v1", "x"]).unwrap().as_str(), "https://a.example/under/v1/x");
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

    #[test]
    fn an_old_sign_in_is_refused_in_the_words_of_the_service() {
        let body = r#"{"ok": false, "error": "insufficient_user_authentication", "message": "sign in again (`max_age=60`)",
            "details": [{"field": "max_age", "problem": "is 60", "value": 60}], "request_id": "7f"}"#;
        let refused = |base: &str, advice| {
            let base = Base::Named(Url::parse(base).unwrap());
            let view = View { utc: true, json: false };
            let server = Server::new(base, &Secret::new("t"), advice, view).unwrap();
            server.refused(StatusCode::UNAUTHORIZED, body, || None).to_string()
        };
        let words = "insufficient_user_authentication: sign in again (`max_age=60`) (request 7f)";
        assert_eq!(
            refused("https://a.example/", "\nlog in again"),
            format!(
                "{words}\nsign in anew: agent-authority login --fresh --url https://a.example/"
            )
        );
        // The advice is empty for a token that the user passed.
        assert_eq!(refused("https://a.example/", ""), words);
    }
}
