//! Authentication and authorization.

mod algorithms;
mod api_keys;
mod claims;
mod exports;
mod issuers;
mod jwks;
mod key_sets;
mod new_keys;
mod one_person;
mod organisations;
mod people;
mod recipes;
mod rules;
mod tokens;

use std::{
    collections::HashMap,
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use authority_api::identity::{
    Caller, Directory, Error, Identity, Issuer, KeySource, Rules, Settings, TenantFacts, Via,
    dev_provider::{AUDIENCE, DevProvider, Holder, ISSUER},
};
use authority_graph::ApiKey;
use authority_ids::TenantId;
use authority_keys::Keys;
use authority_model::{
    access::{Access, Binding},
    surfaces::Surfaces,
};
use authority_process::clock::Clock;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use chrono::{DateTime, TimeDelta};
use futures_util::future::BoxFuture;
use http::{HeaderMap, HeaderValue, header::AUTHORIZATION};
use parking_lot::Mutex;
use serde_json::{Value, json};

const NOBODY: Access = Access { public: false, owner: false, member: false, roles: &[], scope: "" };
const OWNER: &str = "/t.Service/Owner";
const MEMBER: &str = "/t.Service/Member";
const ADMIN: &str = "/t.Service/Admin";
const WRITE: &str = "/t.Service/Write";
const PUBLIC: &str = "/t.Service/Public";
const TWINS: &str = "/t.Service/Twins";
const CLOSED: &str = "/t.Service/Closed";
const fn at(path: &'static str, access: Access) -> Binding {
    Binding { verb: "GET", path, access }
}
const TWIN: &str = "/api/v1/things";
const APP_TWIN: &str = "/api/v1/app/things";
const KEYS_TWIN: &str = "/v1/things";
static RULES: [(&str, &[Binding]); 7] = [
    (OWNER, &[at("/api/v1/owner", Access { owner: true, ..NOBODY })]),
    (MEMBER, &[at("/v1/member", Access { owner: true, member: true, ..NOBODY })]),
    (ADMIN, &[at("/api/v1/app/admin", Access { roles: &["admin", "legal"], ..NOBODY })]),
    (WRITE, &[at("/v1/write", Access { owner: true, scope: "runtime:write", ..NOBODY })]),
    (PUBLIC, &[at("/health", Access { public: true, ..NOBODY })]),
    (
        TWINS,
        &[
            at(TWIN, Access { owner: true, ..NOBODY }),
            at(APP_TWIN, Access { roles: &["admin"], ..NOBODY }),
            at(KEYS_TWIN, Access { scope: "runtime:write", ..NOBODY }),
        ],
    ),
    (CLOSED, &[at("/v1/closed", NOBODY)]),
];

/// A gRPC call at an address that serves all surfaces.
const EVERYWHERE: Via<'static> = Via::Grpc(Surfaces::ALL);

/// An [`Identity`] with its surroundings, and a clock that only the test moves.
struct World {
    keys: Keys,
    clock: Clock,
    book: Arc<Book>,
    identity: Identity,
}

#[derive(Default)]
struct Book {
    keys: Mutex<HashMap<String, ApiKey>>,
    tenants: Mutex<HashMap<String, TenantFacts>>,
    /// A person excluded by a tenant's records: tenant, subject and email address.
    excluded: Mutex<Option<(String, String, Option<String>)>>,
    /// Keys that another node created. The next read finds them.
    unseen: Mutex<HashMap<String, ApiKey>>,
    looks: AtomicUsize,
    /// How many reads succeed before the data count as too old.
    recent_for: Mutex<Option<usize>>,
}

impl Directory for Book {
    fn is_fresh(&self) -> bool {
        self.read().is_ok()
    }

    fn api_key(&self, public_id: &str) -> Result<Option<Arc<ApiKey>>, Error> {
        self.read()?;
        Ok(self.keys.lock().get(public_id).cloned().map(Arc::new))
    }

    fn catch_up(&self) -> BoxFuture<'static, ()> {
        self.looks.fetch_add(1, Ordering::Relaxed);
        self.keys.lock().extend(self.unseen.lock().drain());
        Box::pin(tokio::time::sleep(Duration::from_millis(5)))
    }

    fn tenant(&self, id: &TenantId) -> Result<Option<TenantFacts>, Error> {
        self.read()?;
        Ok(self.tenants.lock().get(id.as_str()).cloned())
    }

    fn tenant_of_org(&self, org: &str) -> Result<Option<TenantFacts>, Error> {
        // Even a tenant that was stored with an empty organization must not match a person.
        let org = if org.is_empty() { "org_acme" } else { org };
        let slug = org.strip_prefix("org_").and_then(|slug| TenantId::from_slug(slug).ok());
        slug.map_or(Ok(None), |id| self.tenant(&id))
    }

    fn excludes(
        &self,
        tenant_id: &TenantId,
        subject: &str,
        email: Option<&str>,
    ) -> Result<bool, Error> {
        self.read()?;
        let asked = (tenant_id.to_string(), subject.to_owned(), email.map(str::to_owned));
        Ok(self.excluded.lock().as_ref() == Some(&asked))
    }
}

