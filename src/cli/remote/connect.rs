//! Which service a command calls, and as whom: the one that `--url` names, or else the server that the
//! settings describe, as its owner.

use std::{env, net::SocketAddr, time::Duration};

use agent_authority::{telemetry, transport};
use authority_core::config::{Config, Secret, Sources};
use clap::builder::{StringValueParser, TypedValueParser as _};
use reqwest::Url;
use tokio::{net::TcpStream, time::timeout};

use super::server::{Base, Server, is_loopback};
use crate::cli::{Actions, Failure, TokenRequest, health};

const TO_CONNECT: Duration = Duration::from_secs(5);
const TOKEN: &str = "AGENT_AUTHORITY_TOKEN";

// Not `///`: that would become the help of the commands themselves.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Server")]
pub(in crate::cli) struct ServerArgs {
    /// The service to call; needs a token [default: the local development server]
    #[arg(long, value_name = "URL", value_parser = address)]
    url: Option<Url>,
    /// A JWT or an API key [env, with --url: `AGENT_AUTHORITY_TOKEN`] [default, without --url: an owner's]
    #[arg(long, value_parser = StringValueParser::new().map(Secret::new))]
    token: Option<Secret>,
}

/// Connects commands to their service.
pub(in crate::cli) struct Connector<'a, A> {
    pub(in crate::cli) actions: &'a A,
    /// Only read for the local server: the settings here do not concern another.
    pub(in crate::cli) sources: &'a Sources,
}

impl<A: Actions> Connector<'_, A> {
    pub(super) async fn connect(&self, to: ServerArgs) -> Result<Server, Failure> {
        // An empty token counts as none.
        let token = to.token.filter(is_given);
        match to.url {
            Some(url) => {
                // One from the environment is meant for a named service, not for the local one.
                let token = token.or_else(from_environment);
                let missing =
                    || Failure::usage("--url needs a token: --token, or AGENT_AUTHORITY_TOKEN");
                Server::new(Base::Named(url), &token.ok_or_else(missing)?, "")
            }
            None => self.local(token).await,
        }
    }

    /// The server that the settings describe; with an owner's token unless one was given.
    async fn local(&self, token: Option<Secret>) -> Result<Server, Failure> {
        let config = Config::load(self.sources)?;
        config.validate()?;
        // The database is only needed for the token: its log would distract.
        telemetry::log(&config.logs, None, "error").map_err(Failure::usage)?;
        let main = health::reachable(config.listen.main);
        let base = Base::Local { main, plan: transport::plan(&config.listen) };
        // Checked before a token is made, which would start the database.
        listens(main).await?;
        if let Some(token) = token {
            return Server::new(base, &token, "");
        }
        if from_environment().is_some() {
            eprintln!("{TOKEN} is for --url; the local server is called with an owner's token");
        }
        let advice = "\nthis configuration's tokens are not the server's: run this in the folder that \
                      it was started in, or give its --data-dir";
        Server::new(base, &self.owner(config, main).await?, advice)
    }

    /// A token as `token owner` makes it.
    async fn owner(&self, config: Config, address: SocketAddr) -> Result<Secret, Failure> {
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
        let owner = TokenRequest::Owner { email: None };
        Ok(Secret::new(self.actions.token(config, owner).await?))
    }
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
}
