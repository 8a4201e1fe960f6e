//! API keys: their format, how they are checked, and their last use.

use std::sync::Arc;

use authority_api::identity::{
    CallerKind, Error,
    api_key::{issue, parse, prefix},
};
use authority_graph::{ApiKey, allow_list};
use authority_ids::ApiKeyId;
use chrono::TimeDelta;
use proptest::prelude::*;

use super::{OWNER, WRITE, World};

const ID: &str = "0193a1b2c3d47e8f9a0b1c2d3e4f5a6b";

/// Returns the id of the API key that has this public id.
pub(super) fn record_id(public_id: &str) -> ApiKeyId {
    format!("svc:api_key:{public_id}").parse().unwrap()
}

/// Creates an active key of the tenant acme and returns its text.
#[track_caller]
pub(super) fn make(world: &World, change: impl FnOnce(&mut ApiKey)) -> String {
    let issued = issue(&world.keys, "dev", ID, [7; 32]).unwrap();
    let mut facts = ApiKey {
        id: record_id(ID),
        tenant_id: "svc:tenant:acme".parse().unwrap(),
        active: true,
        code: issued.code,
        previous: None,
        expires_at: None,
        scopes: Arc::new(["runtime:write".to_owned()]),
        principal_ids: Arc::new([]),
        allowed_from: Arc::new([]),
        decisions_per_second: None,
        people: Arc::default(),
    };
    change(&mut facts);
    world.book.keys.lock().insert(ID.to_owned(), facts);
    issued.text
}

#[test]
fn the_form_holds_what_it_says() {
    let world = World::new();
    let text = make(&world, |_| {});
    let parts: Vec<&str> = text.split('_').collect();
    assert_eq!((parts[0], parts[1], parts[2]), ("svc", "dev", ID));
    assert_eq!((parts[3].len(), parts[4].len()), (43, 8));
    let key = parse(&text).unwrap();
    assert_eq!((key.env, key.public_id), ("dev", ID));
    assert_eq!(prefix("dev", ID), text[..prefix("dev", ID).len()]);
    assert_eq!(record_id(ID).public_id(), ID);
    // The expected CRC-32 (IEEE 802.3) was computed with Python's zlib.
    assert_eq!(parts[4], "25490566");
}

#[test]
fn secrets_keep_all_their_bits() {
    let world = World::new();
    let secret = |bytes: [u8; 32]| {
        let issued = issue(&world.keys, "dev", ID, bytes).unwrap();
        issued.text.split('_').nth(3).unwrap().to_owned()
    };
    let mut one = [0; 32];
    one[31] = 1;
    assert_eq!(secret([0; 32]), "0".repeat(43));
    assert_eq!(secret(one), format!("{}1", "0".repeat(42)));
    // The expected text is 2^256 - 1 in base 62.
    assert_eq!(secret([0xff; 32]), "yhjskwdA6OZ1AL1YmHWZWm8LLG7HjnuCA2j5rOw8Xp1");
}

#[test]
fn an_unfit_env_or_id_makes_no_key() {
    let world = World::new();
    for (env, id) in
        [("", ID), ("a_b", ID), ("Live", ID), ("dev", "short"), ("dev", &ID.to_uppercase())]
    {
        assert!(issue(&world.keys, env, id, [1; 32]).is_err(), "{env} {id}");
    }
}

#[tokio::test]
async fn a_genuine_key_acts_for_its_tenant() {
    let world = World::new();
    let text = make(&world, |facts| facts.principal_ids = Arc::new(["svc:agent:acme:a".into()]));
    let caller = world.call(WRITE, &text).await.unwrap();
    assert_eq!(caller.tenant().unwrap().slug(), "acme");
    assert_eq!(caller.actor, record_id(ID).as_str());
    let caller = world.call(WRITE, &text).await.unwrap();
    assert!(caller.acts_for("svc:agent:acme:a") && !caller.acts_for("svc:agent:acme:b"));
    assert!(matches!(caller.kind, CallerKind::Key { .. }));
    assert!(matches!(world.call(OWNER, &text).await, Err(Error::TakesNoKey(_))));
}

#[tokio::test]
async fn a_key_is_not_unknown_where_the_data_become_too_old_meanwhile() {
    let world = World::new();
    let text = make(&world, |_| {});
    world.is_unavailable_at_each_look(WRITE, &text).await;
}