impl World {
    #[track_caller]
    fn new() -> Self {
        let keys = Keys::ephemeral(Clock::default()).unwrap();
        let published = keys.clone();
        Self::trusting(keys, ISSUER, |_| KeySource::local(move || published.token_jwks()))
    }

    fn trusting(keys: Keys, issuer: &str, source: impl FnOnce(Clock) -> KeySource) -> Self {
        Self::of(keys, |clock| {
            vec![Issuer::new(issuer, vec![AUDIENCE.to_owned()], source(clock.clone()))]
        })
    }

    /// Returns a world with these issuers instead of the development provider.
    fn of(keys: Keys, issuers: impl FnOnce(&Clock) -> Vec<Issuer>) -> Self {
        let clock = Clock::fixed(DateTime::from_timestamp(1_800_000_000, 0).unwrap());
        let book = Arc::new(Book::default());
        book.add_tenant("acme", true);
        book.add_tenant("globex", true);
        book.add_tenant("asleep", false);
        let identity = Identity::new(Settings {
            issuers: issuers(&clock),
            rules: Rules::new(&RULES, vec!["/grpc.health.v1.Health/".to_owned()]),
            directory: book.clone(),
            keys: keys.clone(),
            clock: clock.clone(),
        });
        Self { keys, clock, book, identity }
    }

    async fn call(&self, path: &str, credential: &str) -> Result<Caller, Error> {
        self.call_via(path, EVERYWHERE, credential).await
    }

    async fn call_via(&self, path: &str, via: Via<'_>, credential: &str) -> Result<Caller, Error> {
        self.identity.authenticate(path, via, &bearer(credential), None).await
    }

    async fn call_from(&self, peer: &str, credential: &str) -> Result<Caller, Error> {
        let peer: IpAddr = peer.parse().unwrap();
        self.identity.authenticate(WRITE, EVERYWHERE, &bearer(credential), Some(peer)).await
    }

    #[track_caller]
    fn dev_token(&self, holder: &Holder) -> String {
        let provider = DevProvider::new(self.keys.clone(), self.clock.clone());
        provider.issue(holder, TimeDelta::hours(1)).unwrap()
    }

    /// Checks that the caller gets `unavailable` regardless of which read finds the data too old.
    async fn is_unavailable_at_each_look(&self, path: &str, credential: &str) {
        for looks in 0.. {
            *self.book.recent_for.lock() = Some(looks);
            match self.call(path, credential).await {
                Ok(_) if looks > 0 => break,
                answer => assert_eq!(answer, Err(Error::Unavailable), "after {looks} looks"),
            }
        }
    }

    /// Returns the claims of a valid token for the owner.
    fn claims(&self) -> Value {
        let now = self.clock.now().timestamp();
        json!({
            "iss": ISSUER, "aud": AUDIENCE, "sub": "user_1", "email": "owner@example.com",
            "exp": now + 600, "nbf": now, "iat": now, "public_metadata": {"role": "owner"},
        })
    }

    #[track_caller]
    fn header(&self) -> Value {
        json!({"alg": "RS256", "typ": "JWT", "kid": self.keys.token_signer().unwrap().kid()})
    }

    fn sign(&self, header: &Value, claims: &Value) -> String {
        sign_with(header, claims, |bytes| self.keys.token_signer().unwrap().sign(bytes).unwrap())
    }

    /// Returns a token with a valid header and signature, and with claims changed by `change`.
    fn token(&self, change: impl FnOnce(&mut Value)) -> String {
        let mut claims = self.claims();
        change(&mut claims);
        self.sign(&self.header(), &claims)
    }
}

impl Book {
    fn read(&self) -> Result<(), Error> {
        match self.recent_for.lock().as_mut() {
            Some(0) => return Err(Error::Unavailable),
            Some(left) => *left -= 1,
            None => {}
        }
        Ok(())
    }

    fn add_tenant(&self, slug: &str, active: bool) {
        let id = TenantId::from_slug(slug).unwrap();
        let facts = TenantFacts { id: id.clone(), slug: slug.into(), active };
        self.tenants.lock().insert(id.into(), facts);
    }
}

fn sign_with(header: &Value, claims: &Value, sign: impl FnOnce(&[u8]) -> Vec<u8>) -> String {
    let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let text = format!("{}.{}", encode(header), encode(claims));
    let signature = URL_SAFE_NO_PAD.encode(sign(text.as_bytes()));
    format!("{text}.{signature}")
}

#[track_caller]
fn bearer(credential: &str) -> HeaderMap {
    let value = HeaderValue::from_str(&format!("Bearer {credential}")).unwrap();
    HeaderMap::from_iter([(AUTHORIZATION, value)])
}

fn member(tenant: &str, role: &str) -> Holder {
    Holder::Member {
        tenant_id: format!("svc:tenant:{tenant}").into(),
        role: role.to_owned(),
        email: format!("{role}@{tenant}.example"),
    }
}
