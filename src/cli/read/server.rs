//! The server to read from: one GET over HTTP, and errors in the terms of the command line.

use std::{net::SocketAddr, time::Duration};

use agent_authority::transport;
use authority_core::config::{Config, Secret};
use clap::builder::{StringValueParser, TypedValueParser as _};
use reqwest::{Client, StatusCode, Url, header::HeaderValue, redirect::Policy};
use serde::Deserialize;
use tokio::{net::TcpStream, time::timeout};

use super::text::plain;
use crate::cli::{Actions, Failure, TokenRequest, health};

const TO_CONNECT: Duration = Duration::from_secs(5);
/// For the whole response.
const PATIENCE: Duration = Duration::from_secs(60);

// The server arguments. Not `///`: that would become the help of the commands themselves.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Server")]
pub(super) struct Where {
    /// The service to read from; needs a token [default: the local development server]
    #[arg(long, value_name = "URL", value_parser = address)]
    url: Option<Url>,
    /// A JWT or an API key; one from the environment is only sent to --url
    #[arg(long, env = "AGENT_AUTHORITY_TOKEN", hide_env_values = true,
        value_parser = StringValueParser::new().map(Secret::new))]
    token: Option<Secret>,
}

/// A service to read from.
pub(super) struct Server {
    base: Url,
    token: HeaderValue,
    http: Client,
    /// Advice for a token that it does not accept.
    advice: &'static str,
}

impl Where {
    /// A token from the environment is meant for a named service, not for a local one; an empty token counts
    /// as none.
    pub(super) fn token_from_environment(mut self, by_environment: bool) -> Self {
        let is_meant = self.url.is_some() || !by_environment;
        self.token = self.token.filter(|token| is_meant && !token.reveal().trim().is_empty());
        self
    }

    /// Whether it reads from this configuration's own server.
    pub(super) fn is_here(&self) -> bool {
        self.url.is_none()
    }

    /// The service that was named.
    pub(super) fn named(self) -> Result<Server, Failure> {
        match (self.url, self.token) {
            (Some(url), Some(token)) => Server::new(url, &token, ""),
            (Some(_), None) => {
                Err(Failure::usage("--url needs a token: --token, or AGENT_AUTHORITY_TOKEN"))
            }
            (None, _) => Err(Failure::usage("--url names the service")),
        }
    }

    /// The server that `config` describes, at the address that serves `path`; with an owner's token unless
    /// one was given.
    pub(super) async fn here(
        self,
        actions: &impl Actions,
        config: Config,
        path: &str,
    ) -> Result<Server, Failure> {
        let plan = transport::plan(&config.listen);
        let serves = plan.iter().find(|(_, surfaces)| surfaces.serve(path));
        let address = health::reachable(serves.map_or(config.listen.main, |(at, _)| *at));
        // Checked before a token is made, which would start the database.
        listens(address).await?;
        let advice = "\nthis configuration's tokens are not the server's: run this in the folder \
                      that it was started in, or give its --data-dir";
        let (token, advice) = match self.token {
            Some(token) => (token, ""),
            None => (owner(actions, config, address).await?, advice),
        };
        let url = Url::parse(&format!("http://{address}")).map_err(Failure::new)?;
        Server::new(url, &token, advice)
    }
}

async fn listens(address: SocketAddr) -> Result<(), Failure> {
    let problem = match timeout(TO_CONNECT, TcpStream::connect(address)).await {
        Ok(Ok(_)) => return Ok(()),
        Ok(Err(error)) => error.to_string(),
        Err(_) => "no answer".to_owned(),
    };
    Err(Failure::new(format!(
        "no service at {address}: {problem}\nstart it with `agent-authority serve`, say where it \
         is with --listen, or name another with --url"
    )))
}

/// A token as `token owner` makes it.
async fn owner(
    actions: &impl Actions,
    config: Config,
    address: SocketAddr,
) -> Result<Secret, Failure> {
    if !config.dev_provider() {
        return Err(Failure::usage(
            "tokens come from your identity provider: give one with --token",
        ));
    }
    if config.database.url.is_none() && !config.data_dir.is_dir() {
        // Otherwise a new database would be created here, whose tokens the server does not accept.
        return Err(Failure::new(format!(
            "a service listens at {address}, but its folder `{}` is not here: run this in the \
             folder that it was started in, or give its --data-dir",
            config.data_dir.display()
        )));
    }
    Ok(Secret::new(actions.token(config, TokenRequest::Owner { email: None }).await?))
}

