//! `login` and `logout`.

use authority_client::address;
use authority_config::DEMO_TENANT;
use clap::Args;
use reqwest::Url;
use serde_json::json;

use crate::{
    connect::Connector,
    identity::identity_of,
    logins::{Login, Logins, Person, Provider},
    outcome::{CommandOutput, Failure},
};

#[derive(Debug, Args)]
pub struct LoginArgs {
    /// The service to log in to [default: the local development server]
    #[arg(long, value_name = "URL", value_parser = address)]
    url: Option<Url>,
    /// The identity provider's URL, the `iss` of its tokens; remembered
    #[arg(long, value_name = "URL", value_parser = address, requires = "url")]
    issuer: Option<Url>,
    /// The client that is registered there for this command line, without a secret; remembered
    #[arg(long, value_name = "ID", requires = "url")]
    client_id: Option<String>,
    /// Sent as `audience`, for providers that need it; remembered
    #[arg(long, value_name = "TEXT", requires = "url")]
    audience: Option<String>,
    /// A scope to request; repeat it [default: `openid`, `profile`, `email`, `offline_access`];
    /// remembered
    #[arg(long = "scope", requires = "url")]
    scopes: Vec<String>,
    /// Sign in again even if the identity provider has a session: for approvals that require a
    /// recent sign-in
    #[arg(long, requires = "url")]
    fresh: bool,
    /// Development: the role of the demonstration's person [default: the owner of the installation]
    #[arg(long, conflicts_with = "url",
          value_parser = ["admin", "approver", "legal", "member", "viewer", "auditor"])]
    role: Option<String>,
    /// Development: the person's tenant, by its slug
    #[arg(long, default_value = DEMO_TENANT, conflicts_with = "url")]
    tenant: String,
    /// Development: the person's address [default: `<role>@<tenant>.example`]
    #[arg(long, conflicts_with = "url")]
    email: Option<String>,
}

#[derive(Debug, Args)]
pub struct LogoutArgs {
    /// The service to forget [default: the service that commands call]
    #[arg(long, value_name = "URL", value_parser = address)]
    url: Option<Url>,
}

impl LoginArgs {
    pub async fn run(self, connector: &Connector<'_>) -> Result<CommandOutput, Failure> {
        match self.url.clone() {
            Some(url) => self.by_device(url, connector).await,
            None => self.in_development(connector).await,
        }
    }

    async fn by_device(
        self,
        url: Url,
        connector: &Connector<'_>,
    ) -> Result<CommandOutput, Failure> {
        let before = Logins::read(connector.sources)?.of(&url).cloned();
        let known = before.as_ref().and_then(Login::provider);
        let provider = Provider {
            issuer: given(
                self.issuer,
                known.map(|known| &known.issuer),
                "--issuer, the identity provider's URL",
            )?,
            client_id: given(
                self.client_id,
                known.map(|known| &known.client_id),
                "--client-id, the client registered there for this command line",
            )?,
            audience: self.audience.or_else(|| known?.audience.clone()),
            scopes: match known {
                Some(known) if self.scopes.is_empty() => known.scopes.clone(),
                _ => self.scopes,
            },
        };
        let tokens = provider.log_in(self.fresh).await?;
        let identity = identity_of(tokens.bearer(), url.as_str(), connector.view);
        Logins::change(connector.sources, |logins| {
            logins.put(&url, Login::Device { provider, tokens });
            logins.current = Some(url);
        })?;
        Ok(identity)
    }

    /// The development provider requires no proof of identity: it signs for anyone with access to
    /// its folder.
    async fn in_development(self, connector: &Connector<'_>) -> Result<CommandOutput, Failure> {
        let person = Person { role: self.role, tenant: self.tenant, email: self.email };
        let (url, token) = connector.development(person.request()).await?;
        let identity = identity_of(&token, url.as_str(), connector.view);
        Logins::change(connector.sources, |logins| {
            logins.put(&url, Login::Development(person));
            logins.current = None;
        })?;
        Ok(identity)
    }
}

impl LogoutArgs {
    /// Removes the login here, and asks the provider to revoke its refresh token.
    pub async fn run(self, connector: &Connector<'_>) -> Result<CommandOutput, Failure> {
        let logins = Logins::read(connector.sources)?;
        let url = match self.url.or_else(|| logins.current.clone()) {
            Some(url) => url,
            None => connector.local_url()?,
        };
        let forgotten = Logins::change(connector.sources, |logins| logins.forget(&url))?;
        let text = match &forgotten {
            Some(_) => format!("logged out of {url}"),
            None => format!("there was no login to {url}"),
        };
        let kept = match &forgotten {
            Some(Login::Device { provider, tokens }) => provider.revoke(tokens).await.err(),
            _ => None,
        };
        let kept = kept.map(|why| {
            format!("the refresh token was not revoked and stays valid at the provider: {why}")
        });
        let json = json!({"url": url, "logged_out": forgotten.is_some(), "not_revoked": kept});
        let aside = kept.unwrap_or_default();
        Ok(CommandOutput { text, json: Some(json.to_string()), aside, ..CommandOutput::default() })
    }
}

/// Returns the flag's value, or the stored value of the last login.
fn given<T: Clone>(flag: Option<T>, known: Option<&T>, what: &str) -> Result<T, Failure> {
    flag.or_else(|| known.cloned())
        .ok_or_else(|| Failure::usage(format!("the first login to a service needs {what}")))
}
