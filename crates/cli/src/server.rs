//! The service that a command calls: its client, and errors in the terms of the command line.

use std::{env, fmt::Display, fs};

use authority_client::{Base, Client, Error, Lines, Next, Refusal, Surface};
use reqwest::StatusCode;
use serde::Serialize;
use serde_json::Value;

use crate::{
    http::authority_remedy,
    identity::{caller_of, identity_of},
    outcome::{CommandOutput, Failure},
    place,
    refusal::{remedy, text},
    text::plain,
    view::View,
};

/// The variable with the path of a PEM file: the client certificate that commands present, and its
/// private key.
const CLIENT_CERTIFICATE: &str = "AGENT_AUTHORITY_CLIENT_CERTIFICATE";

#[expect(
    clippy::disallowed_methods,
    reason = "a credential of the caller, not a setting of the service"
)]
fn client_certificate() -> Result<Option<Vec<u8>>, Failure> {
    let Some(path) = env::var_os(CLIENT_CERTIFICATE).filter(|path| !path.is_empty()) else {
        return Ok(None);
    };
    let read = fs::read(&path).map_err(|error| {
        Failure::usage(format!("{CLIENT_CERTIFICATE}: `{}`: {error}", path.display()))
    });
    read.map(Some)
}

/// Returns the remedy if a service did not respond.
fn unreached_remedy(base: &str, cause: &str) -> String {
    if let Some(remedy) = authority_remedy(cause) {
        return remedy.to_owned();
    }
    let alert = cause.split_once("fatal alert: ").map_or("", |(_, alert)| alert);
    if alert.contains("Certificate") || alert.contains("UnknownCA") {
        return client_certificate_remedy();
    }
    let check = "check the address, and that the service is running";
    // The connection can end before the client has read the alert.
    let cause = cause.to_lowercase();
    let has_ended = ["closed", "reset", "broken pipe"].iter().any(|end| cause.contains(end));
    if base.starts_with("https:") && has_ended {
        format!("{check}\n{}", client_certificate_remedy())
    } else {
        check.to_owned()
    }
}

fn client_certificate_remedy() -> String {
    format!(
        "if the service checks the certificates of clients, set {CLIENT_CERTIFICATE} to a PEM file \
         with a certificate that it accepts, and its private key"
    )
}

/// A service to call.
pub struct Server {
    client: Client,
    /// The surface (the set of paths) that the token gives access to.
    surface: Surface,
    /// The advice if the service does not accept the token.
    advice: &'static str,
    view: View,
    /// The flags with which the user chose the service.
    place: String,
}

impl Server {
    pub(crate) fn new(
        base: Base,
        token: &str,
        advice: &'static str,
        view: View,
    ) -> Result<Self, Failure> {
        let surface = Surface::of(token.trim());
        let certificate = client_certificate()?;
        let client = Client::with_certificate(base, token, certificate.as_deref());
        let client = client.map_err(|error| match error {
            Error::Credential => {
                Failure::usage("--token: has characters that an HTTP header may not contain")
            }
            other if certificate.is_some() => {
                Failure::usage(format!("{CLIENT_CERTIFICATE} cannot be used: {other}"))
            }
            other => Failure::new(other),
        })?;
        Ok(Self { client, surface, advice, view, place: String::new() })
    }

    /// Sets the flags with which the user chose the service.
    pub(crate) fn named_by(self, place: String) -> Self {
        Self { place, ..self }
    }

    /// Returns the client, for calls with errors of their own.
    pub(crate) fn into_client(self) -> Client {
        self.client
    }

    /// Returns a shell command that calls the same service.
    pub(crate) fn command(&self, typed: &str) -> String {
        format!("{} {typed}{}", place::program(), self.place)
    }

    /// Returns the address of a path of the service.
    pub(crate) fn address_of(&self, path: &[&str]) -> Result<String, Failure> {
        let url = self.client.url(path, &()).map_err(|error| self.failure(error))?;
        Ok(url.to_string())
    }

    /// The form of the output.
    pub(crate) fn view(&self) -> View {
        self.view
    }

    /// Describes the caller's identity.
    pub fn whoami(&self) -> CommandOutput {
        identity_of(self.client.credential(), &self.address(), self.view)
    }

    /// The service's address, for people.
    pub(crate) fn address(&self) -> String {
        self.client.base().to_string()
    }

    /// Whether the credential opens this surface.
    pub(crate) fn opens(&self, surface: Surface) -> bool {
        self.surface == surface
    }

