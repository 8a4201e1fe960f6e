//! Who calls, and whether they may.

mod api_keys;
mod jwks;
mod rules;
mod tokens;

use std::{collections::HashMap, net::IpAddr, sync::Arc};

use agent_authority::{
    clock::Clock,
    identity::{
        ApiKeyFacts, Caller, Directory, Error, Identity, Issuer, KeySource, Rules, Secrets,
        Settings, TenantFacts,
        dev_provider::{AUDIENCE, DevProvider, Holder, ISSUER, TokenKey},
    },
    keys::{Keys, sha256},
};
use authority_model::access::Access;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use chrono::{DateTime, TimeDelta};
use http::{HeaderMap, HeaderValue, header::AUTHORIZATION};
use parking_lot::Mutex;
use serde_json::{Value, json};

const NOBODY: Access = Access { public: false, owner: false, member: false, roles: &[], scope: "" };
const OWNER: &str = "/t.Service/Owner";
const MEMBER: &str = "/t.Service/Member";
const ADMIN: &str = "/t.Service/Admin";
const WRITE: &str = "/t.Service/Write";
const PUBLIC: &str = "/t.Service/Public";
static RULES: [(&str, Access); 5] = [
    (OWNER, Access { owner: true, ..NOBODY }),
    (MEMBER, Access { owner: true, member: true, ..NOBODY }),
    (ADMIN, Access { roles: &["admin", "legal"], ..NOBODY }),
    (WRITE, Access { owner: true, scope: "runtime:write", ..NOBODY }),
    (PUBLIC, Access { public: true, ..NOBODY }),
];

/// Everything around one [`Identity`], with a clock that stands still.
struct World {
    keys: Keys,
    clock: Clock,
    book: Arc<Book>,
    identity: Identity,
}

#[derive(Default)]
struct Book {
    keys: Mutex<HashMap<String, ApiKeyFacts>>,
    tenants: Mutex<HashMap<String, TenantFacts>>,
}

impl Directory for Book {
    fn api_key(&self, public_id: &str) -> Option<Arc<ApiKeyFacts>> {
        self.keys.lock().get(public_id).cloned().map(Arc::new)
    }

    fn tenant(&self, id: &str) -> Option<TenantFacts> {
        self.tenants.lock().get(id).cloned()
    }

    fn tenant_of_org(&self, org: &str) -> Option<TenantFacts> {
        self.tenant(&format!("svc:tenant:{}", org.strip_prefix("org_")?))
    }
}

struct Crypto(Keys);

impl Secrets for Crypto {
    fn digest(&self, bytes: &[u8]) -> [u8; 32] {
        sha256(bytes)
    }

    fn code(&self, domain: &str, bytes: &[u8]) -> [u8; 32] {
        self.0.mac(domain, bytes)
    }

    fn equal(&self, left: &[u8], right: &[u8]) -> bool {
        agent_authority::keys::equal(left, right)
    }
}

impl TokenKey for Crypto {
    fn kid(&self) -> String {
        self.0.token_signer().unwrap().kid().to_owned()
    }

    fn sign(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        self.0.token_signer()?.sign(bytes).ok()
    }
}

impl World {
    fn new() -> Self {
        let keys = Keys::ephemeral(Clock::default()).unwrap();
        let published = keys.clone();
        Self::trusting(keys, ISSUER, |_| KeySource::local(move || published.token_jwks()))
    }

    fn trusting(keys: Keys, issuer: &str, source: impl FnOnce(Clock) -> KeySource) -> Self {
        let clock = Clock::fixed(DateTime::from_timestamp(1_800_000_000, 0).unwrap());
        let book = Arc::new(Book::default());
        book.add_tenant("acme", true);
        book.add_tenant("asleep", false);
        let identity = Identity::new(Settings {
            issuers: vec![Issuer {
                issuer: issuer.to_owned(),
                audiences: vec![AUDIENCE.to_owned()],
                keys: source(clock.clone()),
            }],
            rules: Rules::new(&RULES, vec!["/grpc.health.v1.Health/".to_owned()]),
            directory: book.clone(),
            secrets: Arc::new(Crypto(keys.clone())),
            clock: clock.clone(),
        });
        Self { keys, clock, book, identity }
    }

    async fn call(&self, path: &str, credential: &str) -> Result<Caller, Error> {
        self.identity.authenticate(path, &bearer(credential), None).await
    }

    async fn call_from(&self, peer: &str, credential: &str) -> Result<Caller, Error> {
        let peer: IpAddr = peer.parse().unwrap();
        self.identity.authenticate(WRITE, &bearer(credential), Some(peer)).await
    }

    fn dev_token(&self, holder: &Holder) -> String {
        let provider = DevProvider::new(Arc::new(Crypto(self.keys.clone())), self.clock.clone());
        provider.issue(holder, TimeDelta::hours(1)).unwrap()
    }

    /// The claims of a good owner's token.
    fn claims(&self) -> Value {
        let now = self.clock.now().timestamp();
        json!({
            "iss": ISSUER, "aud": AUDIENCE, "sub": "user_1", "email": "owner@example.com",
            "exp": now + 600, "nbf": now, "iat": now, "public_metadata": {"role": "owner"},
        })
    }

    fn header(&self) -> Value {
        json!({"alg": "RS256", "typ": "JWT", "kid": self.keys.token_signer().unwrap().kid()})
    }

    fn sign(&self, header: &Value, claims: &Value) -> String {
        sign_with(header, claims, |bytes| self.keys.token_signer().unwrap().sign(bytes).unwrap())
    }

    /// A token signed rightly, of a good header and claims that `change` altered.
    fn token(&self, change: impl FnOnce(&mut Value)) -> String {
        let mut claims = self.claims();
        change(&mut claims);
        self.sign(&self.header(), &claims)
    }
}

impl Book {
    fn add_tenant(&self, slug: &str, active: bool) {
        let id = format!("svc:tenant:{slug}");
        let facts = TenantFacts { id: id.as_str().into(), slug: slug.into(), active };
        self.tenants.lock().insert(id, facts);
    }
}

fn sign_with(header: &Value, claims: &Value, sign: impl FnOnce(&[u8]) -> Vec<u8>) -> String {
    let encode = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let text = format!("{}.{}", encode(header), encode(claims));
    let signature = URL_SAFE_NO_PAD.encode(sign(text.as_bytes()));
    format!("{text}.{signature}")
}

fn bearer(credential: &str) -> HeaderMap {
    let value = HeaderValue::from_str(&format!("Bearer {credential}")).unwrap();
    HeaderMap::from_iter([(AUTHORIZATION, value)])
}

fn member(tenant: &str, role: &str) -> Holder {
    Holder::Member {
        tenant_id: format!("svc:tenant:{tenant}"),
        role: role.to_owned(),
        email: format!("{role}@{tenant}.example"),
    }
}
