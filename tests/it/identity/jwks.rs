//! Fetching an issuer's keys: one request at a time, a limited number of keys, and a maximum age.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use authority_api::identity::{
    Error, JwksClient, JwksSettings, JwksSource, KeySource, dev_provider::ISSUER,
};
use authority_keys::Keys;
use authority_process::clock::Clock;
use axum::{Router, http::StatusCode, response::IntoResponse, routing::get};
use chrono::TimeDelta;
use futures_util::future::join_all;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{OWNER, World};
use crate::support::{Members, only};

/// An identity provider on this machine.
#[derive(Clone, Default)]
pub(super) struct Provider {
    asked: Arc<AtomicUsize>,
    pub(super) answer: Arc<Mutex<(u16, String)>>,
    /// The metadata document of the provider, if it has one.
    description: Arc<Mutex<Option<Value>>>,
}

impl Provider {
    async fn start() -> (Self, SocketAddr) {
        let provider = Self::default();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let served = provider.clone();
        let described = provider.clone();
        let description = async move || match described.description.lock().clone() {
            Some(found) => (StatusCode::OK, found.to_string()),
            None => (StatusCode::NOT_FOUND, String::new()),
        };
        let usual = provider.clone();
        let router = Router::new()
            .route("/jwks", get(async move || served.serve().await))
            .route("/.well-known/openid-configuration", get(description))
            .route("/.well-known/jwks.json", get(async move || usual.serve().await));
        tokio::spawn(axum::serve(listener, router).into_future());
        (provider, address)
    }

    async fn serve(&self) -> impl IntoResponse + use<> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        tokio::time::sleep(Duration::from_millis(50)).await;
        let (status, body) = self.answer.lock().clone();
        (StatusCode::from_u16(status).unwrap(), [("location", "/elsewhere")], body)
    }

    pub(super) fn answers(&self, status: u16, body: &str) {
        *self.answer.lock() = (status, body.to_owned());
    }

    pub(super) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

pub(super) async fn world() -> (World, Provider) {
    let (provider, address) = Provider::start().await;
    let keys = Keys::ephemeral(Clock::default()).unwrap();
    provider.answers(200, &keys.token_jwks());
    let world = World::trusting(keys, ISSUER, |clock| {
        let settings = JwksSettings::new(format!("http://{address}/jwks"));
        KeySource::Remote(JwksClient::new(settings, clock).unwrap())
    });
    (world, provider)
}

#[tokio::test]
async fn keys_are_where_the_issuer_says_they_are() {
    for (description, works) in [
        // Without metadata, or if it names another issuer, the keys are at the usual path.
        (|_: &str| None, true),
        (
            |_| Some(json!({"issuer": "https://evil.example", "jwks_uri": "http://127.0.0.1:9/"})),
            true,
        ),
        (|issuer| Some(only("issuer", issuer)), true),
        (|issuer| Some(json!({"issuer": issuer, "jwks_uri": format!("{issuer}/jwks")})), true),
        (|issuer| Some(json!({"issuer": issuer, "jwks_uri": "http://127.0.0.1:9/"})), false),
        (|issuer| Some(json!({"issuer": issuer, "jwks_uri": "http://idp.example/jwks"})), false),
    ] as [(fn(&str) -> Option<Value>, bool); 6]
    {
        let (provider, address) = Provider::start().await;
        let issuer = format!("http://{address}");
        *provider.description.lock() = description(&issuer);
        let keys = Keys::ephemeral(Clock::default()).unwrap();
        provider.answers(200, &keys.token_jwks());
        let world = World::trusting(keys, ISSUER, |clock| {
            let settings = JwksSettings::of(JwksSource::Issuer(issuer.clone()));
            KeySource::Remote(JwksClient::new(settings, clock).unwrap())
        });
        let answer = world.call(OWNER, &world.token(|_| {})).await;
        assert_eq!(answer.is_ok(), works, "{:?}: {answer:?}", description(&issuer));
    }
}

#[tokio::test]
async fn many_at_once_ask_once() {
    let (world, provider) = world().await;
    // The tokens differ: none is in the cache.
    let tokens: Vec<_> =
        (0..20).map(|n| world.token(|claims| claims["sub"] = json!(format!("u{n}")))).collect();
    let answers = join_all(tokens.iter().map(|token| world.call(OWNER, token))).await;
    assert!(answers.iter().all(Result::is_ok));
    assert_eq!(provider.asked(), 1);
}

/// The interval between requests begins when a request ends, however long it took.
#[tokio::test]
async fn all_who_wait_for_a_slow_provider_have_one_result() {
    let (world, provider) = world().await;
    provider.answers(503, "");
    let token = world.token(|_| {});
    let calls = join_all((0..20).map(|_| world.call(OWNER, &token)));
    let slow = async {
        while provider.asked() == 0 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        world.clock.advance(TimeDelta::seconds(15));
    };
    let (answers, ()) = tokio::join!(calls, slow);
    assert!(answers.iter().all(|answer| *answer == Err(Error::Unavailable)), "{answers:?}");
    assert_eq!(provider.asked(), 1);
}

#[tokio::test]
async fn only_so_many_wait_for_a_slow_provider() {
    let (world, provider) = world().await;
    let header = world.header().with("kid", "unknown");
    let forged = world.sign(&header, &world.claims());
    let answers = join_all((0..1000).map(|_| world.call(OWNER, &forged))).await;
    let refused = answers.iter().filter(|answer| **answer == Err(Error::Unavailable)).count();
    assert!((1..1000).contains(&refused), "{refused}");
    assert_eq!(provider.asked(), 1);
    // Their places are free again.
    world.call(OWNER, &world.token(|_| {})).await.unwrap();
}