#[tokio::test]
async fn every_altered_character_is_noticed() {
    let world = World::new();
    let text = make(&world, |_| {});
    for index in 4..text.len() {
        let mut altered = text.clone().into_bytes();
        altered[index] = if altered[index] == b'7' { b'8' } else { b'7' };
        let altered = String::from_utf8(altered).unwrap();
        assert_eq!(world.call(WRITE, &altered).await, Err(Error::MalformedKey), "{index}");
    }
}

#[tokio::test]
async fn a_right_form_with_a_wrong_secret_is_unknown() {
    let world = World::new();
    make(&world, |_| {});
    for (env, id, secret) in
        [("dev", ID, [8; 32]), ("live", ID, [7; 32]), ("dev", &"a".repeat(32), [7; 32])]
    {
        let forged = issue(&world.keys, env, id, secret).unwrap().text;
        assert_eq!(world.call(WRITE, &forged).await, Err(Error::Key("it is unknown")));
    }
    // The code belongs to the same secret in another installation.
    let text = make(&world, |facts| {
        facts.code = issue(&World::new().keys, "dev", ID, [7; 32]).unwrap().code;
    });
    assert_eq!(world.call(WRITE, &text).await, Err(Error::Key("it is unknown")));
}

#[tokio::test]
async fn revoked_expired_and_suspended_stop() {
    let world = World::new();
    let end = world.clock.now() + TimeDelta::seconds(10);
    let text = make(&world, |facts| facts.expires_at = Some(end));
    world.call(WRITE, &text).await.unwrap();
    world.clock.advance(TimeDelta::seconds(10));
    assert_eq!(world.call(WRITE, &text).await, Err(Error::Key("it has expired")));
    let text = make(&world, |facts| facts.active = false);
    assert_eq!(world.call(WRITE, &text).await, Err(Error::Key("it was revoked")));
    for tenant in ["svc:tenant:asleep", "svc:tenant:unknown"] {
        let text = make(&world, |facts| facts.tenant_id = tenant.parse().unwrap());
        assert!(matches!(world.call(WRITE, &text).await, Err(Error::Forbidden(_))));
    }
}

#[tokio::test]
async fn a_rotated_secret_counts_until_the_overlap_ends() {
    let world = World::new();
    let until = world.clock.now() + TimeDelta::seconds(60);
    let before = issue(&world.keys, "dev", ID, [9; 32]).unwrap();
    let text = make(&world, |facts| facts.previous = Some((before.code, until)));
    world.call(WRITE, &text).await.unwrap();
    world.call(WRITE, &before.text).await.unwrap();
    world.clock.advance(TimeDelta::seconds(60));
    world.call(WRITE, &text).await.unwrap();
    assert_eq!(world.call(WRITE, &before.text).await, Err(Error::Key("it is unknown")));
}

#[tokio::test]
async fn an_allow_list_binds_the_address() {
    let world = World::new();
    let nets = allow_list(["10.1.0.0/16", "192.0.2.7", "2001:db8::/32"]).unwrap();
    let text = make(&world, |facts| facts.allowed_from = nets);
    for peer in ["10.1.200.3", "192.0.2.7", "2001:db8::1", "::ffff:10.1.0.1"] {
        world.call_from(peer, &text).await.unwrap();
    }
    for peer in ["10.2.0.1", "192.0.2.8", "2001:db9::1", "::ffff:10.2.0.1", "::1"] {
        let answer = world.call_from(peer, &text).await;
        assert!(matches!(answer, Err(Error::Forbidden(_))), "{peer}");
    }
    assert!(matches!(world.call(WRITE, &text).await, Err(Error::Forbidden(_))));
    assert_eq!(allow_list(["10.0.0.0/8", "here"]), Err("here".to_owned()));
}

#[tokio::test]
async fn uses_are_noted_once_and_drained() {
    let world = World::new();
    let text = make(&world, |_| {});
    world.call(WRITE, &text).await.unwrap();
    world.clock.advance(TimeDelta::seconds(5));
    world.call(WRITE, &text).await.unwrap();
    assert!(world.call(WRITE, "svc_dev_x").await.is_err());
    let noted = world.identity.last_used().drain();
    assert_eq!(noted, [(record_id(ID), world.clock.now())]);
    assert!(world.identity.last_used().drain().is_empty());
}

proptest! {
    #[test]
    fn no_text_makes_parsing_panic(text in "(svc_)?\\PC{0,120}") {
        let _ = parse(&text);
    }
}