impl Server {
    fn new(base: Url, token: &Secret, advice: &'static str) -> Result<Self, Failure> {
        let bearer = format!("Bearer {}", token.reveal().trim());
        let mut token = HeaderValue::try_from(bearer).map_err(|_| {
            Failure::usage("--token: has characters that an HTTP header may not contain")
        })?;
        token.set_sensitive(true);
        // A redirect could lead from https to anywhere.
        let http = Client::builder()
            .timeout(PATIENCE)
            .connect_timeout(TO_CONNECT)
            .redirect(Policy::none());
        let http = if is_loopback(&base) { http.no_proxy() } else { http };
        Ok(Self { base, token, http: http.build().map_err(Failure::new)?, advice })
    }

    /// The body of a success, unchanged.
    pub(super) async fn get(
        &self,
        path: &[&str],
        query: &[(String, String)],
    ) -> Result<String, Failure> {
        let mut url = self.base.clone();
        url.path_segments_mut()
            .map_err(|()| Failure::usage("--url: cannot take a path"))?
            .pop_if_empty()
            .extend(path);
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        let request = self.http.get(url).header("authorization", self.token.clone());
        let answer = request.send().await.map_err(|error| self.unreached(error))?;
        let status = answer.status();
        let body = answer.text().await.map_err(|error| self.unreached(error))?;
        if status.is_success() { Ok(body) } else { Err(self.refused(status, &body)) }
    }

    fn unreached(&self, error: reqwest::Error) -> Failure {
        let error = error.without_url();
        let mut cause: &dyn std::error::Error = &error;
        while let Some(deeper) = cause.source() {
            cause = deeper;
        }
        Failure::new(format!(
            "no answer from {}: {}\nis the address right, and does the service run?",
            self.base,
            plain(&cause.to_string())
        ))
    }

    fn refused(&self, status: StatusCode, body: &str) -> Failure {
        let Ok(refusal) = serde_json::from_str::<ApiError>(body) else {
            return self.unexpected(&format!("status {status}"));
        };
        let advice = if status == StatusCode::UNAUTHORIZED { self.advice } else { "" };
        Failure::new(format!("{}{advice}", refusal.text()))
    }

    /// Something answers at the address, but not this service.
    pub(super) fn unexpected(&self, what: &str) -> Failure {
        let base = &self.base;
        Failure::new(format!("{base} does not answer as Agent Authority does: {what}"))
    }
}

/// The body of every error.
#[derive(Deserialize)]
struct ApiError {
    error: String,
    message: String,
    #[serde(default)]
    details: Vec<Detail>,
    request_id: Option<String>,
}

#[derive(Deserialize)]
struct Detail {
    field: String,
    problem: String,
}

impl ApiError {
    /// The error as text; invalid parameters have the names of their flags.
    fn text(&self) -> String {
        let details = self
            .details
            .iter()
            .map(|Detail { field, problem }| format!("{} {problem}", super::command::typed(field)));
        let details = details.collect::<Vec<_>>().join("; ");
        let why = if details.is_empty() { &self.message } else { &details };
        let request = self.request_id.as_ref().map(|id| format!(" (request {id})"));
        plain(&format!("{}: {why}{}", self.error, request.unwrap_or_default()))
    }
}

/// Parses `--url`: a token must not cross a network in the clear.
fn address(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| error.to_string())?;
    let safe = url.scheme() == "https" || url.scheme() == "http" && is_loopback(&url);
    if !safe {
        return Err("a token goes over https only, or http on this machine".to_owned());
    }
    let bare = url.username().is_empty() && url.password().is_none();
    if !bare || url.query().is_some() || url.fragment().is_some() {
        return Err("only scheme, host, port and path".to_owned());
    }
    Ok(url)
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    let address = host.parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_goes_to_https_or_to_this_machine() {
        for good in [
            "https://a.example",
            "https://a.example/under/",
            "http://127.0.0.1:8080",
            "http://[::1]:1",
            "http://localhost",
        ] {
            assert!(address(good).is_ok(), "{good}");
        }
        for bad in [
            "http://a.example",
            "ftp://a.example",
            "a.example:80",
            "https://u:p@a.example",
            "https://a.example?x=1",
            "http://127.0.0.1.example",
            "",
        ] {
            assert!(address(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_refusal_names_flags_and_carries_no_control_characters() {
        let body = r#"{"ok": false, "error": "invalid_request", "message": "the request is",
            "details": [{"field": "page_token", "problem": "is \u001b[31mnot ours"},
                        {"field": "tenant_id", "problem": "is unknown"}], "request_id": "7f"}"#;
        let refusal: ApiError = serde_json::from_str(body).unwrap();
        assert_eq!(
            refusal.text(),
            "invalid_request: --page-token is \\u{1b}[31mnot ours; --tenant is unknown (request 7f)"
        );
    }
}
