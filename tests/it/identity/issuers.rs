//! Several issuers: each has its own keys, its own people, and the tenants that it speaks for.

use std::sync::Arc;

use authority_api::identity::{
    Algorithm, Caller, CallerKind, ClaimPath, ClaimRules, Error, Issuer, JwksClient, JwksSettings,
    KeySource, People,
};
use authority_ids::TenantId;
use authority_keys::Keys;
use authority_process::clock::Clock;
use chrono::TimeDelta;
use serde_json::{Value, json};

use super::{AUDIENCE, MEMBER, OWNER, World};
use crate::support::issuer::{KID, TestIssuer};
use crate::support::{Members, only};

const FIRST: &str = "https://id.example.org";
const OKTA: &str = "https://acme.okta.com/oauth2/default";

/// A world with two issuers: the first speaks for all tenants and names the owner, and `okta` speaks
/// for acme.
struct Two {
    world: World,
    first: TestIssuer,
    okta: TestIssuer,
}

fn local(issuer: &TestIssuer) -> Issuer {
    let published = issuer.published.clone();
    let keys = KeySource::local(move || published.lock().1.as_str().into());
    Issuer::new(issuer.iss.clone(), vec![AUDIENCE.to_owned()], keys)
}

/// Limits an issuer to acme, and gives it its own people.
fn further(issuer: &mut Issuer) {
    issuer.owner_algorithms.clear();
    issuer.tenants = Some(Arc::new([TenantId::from_slug("acme").unwrap()]));
    issuer.people = People { of: None, prefix: Some("okta".to_owned()) };
}

impl Two {
    fn new() -> Self {
        Self::with(|_, _| {})
    }

    fn with(change: impl FnOnce(&mut Issuer, &mut Issuer)) -> Self {
        let (first, okta) = (TestIssuer::rs256(FIRST), TestIssuer::rs256(OKTA));
        let (mut one, mut two) = (local(&first), local(&okta));
        further(&mut two);
        change(&mut one, &mut two);
        let keys = Keys::ephemeral(Clock::default()).unwrap();
        Self { world: World::of(keys, |_| vec![one, two]), first, okta }
    }

    fn claims(&self, more: &Value) -> Value {
        json!({"aud": AUDIENCE, "sub": "ann",
                             "exp": self.world.clock.now().timestamp() + 600})
        .and(more)
    }

    async fn call(&self, issuer: &TestIssuer, more: &Value) -> Result<Caller, Error> {
        self.world.call(MEMBER, &issuer.token(&self.claims(more))).await
    }
}

fn of(role: &str, tenant: &str) -> Value {
    json!({"public_metadata": {"role": role, "tenant_id": format!("svc:tenant:{tenant}")}})
}

#[tokio::test]
async fn a_token_is_verified_with_the_keys_of_its_own_issuer() {
    // Both keys have the same `kid`.
    let two = Two::new();
    for (signer, iss, works) in [
        (&two.first, FIRST, true),
        (&two.okta, OKTA, true),
        (&two.first, OKTA, false),
        (&two.okta, FIRST, false),
    ] {
        let claims = of("viewer", "acme").with("iss", iss);
        let answer = two.call(signer, &claims).await;
        assert_eq!(answer.is_ok(), works, "{} as {iss}: {answer:?}", signer.iss);
        if !works {
            assert_eq!(answer, Err(Error::Token("its signature is wrong")));
        }
    }
    for iss in
        [json!("https://evil.example"), json!([FIRST, OKTA]), json!(format!("{FIRST}/")), json!("")]
    {
        let claims = of("viewer", "acme").with("iss", &iss);
        let answer = two.call(&two.okta, &claims).await;
        assert!(matches!(answer, Err(Error::Token(_))), "{iss}: {answer:?}");
    }
    // A `kid` of the other issuer's key alone is not found.
    let moved = two.first.jwk().with("kid", "key-2");
    two.first.published.lock().1 = json!({"keys": [moved]}).to_string();
    let header = json!({"alg": "RS256", "typ": "JWT", "kid": "key-2"});
    let claims = two.claims(&of("viewer", "acme")).with("iss", OKTA);
    let answer = two.world.call(MEMBER, &two.first.sign(&header, &claims)).await;
    assert_eq!(answer, Err(Error::Token("no key of its issuer has its `kid`")));
}

