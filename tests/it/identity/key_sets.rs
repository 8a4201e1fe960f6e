//! If a key set has no usable key, the earlier keys remain and the provider is asked again.

use std::time::{Duration, Instant};

use authority_api::identity::{Error, JwksClient, JwksSettings, KeySource, dev_provider::ISSUER};
use authority_keys::Keys;
use authority_process::clock::Clock;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use chrono::TimeDelta;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::{OWNER, World, jwks::world};
use crate::support::Members;

/// Returns a token that is not in the cache.
fn fresh(world: &World, name: &str) -> String {
    world.token(|claims| {
        claims["sub"] = json!(name);
        claims["exp"] = json!(4_102_444_800_i64);
    })
}

#[tokio::test]
async fn a_set_without_a_usable_key_leaves_the_earlier_keys() {
    let (world, provider) = world().await;
    world.call(OWNER, &fresh(&world, "first")).await.unwrap();
    let document: Value = serde_json::from_str(&world.keys.token_jwks()).unwrap();
    let with = |member: &str, value: Value| {
        let mut key = document["keys"][0].clone();
        key[member] = value;
        json!({"keys": [key]}).to_string()
    };
    let small = "AAAA".to_owned() + &"x".repeat(340);
    for (number, body) in [
        r#"{"keys": []}"#.to_owned(),
        r#"{"keys": null}"#.to_owned(),
        "{}".to_owned(),
        "<html><body>signed in as nobody</body></html>".to_owned(),
        r#"{"keys": [{"kty": "EC", "crv": "P-256", "kid": "ec", "x": "AA", "y": "AA"}]}"#
            .to_owned(),
        with("use", json!("enc")),
        with("kid", json!("")),
        // The modulus has fewer than 2048 bits after its leading zeros.
        with("n", json!(small)),
        with("e", json!("AQ")),
        with("e", json!("AQAA")),
    ]
    .into_iter()
    .enumerate()
    {
        provider.answers(200, &body);
        world.clock.advance(TimeDelta::minutes(11));
        let answer = world.call(OWNER, &fresh(&world, &format!("u{number}"))).await;
        assert!(answer.is_ok(), "{body}: {answer:?}");
        // The provider may have a key that the service does not know yet: the token is not called
        // invalid.
        let header = world.header().with("kid", "another");
        let unknown = world.call(OWNER, &world.sign(&header, &world.claims())).await;
        assert_eq!(unknown, Err(Error::Unavailable), "{body}");
        let state = world.identity.remote_keys()[0].state().unwrap_err();
        assert!(state.contains("earlier keys are used"), "{state}");
    }
    // The earlier keys also expire after some hours.
    world.clock.advance(TimeDelta::hours(4));
    assert_eq!(world.call(OWNER, &fresh(&world, "last")).await, Err(Error::Unavailable));
    let state = world.identity.remote_keys()[0].state().unwrap_err();
    assert!(state.contains("tokens are refused"), "{state}");
}

#[tokio::test]
async fn a_key_that_is_gone_or_revoked_is_not_an_earlier_key() {
    let document =
        |world: &World| -> Value { serde_json::from_str(&world.keys.token_jwks()).unwrap() };
    let (world, provider) = world().await;
    world.call(OWNER, &fresh(&world, "first")).await.unwrap();
    let other = Keys::ephemeral(Clock::default()).unwrap();
    provider.answers(200, &other.token_jwks());
    world.clock.advance(TimeDelta::minutes(11));
    let gone = world.call(OWNER, &fresh(&world, "second")).await;
    assert!(matches!(gone, Err(Error::Token(_))), "{gone:?}");
    // The provider publishes the key again. Then the key is revoked, and the set has no other key.
    provider.answers(200, &document(&world).to_string());
    world.clock.advance(TimeDelta::minutes(11));
    world.call(OWNER, &fresh(&world, "third")).await.unwrap();
    let mut revoked = document(&world);
    revoked["keys"][0]["revoked"] = json!({"revoked_at": 1_800_000_000, "reason": "compromised"});
    provider.answers(200, &revoked.to_string());
    world.clock.advance(TimeDelta::minutes(11));
    assert_eq!(world.call(OWNER, &fresh(&world, "fourth")).await, Err(Error::Unavailable));
}

#[tokio::test]
async fn without_any_key_the_provider_is_asked_each_second() {
    let (world, provider) = world().await;
    let good = provider.answer.lock().1.clone();
    for (status, body) in [(503, ""), (200, r#"{"keys": []}"#)] {
        provider.answers(status, body);
        for _ in 0..3 {
            assert_eq!(world.call(OWNER, &fresh(&world, "u")).await, Err(Error::Unavailable));
        }
        assert!(world.identity.remote_keys()[0].state().is_err());
        world.clock.advance(TimeDelta::milliseconds(1100));
    }
    assert_eq!(provider.asked(), 2, "once a second");
    provider.answers(200, &good);
    world.call(OWNER, &fresh(&world, "u")).await.unwrap();
    assert_eq!(world.identity.remote_keys()[0].state(), Ok(()));
    // Now that a key is known, the provider is asked at most every 30 seconds.
    provider.answers(503, "");
    let header = world.header().with("kid", "another");
    for _ in 0..5 {
        world.clock.advance(TimeDelta::seconds(2));
        world.call(OWNER, &world.sign(&header, &world.claims())).await.unwrap_err();
    }
    assert_eq!(provider.asked(), 3);
}

#[tokio::test]
async fn zeros_before_a_number_of_a_key_do_not_change_it() {
    for zeros in [1, 3] {
        let (world, provider) = world().await;
        let mut document: Value = serde_json::from_str(&world.keys.token_jwks()).unwrap();
        for member in ["n", "e"] {
            let number = document["keys"][0][member].as_str().unwrap();
            let number = URL_SAFE_NO_PAD.decode(number).unwrap();
            let number = [vec![0; zeros], number].concat();
            document["keys"][0][member] = json!(URL_SAFE_NO_PAD.encode(number));
        }
        provider.answers(200, &document.to_string());
        let answer = world.call(OWNER, &fresh(&world, "u")).await;
        assert!(answer.is_ok(), "{zeros}: {answer:?}");
    }
}

/// If the response never ends, it is abandoned at the timeout. Callers with a known key don't wait
/// for it.
#[tokio::test]
async fn a_key_set_that_does_not_end_is_given_up() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let _ = stream.read(&mut [0; 4096]).await;
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n{\"keys\": [").await;
                while stream.write_all(b" ").await.is_ok() {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
            });
        }
    });
    let keys = Keys::ephemeral(Clock::default()).unwrap();
    let world = World::trusting(keys, ISSUER, |clock| {
        let mut settings = JwksSettings::new(format!("http://{address}/jwks"));
        settings.timeout = Duration::from_millis(500);
        KeySource::Remote(JwksClient::new(settings, clock).unwrap())
    });
    let begun = Instant::now();
    assert_eq!(world.call(OWNER, &fresh(&world, "u")).await, Err(Error::Unavailable));
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
}