    /// The path with the credential's surface in place of the segment `SURFACE`.
    pub(crate) fn path<'a>(&self, path: &[&'a str]) -> Vec<&'a str> {
        self.surface.path(path)
    }

    /// Whether the credential is an API key. Some operations have a separate path for API keys.
    pub(crate) fn has_api_key(&self) -> bool {
        self.surface == Surface::ApiKeys
    }

    /// Returns the body of a success, unchanged. The members of `query` with a value become
    /// parameters.
    pub(crate) async fn get(
        &self,
        path: &[&str],
        query: &impl Serialize,
    ) -> Result<String, Failure> {
        self.client.get(path, query).await.map_err(|error| self.failure(error))
    }

    /// Calls an operation with this body, and returns the body of its success, unchanged.
    pub(crate) async fn post(
        &self,
        path: &[&str],
        body: &impl Serialize,
    ) -> Result<String, Failure> {
        self.client.post(path, body).await.map_err(|error| self.failure(error))
    }

    /// Opens the stream at a path.
    pub(crate) async fn lines(
        &self,
        path: &[&str],
        query: &impl Serialize,
    ) -> Result<Lines, Failure> {
        self.client.lines(path, query).await.map_err(|error| self.failure(error))
    }

    /// Returns the next part of a stream.
    pub(crate) async fn next(&self, lines: &mut Lines) -> Result<Next, Failure> {
        match lines.next().await {
            Ok(Next::Lost(why)) => Ok(Next::Lost(plain(&why))),
            next => next.map_err(|error| self.failure(error)),
        }
    }

    pub(crate) fn json(&self, body: &str) -> Result<Value, Failure> {
        self.client.read(body).map_err(|error| self.failure(error))
    }

    /// The failure if the address belongs to another service.
    pub(crate) fn unexpected(&self, what: impl Display) -> Failure {
        self.failure(self.client.unexpected(what))
    }

    fn failure(&self, error: Error) -> Failure {
        match error {
            Error::Unreached { base, cause } => {
                let remedy = unreached_remedy(&base, &cause);
                Failure::unreached(format!("no answer from {base}: {}\n{remedy}", plain(&cause)))
            }
            Error::Refused(refusal) => self.refused(&refusal),
            Error::Ended(error) => Failure::new(text(&error)),
            Error::Address => Failure::usage("--url: cannot take a path"),
            other => Failure::new(other),
        }
    }

    fn refused(&self, refusal: &Refusal) -> Failure {
        let error = &refusal.error;
        let advice = match refusal.status {
            _ if error.asks_for_a_sign_in() => self.fresh_login(),
            StatusCode::UNAUTHORIZED => self.advice.to_owned(),
            StatusCode::FORBIDDEN if error.message.contains("needs a client certificate") => {
                format!("\n{}", client_certificate_remedy())
            }
            _ if error.is_of_rules() => self.not_permitted(),
            _ => remedy(&error.error).to_owned(),
        };
        let failure = Failure::new(format!("{}{advice}", text(error)));
        if error.is_of_rules() { failure.forbidden() } else { failure }
    }

    /// Describes the caller. The service's message names the people who may call the operation.
    fn not_permitted(&self) -> String {
        format!("\nyou are {}", caller_of(self.client.credential()))
    }

    /// The advice if the service requires a recent sign-in. It is empty for a token that the user
    /// passed, because only the user knows where that token comes from.
    fn fresh_login(&self) -> String {
        match self.client.base() {
            Base::Named(url) if !self.advice.is_empty() => {
                format!("\nsign in anew: agent-authority login --fresh --url {url}")
            }
            _ => String::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use authority_client::ApiError;
    use reqwest::{Method, Url};

    use super::*;

    #[test]
    fn an_old_sign_in_is_refused_in_the_words_of_the_service() {
        let body = r#"{"ok": false, "error": "insufficient_user_authentication", "message": "sign in again (`max_age=60`)",
            "details": [{"field": "max_age", "problem": "is 60", "value": 60}], "request_id": "7f"}"#;
        let refused = |base: &str, advice| {
            let base = Base::Named(Url::parse(base).unwrap());
            let view = View { utc: true, json: false };
            let server = Server::new(base, "t", advice, view).unwrap();
            let error: ApiError = serde_json::from_str(body).unwrap();
            let (status, path) = (StatusCode::UNAUTHORIZED, "/api/v1/approvals".to_owned());
            server.refused(&Refusal { status, method: Method::POST, path, error }).to_string()
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

    #[test]
    fn a_certificate_problem_has_its_remedy() {
        let base = "https://a.example/";
        let named = Base::Named(Url::parse(base).unwrap());
        let server = Server::new(named, "t", "", View { utc: true, json: false }).unwrap();
        let (private, own) = ("set SSL_CERT_FILE to", "set AGENT_AUTHORITY_CLIENT_CERTIFICATE to");
        let check = "check the address, and that the service is running";
        for (cause, remedies) in [
            ("invalid peer certificate: UnknownIssuer", [Some(private), None]),
            ("received fatal alert: CertificateRequired", [Some(own), None]),
            ("received fatal alert: UnknownCA", [Some(own), None]),
            ("Connection reset by peer (os error 104)", [Some(own), Some(check)]),
            ("Connection refused (os error 111)", [None, Some(check)]),
            ("received fatal alert: ProtocolVersion", [None, Some(check)]),
        ] {
            let (base, shown) = (base.to_owned(), cause.to_owned());
            let failure = server.failure(Error::Unreached { base, cause: shown });
            let text = failure.to_string();
            assert!(failure.is_unreached() && text.contains(cause), "{text}");
            for remedy in [private, own, check] {
                assert_eq!(text.contains(remedy), remedies.contains(&Some(remedy)), "{text}");
            }
        }
        let path = "/api/v1/tenants".to_owned();
        let message =
            "this path needs a client certificate with a name that the operator has listed";
        let body =
            serde_json::json!({"error": "forbidden", "message": message, "request_id": "7f"});
        let error: ApiError = serde_json::from_value(body).unwrap();
        let (status, method) = (StatusCode::FORBIDDEN, Method::GET);
        let text = server.refused(&Refusal { status, method, path, error }).to_string();
        assert!(text.contains(message) && text.contains(own), "{text}");
    }
}