#[tokio::test]
async fn an_audience_belongs_to_its_issuer() {
    let two = Two::with(|_, okta| okta.audiences = vec!["api://okta".to_owned()]);
    for (issuer, aud, works) in [
        (&two.first, AUDIENCE, true),
        (&two.first, "api://okta", false),
        (&two.okta, AUDIENCE, false),
        (&two.okta, "api://okta", true),
    ] {
        let claims = of("viewer", "acme").with("aud", aud);
        assert_eq!(two.call(issuer, &claims).await.is_ok(), works, "{}, {aud}", issuer.iss);
    }
}

#[tokio::test]
async fn an_issuer_names_only_its_own_tenants() {
    let two = Two::new();
    let by_org = |org: &str| json!({"org_id": org, "public_metadata": {"role": "admin"}});
    for claims in [of("admin", "acme"), by_org("org_acme"), json!({"o": {"id": "org_acme"}})] {
        two.call(&two.okta, &claims).await.unwrap();
    }
    for claims in [
        of("admin", "globex"),
        by_org("org_globex"),
        json!({"o": {"id": "org_globex"}}),
        // The organisation's tenant counts, and it is not this issuer's.
        json!({"org_id": "org_globex", "public_metadata": {"tenant_id": "svc:tenant:acme"}}),
        json!({"org_id": "org_unknown", "public_metadata": {"tenant_id": "svc:tenant:globex"}}),
        // The response is the same for suspended tenants of others.
        of("admin", "asleep"),
    ] {
        let answer = two.call(&two.okta, &claims).await;
        let Err(Error::Forbidden(told)) = answer else { panic!("{claims}: {answer:?}") };
        assert!(told.contains("does not speak for"), "{claims}: {told}");
    }
    two.call(&two.first, &of("admin", "globex")).await.unwrap();
    // A tenant claim has no effect on it.
    let two = Two::with(|_, okta| {
        okta.claims = ClaimRules::new(None, Some(ClaimPath::parse("tid").unwrap()), None);
    });
    two.call(&two.okta, &only("tid", "org_acme")).await.unwrap();
    two.call(&two.okta, &only("tid", "org_globex")).await.unwrap_err();
    // An issuer without tenants speaks for none.
    let two = Two::with(|_, okta| okta.tenants = Some(Arc::new([])));
    two.call(&two.okta, &of("admin", "acme")).await.unwrap_err();
}

#[tokio::test]
async fn only_the_marked_issuer_names_the_owner() {
    let owner = json!({"public_metadata": {"role": "owner"}});
    let two = Two::new();
    let token = two.first.token(&two.claims(&owner));
    assert!(two.world.call(OWNER, &token).await.unwrap().is_owner());
    let in_tenant = of("owner", "acme").with("org_id", "org_acme");
    for claims in [owner.clone(), of("owner", "acme"), in_tenant] {
        for path in [OWNER, MEMBER] {
            let token = two.okta.token(&two.claims(&claims));
            let answer = two.world.call(path, &token).await;
            assert!(matches!(answer, Err(Error::Forbidden(_))), "{claims}: {answer:?}");
        }
    }
    // At every place in which a role can be.
    let two = Two::with(|_, okta| {
        let path = |text| Some(ClaimPath::parse(text).unwrap());
        okta.claims = ClaimRules::new(path("/realm_access/roles"), None, path("groups"));
        okta.claims.map("admins", "admin").unwrap();
    });
    for roles in [json!("owner"), json!(["owner"]), json!(["viewer", "owner"])] {
        let claims = json!({"org_id": "org_acme", "realm_access": {"roles": roles},
                            "groups": ["admins"]});
        let answer = two.call(&two.okta, &claims).await;
        assert!(matches!(answer, Err(Error::Forbidden(_))), "{claims}: {answer:?}");
    }
    // Another issuer is marked: the first is not.
    let two = Two::with(|first, okta| {
        okta.owner_algorithms = std::mem::take(&mut first.owner_algorithms);
    });
    two.call(&two.first, &owner).await.unwrap_err();
    two.call(&two.okta, &owner).await.unwrap();
}

