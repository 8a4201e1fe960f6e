//! Authenticates a request by its headers and checks that the caller may call the method.

use std::{net::IpAddr, sync::Arc};

use authority_ids::TenantId;
use http::HeaderMap;

use super::{
    api_key,
    bearer::bearer,
    call::IDEMPOTENCY_KEY,
    caller::{Caller, CallerKind},
    claims::Claims,
    directory::{Directory, TenantFacts},
    error::{Error, OTHER_TENANT, PERSON_INACTIVE, TENANT_INACTIVE},
    issuer::Issuer,
    jwks_client::JwksClient,
    jwt::Verifier,
    new_keys::NewKeys,
    refusals::Refusals,
    role::Role,
    rules::{Rules, Via, permit},
    usage::LastUsed,
};
use authority_crypto::sha256;
use authority_keys::Keys;
use authority_process::clock::Clock;

/// The parts from which an [`Identity`] is created.
pub struct Settings {
    pub issuers: Vec<Issuer>,
    pub rules: Rules,
    pub directory: Arc<dyn Directory>,
    /// Computes the stored codes of API keys.
    pub keys: Keys,
    pub clock: Clock,
}

/// Authenticates and authorises every call. Cheap to clone.
#[derive(Clone)]
pub struct Identity(Arc<Inner>);

struct Inner {
    verifier: Verifier,
    rules: Rules,
    directory: Arc<dyn Directory>,
    keys: Keys,
    clock: Clock,
    used: Arc<LastUsed>,
    new_keys: NewKeys,
    refusals: Refusals,
}

impl Identity {
    pub fn new(settings: Settings) -> Self {
        let Settings { issuers, rules, directory, keys, clock } = settings;
        let verifier = Verifier::new(issuers, clock.clone());
        let used = Arc::default();
        let new_keys = NewKeys::default();
        let refusals = Refusals::new();
        Self(Arc::new(Inner { verifier, rules, directory, keys, clock, used, new_keys, refusals }))
    }

    /// The times when API keys were last used, drained periodically.
    pub fn last_used(&self) -> Arc<LastUsed> {
        Arc::clone(&self.0.used)
    }

    /// The clients that read issuers' keys over the network.
    pub fn remote_keys(&self) -> Vec<JwksClient> {
        self.0.verifier.remote_keys()
    }

    pub(super) fn verifier(&self) -> &Verifier {
        &self.0.verifier
    }

    /// Whether the rules permit `caller` to call `rpc_path` on this transport at all.
    pub fn permits(&self, rpc_path: &str, via: Via<'_>, caller: &Caller) -> bool {
        permit(&self.0.rules.of(rpc_path, via), caller, || None).is_ok()
    }

    /// Returns the caller of `rpc_path` (`/package.Service/Method`), if the rules permit the call
    /// on this transport.
    ///
    /// This waits only if an issuer's keys must be fetched, or for an API key that may have just
    /// been created.
    pub async fn authenticate(
        &self,
        rpc_path: &str,
        via: Via<'_>,
        headers: &HeaderMap,
        peer: Option<IpAddr>,
    ) -> Result<Caller, Error> {
        let admitted = self.admit(rpc_path, via, headers, peer).await;
        if let Err(error) = &admitted {
            self.0.refusals.note(error, rpc_path, peer);
        }
        admitted
    }

    async fn admit(
        &self,
        rpc_path: &str,
        via: Via<'_>,
        headers: &HeaderMap,
        peer: Option<IpAddr>,
    ) -> Result<Caller, Error> {
        let rules = self.0.rules.of(rpc_path, via);
        let caller = match self.identify(headers, peer).await {
            Ok(caller) => caller,
            // If no credential is required, an invalid credential grants no access but does not
            // fail the call.
            Err(_) if rules.clone().any(|rule| rule.public) => Caller::anonymous(),
            Err(error) => return Err(error),
        };
        permit(&rules, &caller, || self.0.rules.for_keys(rpc_path))?;
        // With two idempotency keys, it is unclear which of them applies. The rules are checked
        // first: a caller without permission gets the error of the rules.
        if headers.get_all(IDEMPOTENCY_KEY).iter().nth(1).is_some() {
            return Err(Error::Repeated(IDEMPOTENCY_KEY));
        }
        Ok(caller)
    }

    /// Identifies the caller, without checking permissions.
    pub async fn identify(
        &self,
        headers: &HeaderMap,
        peer: Option<IpAddr>,
    ) -> Result<Caller, Error> {
        match bearer(headers)? {
            None => Ok(Caller::anonymous()),
            Some(_) if !self.0.directory.is_fresh() => Err(Error::Unavailable),
            Some(key) if api_key::looks_like_key(key) => self.key(key, peer).await,
            Some(token) => {
                let digest = sha256(token.as_bytes());
                let claims = self.0.verifier.verify(token, digest).await?;
                self.person(&claims)
            }
        }
    }

    async fn key(&self, text: &str, peer: Option<IpAddr>) -> Result<Caller, Error> {
        let inner = &self.0;
        let presented = api_key::parse(text)?;
        let mut facts = inner.directory.api_key(presented.public_id)?;
        if facts.is_none() && NewKeys::is_new(presented.public_id, inner.clock.now()) {
            inner.new_keys.wait(&inner.directory).await;
            facts = inner.directory.api_key(presented.public_id)?;
        }
        let facts = facts.ok_or(Error::Key("it is unknown"))?;
        let now = inner.clock.now();
        let caller = api_key::check(&inner.keys, &presented, &facts, peer, now)?;
        active(inner.directory.tenant(&facts.tenant_id)?)?;
        inner.used.note(&facts.id, now);
        Ok(caller)
    }

    fn person(&self, claims: &Claims) -> Result<Caller, Error> {
        let (issuer, subject) = (claims.iss.clone(), claims.sub.clone());
        let email = claims.email.clone().filter(|email| !email.is_empty());
        let kind = if claims.role == Role::Owner {
            CallerKind::Owner { issuer, subject, email }
        } else {
            let tenant = self.tenant_of(claims)?;
            if tenant.as_ref().is_some_and(|tenant| !claims.may_name(&tenant.id)) {
                return Err(OTHER_TENANT);
            }
            let tenant = active(tenant)?;
            if self.0.directory.excludes(&tenant.id, &subject, email.as_deref())? {
                return Err(PERSON_INACTIVE);
            }
            let (tenant_id, role) = (tenant.id, claims.role.clone());
            CallerKind::Member { tenant_id, role, issuer, subject, email }
        };
        let authenticated_at = claims.authenticated_at();
        Ok(Caller { actor: claims.actor(), kind, until: Some(claims.until()), authenticated_at })
    }

    /// Returns the tenant of the token's organisation or, if no tenant has this organisation, the
    /// tenant with the `tenant_id` in the token.
    fn tenant_of(&self, claims: &Claims) -> Result<Option<TenantFacts>, Error> {
        let directory = &self.0.directory;
        if let Some(org) = claims.org.as_deref().filter(|org| !org.is_empty())
            && let Some(tenant) = directory.tenant_of_org(org)?
        {
            return Ok(Some(tenant));
        }
        let named = claims.tenant_id.as_deref();
        match named.and_then(|id| TenantId::parse(id).ok()) {
            Some(id) => directory.tenant(&id),
            None => Ok(None),
        }
    }
}

fn active(tenant: Option<TenantFacts>) -> Result<TenantFacts, Error> {
    match tenant {
        Some(tenant) if tenant.active => Ok(tenant),
        Some(_) => Err(TENANT_INACTIVE),
        None => Err(Error::Forbidden("the credential belongs to no tenant of this service")),
    }
}
