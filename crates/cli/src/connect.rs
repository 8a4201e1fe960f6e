//! Selects the service that a command calls, and the credential.
//!
//! The service is given with `--url`. Otherwise it is the server that the settings describe, and
//! the command calls it as the owner.

use std::{env, net::SocketAddr, time::Duration};

use authority_client::{Base, address, reachable};
use authority_config::{Config, Secret, Sources};
use clap::builder::{StringValueParser, TypedValueParser as _};
use futures_util::future::LocalBoxFuture;
use reqwest::Url;
use tokio::{net::TcpStream, time::timeout};

use crate::{
    logins::{self, Login, Logins},
    outcome::Failure,
    place,
    server::Server,
    token_request::TokenRequest,
    view::View,
};

const TO_CONNECT: Duration = Duration::from_secs(5);
const TOKEN: &str = "AGENT_AUTHORITY_TOKEN";

// Not `///`: that would become the help of the commands themselves.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Server")]
pub struct ServerArgs {
    /// The service to call [default: the service that you are logged in to, otherwise the local
    /// development server]
    #[arg(long, value_name = "URL", value_parser = address)]
    url: Option<Url>,
    /// A JWT or an API key [env: `AGENT_AUTHORITY_TOKEN`, only with --url] [default: the token of
    /// `login`; on the local server an owner's token]
    #[arg(long, value_parser = StringValueParser::new().map(Secret::new))]
    token: Option<Secret>,
}

/// Issues a token of the development provider, which is part of the server.
pub type IssueToken<'a> =
    dyn Fn(Config, TokenRequest) -> LocalBoxFuture<'a, Result<String, Failure>> + 'a;

/// Connects commands to their service.
pub struct Connector<'a> {
    pub issue: &'a IssueToken<'a>,
    /// Used for the local server only: these settings do not apply to another server.
    pub sources: &'a Sources,
    pub view: View,
}

impl Connector<'_> {
    pub async fn connect(&self, to: ServerArgs) -> Result<Server, Failure> {
        let has_token = to.token.as_ref().is_some_and(is_given);
        let place = place::flags(self.sources, to.url.as_ref(), has_token);
        Ok(self.found(to).await?.named_by(place))
    }

    async fn found(&self, to: ServerArgs) -> Result<Server, Failure> {
        // An empty token counts as none.
        let mut token = to.token.filter(is_given);
        let url = match to.url {
            Some(url) => {
                // A token in the environment is meant only for a service given with `--url`.
                token = token.or_else(from_environment);
                Some(url)
            }
            None if self.names_local() => None,
            None => Logins::read(self.sources)?.current,
        };
        let Some(url) = url else { return self.local(token).await };
        let advice = "\nlog in again: agent-authority login --url, with this address";
        let (token, advice) = match token {
            Some(token) => (token, ""),
            None => (self.logged_in(&url).await?, advice),
        };
        Server::new(Base::Named(url), token.reveal(), advice, self.view)
    }

    async fn logged_in(&self, url: &Url) -> Result<Secret, Failure> {
        let token = logins::token(self.sources, url).await?;
        token.ok_or_else(|| {
            Failure::usage(format!(
                "{url} needs a token: log in with `agent-authority login --url {url}`, or give one with --token or \
                 {TOKEN}"
            ))
        })
    }

    /// Connects to the server that the settings describe, with the given token, as the logged-in
    /// person, or as the owner.
    async fn local(&self, token: Option<Secret>) -> Result<Server, Failure> {
        let config = self.config()?;
        let main = reachable(config.listen.main);
        let base = Base::Local { scheme: config.tls.scheme(), main, plan: config.listen.plan() };
        // This check comes first, because issuing a token would start the database.
        listens(main).await.map_err(|problem| self.absent(main, &problem))?;
        if let Some(token) = token {
            return Server::new(base, token.reveal(), "", self.view);
        }
        let person = match Logins::read(self.sources)?.of(&url_of(&config)?) {
            Some(Login::Development(person)) => Some(person.request()),
            _ => None,
        };
        if from_environment().is_some() {
            let whose = if person.is_some() { "a login's" } else { "an owner's" };
            eprintln!("{TOKEN} is for --url; the local server is called with {whose} token");
        }
        let request = person.unwrap_or(TokenRequest::Owner { email: None });
        let advice = "\nthe server does not accept this configuration's tokens: run this in the \
                      folder where the server was started, or give its --data-dir";
        let token = self.issued(config, main, request).await?;
        Server::new(base, token.reveal(), advice, self.view)
    }

    /// The failure if no service can be called. A user who neither named a service nor logged in
    /// may have meant another service.
    fn absent(&self, address: SocketAddr, problem: &str) -> Failure {
        if self.names_local() {
            return not_there(address, problem);
        }
        Failure::new(format!(
            "not logged in, and no development server at {address}: {problem}\nlog in with \
             `agent-authority login --url`, or start a server with `agent-authority serve`"
        ))
    }

    /// Whether the local server is meant: a flag or a file gives its settings.
    fn names_local(&self) -> bool {
        self.sources.file.is_some() || !self.sources.flags.is_empty()
    }

    /// Returns the address of the local server, and a token of its development provider.
    pub(crate) async fn development(
        &self,
        request: TokenRequest,
    ) -> Result<(Url, String), Failure> {
        let config = self.config()?;
        let (main, url) = (reachable(config.listen.main), url_of(&config)?);
        listens(main).await.map_err(|problem| not_there(main, &problem))?;
        let token = self.issued(config, main, request).await?;
        Ok((url, token.reveal().to_owned()))
    }

    /// The address of the local server.
    pub(crate) fn local_url(&self) -> Result<Url, Failure> {
        url_of(&self.config()?)
    }

    fn config(&self) -> Result<Config, Failure> {
        let config = Config::load(self.sources)?;
        config.validate()?;
        Ok(config)
    }

    /// Issues a token, like the command `token`.
    async fn issued(
        &self,
        config: Config,
        address: SocketAddr,
        request: TokenRequest,
    ) -> Result<Secret, Failure> {
        if !config.dev_provider() {
            return Err(Failure::usage(
                "tokens come from your identity provider: log in with `agent-authority login --url`, or give one \
                 with --token",
            ));
        }
        if config.database.url.is_none() && !config.data_dir.is_dir() {
            // A token of a new database would be refused: no database is created here.
            return Err(Failure::new(format!(
                "a service listens at {address}, but its folder `{}` is not here: run this in the \
                 folder where it was started, or give its --data-dir",
                config.data_dir.display()
            )));
        }
        Ok(Secret::new((self.issue)(config, request).await?))
    }
}

/// The URL of the local server.
fn url_of(config: &Config) -> Result<Url, Failure> {
    let address = reachable(config.listen.main);
    Url::parse(&format!("{}://{address}/", config.tls.scheme())).map_err(Failure::new)
}

#[expect(
    clippy::disallowed_methods,
    reason = "a credential of the caller, not a setting of the service"
)]
fn from_environment() -> Option<Secret> {
    env::var(TOKEN).ok().map(Secret::new).filter(is_given)
}

fn is_given(token: &Secret) -> bool {
    !token.reveal().trim().is_empty()
}

/// Checks that a server listens at the address.
async fn listens(address: SocketAddr) -> Result<(), String> {
    match timeout(TO_CONNECT, TcpStream::connect(address)).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("no answer".to_owned()),
    }
}

fn not_there(address: SocketAddr, problem: &str) -> Failure {
    Failure::new(format!(
        "no service at {address}: {problem}\nstart it with `agent-authority serve`, give its \
         address with --listen, or call another service with --url"
    ))
}
