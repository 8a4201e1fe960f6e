//! Keys that another node has just created: all callers share one wait, which forged keys can't
//! extend.

use std::{
    sync::{Arc, atomic::Ordering::Relaxed},
    time::{Duration, Instant},
};

use authority_api::identity::{Error, api_key};
use authority_graph::ApiKey;
use futures_util::future::join_all;

use super::{WRITE, World, api_keys::record_id};

/// Creates a key of acme with this age, which is known only after the next read. Returns its text.
fn elsewhere(world: &World, seconds_ago: i64, number: u32) -> String {
    let made = world.clock.now().timestamp_millis() - seconds_ago * 1000;
    let id = format!("{made:012x}7000800000{number:010x}");
    let issued = api_key::issue(&world.keys, "dev", &id, [7; 32]).unwrap();
    let facts = ApiKey {
        id: record_id(&id),
        tenant_id: "svc:tenant:acme".parse().unwrap(),
        active: true,
        code: issued.code,
        previous: None,
        expires_at: None,
        scopes: ["runtime:write".to_owned()].into(),
        principal_ids: [].into(),
        allowed_from: [].into(),
        decisions_per_second: None,
        people: Arc::default(),
    };
    world.book.unseen.lock().insert(id, facts);
    issued.text
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_callers_with_young_keys_share_a_look() {
    let world = World::new();
    let keys: Vec<_> = (0..50).map(|number| elsewhere(&world, 3, number)).collect();
    for answer in join_all(keys.iter().map(|key| world.call(WRITE, key))).await {
        answer.unwrap();
    }
    assert!(world.book.looks.load(Relaxed) <= 2, "{:?}", world.book.looks);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_key_that_is_not_young_is_refused_at_once() {
    let world = World::new();
    for seconds_ago in [11, 3600, -11] {
        let key = elsewhere(&world, seconds_ago, 1);
        let answer = world.call(WRITE, &key).await;
        assert!(matches!(answer, Err(Error::Key("it is unknown"))), "{seconds_ago}: {answer:?}");
    }
    assert_eq!(world.book.looks.load(Relaxed), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forged_ids_wait_for_little_and_ask_for_less() {
    let world = World::new();
    let forged: Vec<_> = (0..400).map(|number| elsewhere(&world, 1, number)).collect();
    world.book.unseen.lock().clear();
    let began = Instant::now();
    let mut at_once = 0;
    while began.elapsed() < Duration::from_secs(1) {
        let asked = forged.iter().map(async |key| {
            let asked = Instant::now();
            let answer = world.call(WRITE, key).await;
            assert!(matches!(answer, Err(Error::Key(_))), "{answer:?}");
            asked.elapsed()
        });
        let waits = join_all(asked).await;
        assert!(waits.iter().all(|wait| *wait < Duration::from_millis(600)), "{waits:?}");
        at_once += waits.iter().filter(|wait| **wait < Duration::from_millis(5)).count();
    }
    assert!(at_once >= 600, "only 100 of 400 wait: {at_once}");
    let bound = 2 + began.elapsed().as_millis() / 250;
    let looks = world.book.looks.load(Relaxed) as u128;
    assert!(looks <= bound, "{looks} looks, not {bound}");
}