#[tokio::test]
async fn unknown_kids_do_not_aim_us_at_the_provider() {
    let (world, provider) = world().await;
    world.call(OWNER, &world.token(|_| {})).await.unwrap();
    let forge = |kid: &str| {
        let header = world.header().with("kid", kid);
        world.sign(&header, &world.claims())
    };
    for n in 0..5 {
        let answer = world.call(OWNER, &forge(&format!("k{n}"))).await;
        assert!(matches!(answer, Err(Error::Token(_))), "{answer:?}");
    }
    assert_eq!(provider.asked(), 1);
    world.clock.advance(TimeDelta::seconds(31));
    for n in 0..5 {
        world.call(OWNER, &forge(&format!("k{n}"))).await.unwrap_err();
    }
    assert_eq!(provider.asked(), 2);
}

#[tokio::test]
async fn a_new_key_is_found_at_once_and_a_withdrawn_one_stops() {
    let (world, provider) = world().await;
    let next = Keys::ephemeral(Clock::default()).unwrap();
    world.call(OWNER, &world.token(|_| {})).await.unwrap();
    world.clock.advance(TimeDelta::seconds(31));
    provider.answers(200, &next.token_jwks());
    let header = world.header().with("kid", next.token_signer().unwrap().kid());
    let token = super::sign_with(&header, &world.claims(), |bytes| {
        next.token_signer().unwrap().sign(bytes).unwrap()
    });
    world.call(OWNER, &token).await.unwrap();
    let old = world.token(|claims| claims["sub"] = json!("someone else"));
    assert!(matches!(world.call(OWNER, &old).await, Err(Error::Token(_))));
}

#[tokio::test]
async fn known_keys_outlive_an_outage_but_not_for_ever() {
    let (world, provider) = world().await;
    let token = |n: i32| {
        world.token(|claims| {
            claims["sub"] = json!(format!("u{n}"));
            claims["exp"] = json!(4_102_444_800_i64);
        })
    };
    world.call(OWNER, &token(0)).await.unwrap();
    for (status, body) in
        [(500, "{}"), (302, "{}"), (200, "no json"), (200, "[]"), (404, "{\"keys\":[]}")]
    {
        provider.answers(status, body);
        world.clock.advance(TimeDelta::minutes(11));
        world.call(OWNER, &token(i32::from(status))).await.unwrap();
    }
    assert_eq!(provider.asked(), 6);
    world.clock.advance(TimeDelta::hours(4));
    assert_eq!(world.call(OWNER, &token(1)).await, Err(Error::Unavailable));
    // The cached verification of an earlier token has also expired.
    assert_eq!(world.call(OWNER, &token(0)).await, Err(Error::Unavailable));
}

#[tokio::test]
async fn an_unreachable_provider_is_no_fault_of_the_token() {
    let (world, provider) = world().await;
    provider.answers(503, "");
    assert_eq!(world.call(OWNER, &world.token(|_| {})).await, Err(Error::Unavailable));
    assert_eq!(world.call(OWNER, &world.token(|_| {})).await, Err(Error::Unavailable));
    assert_eq!(provider.asked(), 1);
}

#[tokio::test]
async fn keys_that_may_not_verify_are_passed_over() {
    let (world, provider) = world().await;
    let document: Value = serde_json::from_str(&world.keys.token_jwks()).unwrap();
    let changes: [(&str, Value); 13] = [
        ("use", json!("enc")),
        ("use", json!(["sig"])),
        ("key_ops", json!(["encrypt"])),
        ("key_ops", json!(["sign"])),
        ("key_ops", json!([])),
        ("key_ops", json!("verify")),
        ("alg", json!("RS512")),
        ("alg", json!("PS256")),
        ("kty", json!("oct")),
        ("revoked_at", json!("2026-01-01T00:00:00Z")),
        ("revoked", only("revoked_at", 1)),
        ("n", json!("AQAB")),
        ("kid", Value::Null),
    ];
    let other: Value =
        serde_json::from_str(&Keys::ephemeral(Clock::default()).unwrap().token_jwks()).unwrap();
    for (member, value) in changes {
        let mut key = document["keys"][0].clone();
        key[member] = value;
        provider.answers(200, &json!({"keys": [key, other["keys"][0]]}).to_string());
        world.clock.advance(TimeDelta::seconds(31));
        let answer = world.call(OWNER, &world.token(|_| {})).await;
        assert!(matches!(answer, Err(Error::Token(_))), "{member}: {answer:?}");
    }
    // This key declares its own `key_ops`, which may include `verify`.
    let key = document["keys"][0].clone().with("key_ops", ["verify", "sign"]);
    provider.answers(200, &json!({"keys": [key]}).to_string());
    world.clock.advance(TimeDelta::seconds(31));
    assert!(world.call(OWNER, &world.token(|_| {})).await.is_ok());
    let padding = "x".repeat(300 * 1024);
    let large = document.clone().with("padding", padding);
    provider.answers(200, &large.to_string());
    world.clock.advance(TimeDelta::hours(5));
    assert_eq!(world.call(OWNER, &world.token(|_| {})).await, Err(Error::Unavailable));
}

#[test]
fn keys_come_over_https_or_from_this_machine() {
    for (url, may) in [
        ("https://idp.example/jwks", true),
        ("http://127.0.0.1:1/jwks", true),
        ("http://localhost/jwks", true),
        ("http://[::1]/jwks", true),
        ("http://idp.example/jwks", false),
        ("http://127.0.0.1.example/jwks", false),
        ("file:///etc/passwd", false),
        ("nonsense", false),
    ] {
        assert_eq!(JwksClient::new(JwksSettings::new(url), Clock::default()).is_ok(), may, "{url}");
    }
}