#[tokio::test]
async fn the_same_sub_at_two_issuers_is_two_people() {
    let two = Two::new();
    let (ann, other) = (
        two.call(&two.first, &of("admin", "acme")).await.unwrap(),
        two.call(&two.okta, &of("admin", "acme")).await.unwrap(),
    );
    assert_eq!(ann.identity(), format!("{FIRST}|ann"));
    assert_eq!(other.identity(), format!("{OKTA}|okta|ann"));
    // The subject is compared with principals and shown in histories.
    let subject = |caller: &Caller| match &caller.kind {
        CallerKind::Member { subject, .. } => subject.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!((subject(&ann).as_str(), subject(&other).as_str()), ("ann", "okta|ann"));
    assert_eq!((ann.actor.as_str(), other.actor.as_str()), ("ann", "okta|ann"));
    // The first issuer can't name the other's people.
    for sub in ["okta|ann", "okta|"] {
        let claims = of("admin", "acme").with("sub", sub);
        let answer = two.call(&two.first, &claims).await;
        assert!(matches!(answer, Err(Error::Token(_))), "{sub}: {answer:?}");
        // At its own issuer, it is only a `sub`.
        let nested = two.call(&two.okta, &claims).await.unwrap();
        assert_eq!(nested.identity(), format!("{OKTA}|okta|{sub}"));
    }
    for sub in ["okta", "oktas|ann", "auth0|ann"] {
        let claims = of("admin", "acme").with("sub", sub);
        two.call(&two.first, &claims).await.unwrap();
    }
    let empty = of("admin", "acme").with("sub", "");
    two.call(&two.okta, &empty).await.unwrap_err();
}

#[tokio::test]
async fn people_of_two_issuers_are_one_if_the_settings_say_so() {
    let two = Two::with(|first, okta| {
        okta.people = People { of: Some(first.issuer.clone()), prefix: None };
    });
    let (ann, same) = (
        two.call(&two.first, &of("admin", "acme")).await.unwrap(),
        two.call(&two.okta, &of("viewer", "acme")).await.unwrap(),
    );
    assert_eq!(ann.identity(), same.identity());
    assert_eq!(same.identity(), format!("{FIRST}|ann"));
    // The role, the tenants and the owner are still the token's issuer's own.
    assert!(matches!(&same.kind, CallerKind::Member { role, .. } if role.as_str() == "viewer"));
    two.call(&two.okta, &of("viewer", "globex")).await.unwrap_err();
    two.call(&two.okta, &of("owner", "acme")).await.unwrap_err();
}

#[tokio::test]
async fn a_token_needs_an_address_if_its_issuer_says_so() {
    let two = Two::with(|_, okta| okta.needs_email = true);
    for (email, works) in [
        (json!("ann@acme.example"), true),
        (json!(null), false),
        (json!(""), false),
        (json!("  "), false),
    ] {
        let claims = of("viewer", "acme").with("email", &email);
        let answer = two.call(&two.okta, &claims).await;
        assert_eq!(answer.is_ok(), works, "{email}: {answer:?}");
        if !works {
            assert!(matches!(answer, Err(Error::Forbidden(_))), "{email}: {answer:?}");
        }
        two.call(&two.first, &claims).await.unwrap();
    }
    two.call(&two.okta, &of("viewer", "acme")).await.unwrap_err();
}

#[tokio::test]
async fn an_issuer_that_fails_does_not_stop_the_others() {
    let (first, okta) = (TestIssuer::rs256(FIRST), TestIssuer::es256(OKTA));
    let (first_url, okta_url) = (first.serve().await, okta.serve().await);
    let keys = Keys::ephemeral(Clock::default()).unwrap();
    let world = World::of(keys, |clock| {
        let remote = |issuer: &TestIssuer, url: String, algorithm| {
            let settings = JwksSettings { algorithms: vec![algorithm], ..JwksSettings::new(url) };
            let keys = KeySource::Remote(JwksClient::new(settings, clock.clone()).unwrap());
            let mut made = Issuer::new(issuer.iss.clone(), vec![AUDIENCE.to_owned()], keys);
            made.algorithms = vec![algorithm];
            made
        };
        let first = remote(&first, first_url, Algorithm::RS256);
        let mut okta = remote(&okta, okta_url, Algorithm::ES256);
        further(&mut okta);
        vec![first, okta]
    });
    let call = async |issuer: &TestIssuer, sub: &str| {
        let claims = of("viewer", "acme")
            .with("aud", AUDIENCE)
            .with("sub", sub)
            .with("exp", 4_102_444_800_i64);
        world.call(MEMBER, &issuer.token(&claims)).await
    };
    let published = okta.published.lock().clone();
    for (status, body) in [(503, ""), (200, "{}"), (200, r#"{"keys": []}"#), (404, "")] {
        *okta.published.lock() = (status, body.to_owned());
        world.clock.advance(TimeDelta::seconds(2));
        assert_eq!(call(&okta, body).await, Err(Error::Unavailable), "{status} {body}");
        call(&first, &format!("{status} {body}")).await.unwrap();
    }
    let states: Vec<_> = world.identity.remote_keys().iter().map(JwksClient::state).collect();
    assert!(states[0].is_ok() && states[1].is_err(), "{states:?}");
    // An RSA key is not usable for this issuer: its algorithm is ES256.
    *okta.published.lock() = (200, json!({"keys": [first.jwk()]}).to_string());
    world.clock.advance(TimeDelta::seconds(2));
    assert_eq!(call(&okta, "rsa").await, Err(Error::Unavailable));
    *okta.published.lock() = published;
    world.clock.advance(TimeDelta::seconds(2));
    call(&okta, "again").await.unwrap();
}

#[tokio::test]
async fn a_sign_in_is_at_one_issuer() {
    let two = Two::with(|_, okta| okta.people.prefix = Some("acme-okta".to_owned()));
    let now = two.world.clock.now().timestamp();
    let id = |issuer: &TestIssuer| {
        issuer.token(&json!({"aud": "console", "sub": "ann", "nonce": "n", "iat": now,
                             "exp": now + 60}))
    };
    let identity = &two.world.identity;
    for (issuer, at, works) in [
        (&two.first, FIRST, true),
        (&two.okta, OKTA, true),
        (&two.okta, FIRST, false),
        (&two.first, OKTA, false),
    ] {
        let read = identity.id_token(&id(issuer), at, "console", "n").await;
        assert_eq!(read.is_ok(), works, "{} at {at}: {read:?}", issuer.iss);
    }
    // The ID token names the same person as the access token.
    let read = identity.id_token(&id(&two.okta), OKTA, "console", "n").await.unwrap();
    let caller = two.call(&two.okta, &of("viewer", "acme")).await.unwrap();
    assert_eq!(format!("{}|{}", read.iss, read.sub), caller.identity());
    let logout = |issuer: &TestIssuer| {
        let events = json!({"http://schemas.openid.net/event/backchannel-logout": {}});
        let claims = json!({"iss": issuer.iss, "aud": "console", "sub": "ann", "iat": now,
                            "exp": now + 60, "events": events});
        issuer.sign(&json!({"alg": "RS256", "typ": "logout+jwt", "kid": KID}), &claims)
    };
    // An issuer ends no session that began at another one.
    identity.logout_token(&logout(&two.first), OKTA, "console").await.unwrap_err();
    let read = identity.logout_token(&logout(&two.okta), OKTA, "console").await.unwrap();
    assert_eq!((read.iss.as_str(), read.sub.as_deref()), (OKTA, Some("acme-okta|ann")));
}
