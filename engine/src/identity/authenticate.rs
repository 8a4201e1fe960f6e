//! From a request's headers to a caller who may call this method.

use std::{net::IpAddr, sync::Arc};

use http::HeaderMap;

use super::{
    Caller, Claims, Directory, Error, Issuer, LastUsed, Rules, Secrets, Standing, TenantFacts,
    api_key, bearer::bearer, jwt::Verifier, permit,
};
use crate::clock::Clock;

/// The role that makes a token the installation's owner's.
const OWNER: &str = "owner";

/// What [`Identity`] is made of.
pub struct Settings {
    pub issuers: Vec<Issuer>,
    pub rules: Rules,
    pub directory: Arc<dyn Directory>,
    pub secrets: Arc<dyn Secrets>,
    pub clock: Clock,
}

/// Authenticates and authorises every call. Cheap to clone.
#[derive(Clone)]
pub struct Identity(Arc<Inner>);

struct Inner {
    verifier: Verifier,
    rules: Rules,
    directory: Arc<dyn Directory>,
    secrets: Arc<dyn Secrets>,
    clock: Clock,
    used: Arc<LastUsed>,
}

impl Identity {
    pub fn new(settings: Settings) -> Self {
        let Settings { issuers, rules, directory, secrets, clock } = settings;
        let verifier = Verifier::new(issuers, clock.clone());
        let used = Arc::default();
        Self(Arc::new(Inner { verifier, rules, directory, secrets, clock, used }))
    }

    /// When API keys were last used, to be drained now and then.
    pub fn last_used(&self) -> Arc<LastUsed> {
        Arc::clone(&self.0.used)
    }

    /// Who calls `rpc_path` (`/package.Service/Method`), if they may. Waits only when an issuer's
    /// keys must be fetched.
    pub async fn authenticate(
        &self,
        rpc_path: &str,
        headers: &HeaderMap,
        peer: Option<IpAddr>,
    ) -> Result<Caller, Error> {
        let rule = self.0.rules.of(rpc_path);
        let caller = match self.identify(headers, peer).await {
            Ok(caller) => caller,
            // Where nobody needs a credential, a bad one grants nothing and costs nothing.
            Err(_) if rule.is_some_and(|rule| rule.public) => Caller::anonymous(),
            Err(error) => return Err(error),
        };
        permit(rule, &caller)?;
        Ok(caller)
    }

    /// Who calls, whatever they may do.
    pub async fn identify(
        &self,
        headers: &HeaderMap,
        peer: Option<IpAddr>,
    ) -> Result<Caller, Error> {
        match bearer(headers)? {
            None => Ok(Caller::anonymous()),
            Some(_) if !self.0.directory.is_fresh() => Err(Error::Unavailable),
            Some(key) if api_key::is_meant(key) => self.key(key, peer),
            Some(token) => {
                let digest = self.0.secrets.digest(token.as_bytes());
                let claims = self.0.verifier.verify(token, digest).await?;
                self.person(&claims)
            }
        }
    }

    fn key(&self, text: &str, peer: Option<IpAddr>) -> Result<Caller, Error> {
        let inner = &self.0;
        let presented = api_key::parse(text)?;
        let facts = inner.directory.api_key(presented.public_id);
        let facts = facts.ok_or(Error::Key("it is unknown"))?;
        let now = inner.clock.now();
        let caller = api_key::check(&*inner.secrets, &presented, &facts, peer, now)?;
        active(inner.directory.tenant(&facts.tenant_id))?;
        inner.used.note(&facts.id, now);
        Ok(caller)
    }

    fn person(&self, claims: &Claims) -> Result<Caller, Error> {
        let actor = claims.actor().to_owned();
        let role = claims.public_metadata.role.as_deref().unwrap_or_default();
        if role == OWNER {
            let standing =
                Standing::Owner { issuer: claims.iss.clone(), subject: claims.sub.clone() };
            return Ok(Caller { actor, standing });
        }
        let directory = &self.0.directory;
        let by_org = claims.org_id.as_deref().and_then(|org| directory.tenant_of_org(org));
        let tenant = by_org.or_else(|| {
            claims.public_metadata.tenant_id.as_deref().and_then(|id| directory.tenant(id))
        });
        let tenant = active(tenant)?;
        let standing = Standing::Member {
            tenant_id: tenant.id.to_string(),
            role: role.to_owned(),
            issuer: claims.iss.clone(),
            subject: claims.sub.clone(),
        };
        Ok(Caller { actor, standing })
    }
}

fn active(tenant: Option<TenantFacts>) -> Result<TenantFacts, Error> {
    match tenant {
        Some(tenant) if tenant.active => Ok(tenant),
        Some(_) => Err(Error::Forbidden("the credential's tenant is suspended or deleted")),
        None => Err(Error::Forbidden("the credential belongs to no tenant of this service")),
    }
}
