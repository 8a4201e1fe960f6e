//! The recipients of messages, and the managers of channels.

use authority_crypto::KeyRing;
use authority_keys::Keys;
use authority_model::schema::message_channels;
use authority_process::clock::Clock;
use diesel::QueryDsl;
use diesel_async::RunQueryDsl;
use serde_json::json;

use super::{
    super::endpoints::{OTHER, TENANT},
    BOB, LEA, LIST, World, added, channels,
};
use crate::support::{Answered, Members, Plain, new_principal, new_tenant, nothing, only};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_people_who_may_decide_are_told() {
    let world = World::start().await;
    let person = |role: &str, email: &str| world.app.person(TENANT, role, email);
    world.chat(&person("approver", BOB), "slack", "bob", nothing()).await;
    world.chat(&person("legal", LEA), "slack", "lea", nothing()).await;
    let asker = person("admin", "asker@acme.example");
    world.chat(&asker, "slack", "asker", nothing()).await;
    for role in ["auditor", "member", "viewer"] {
        assert_eq!(person(role, BOB).get(LIST).await.0, 403, "{role}");
    }
    assert_eq!(world.app.owner().get(LIST).await.0, 403);
    let suspended = new_principal("human", "Lea").with("email", LEA).with("state", "suspended");
    let lea = world.app.owner().create_principal(suspended).await.assert_status(201);
    // The maker of an API key cannot approve a request of the key.
    let body = json!({"label": "own", "scopes": ["runtime:read", "runtime:write"]});
    let key = asker.create_api_key(body).await.assert_status(201);
    let own = world.app.client(key["secret"].as_str().unwrap());
    let asked = crate::support::asking(25_000.0, "DE");
    let (_, held) = own.evaluate(asked).await;
    assert!(held["approval_id"].is_string(), "{held:#}");
    assert_eq!(world.told(1).await, ["bob"]);
    // The channels of a deleted person are deleted.
    assert_eq!(
        world.app.owner().delete_principal(lea["principal"]["id"].as_str().unwrap()).await.0,
        200
    );
    let gone = format!("SELECT count(*) = 0 FROM message_channels WHERE email = '{LEA}'");
    world.until(&gone).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn channels_are_each_persons_own_and_the_tenants_are_the_admins() {
    let world = World::start().await;
    assert_eq!(world.app.owner().create_tenant(new_tenant("other", "other")).await.0, 201);
    let (bob, lea) = (world.bob(), world.app.person(TENANT, "legal", LEA));
    let admin = world.app.person(TENANT, "admin", "ann@acme.example");
    let foreign = world.app.person(OTHER, "admin", "ann@acme.example");
    let id = world.chat(&bob, "slack", "bob", nothing()).await;
    let shared = json!({"kind": "teams", "url": world.url("all"), "for_tenant": true});
    assert_eq!(bob.post(LIST, shared.clone()).await.0, 403);
    let tenants = added(admin.post(LIST, shared).await);
    let path = format!("{LIST}/{id}");
    for person in [&lea, &admin, &foreign] {
        assert_eq!(person.call("DELETE", &path, None, &[]).await.0, 404);
        assert_eq!(person.call("PUT", &path, Some(nothing()), &[]).await.0, 404);
        assert_eq!(person.post(&format!("{path}:test"), nothing()).await.0, 404);
    }
    let tenants_path = format!("{LIST}/{tenants}");
    assert_eq!(bob.call("DELETE", &tenants_path, None, &[]).await.0, 404);
    let second = world.app.person(TENANT, "admin", "eve@acme.example");
    let shown = channels(&second).await;
    assert_eq!((shown.len(), shown[0]["for_tenant"].as_bool()), (1, Some(true)), "{shown:#?}");
    assert!(channels(&lea).await.is_empty() && channels(&foreign).await.is_empty());
    world.ask(25_000.0).await;
    assert_eq!(world.told(2).await, ["all", "bob"]);

    for n in 1..10 {
        world.chat(&bob, "slack", &n.to_string(), nothing()).await;
    }
    let (status, refused) = bob.post(LIST, json!({"kind": "slack", "url": world.url("10")})).await;
    assert_eq!((status, refused["error"].text()), (409, "limit_reached"), "{refused:#}");
    assert_eq!(second.call("DELETE", &tenants_path, None, &[]).await.0, 200);
    world.until(&format!("SELECT count(*) = 0 FROM messages WHERE channel_id = '{tenants}'")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_substitute_gets_the_messages_of_a_person_who_is_away() {
    let world = World::start().await;
    let (bob, lea) = (world.bob(), world.app.person(TENANT, "legal", LEA));
    let until = (Clock::default().now() + chrono::TimeDelta::days(3)).to_rfc3339();
    let away = json!({"away_until": until, "substitute": "Lea@Acme.example"});
    world.chat(&bob, "slack", "bob", away.clone()).await;
    // Without a channel of the substitute, the person gets the message.
    world.ask(25_000.0).await;
    assert_eq!(world.told(1).await, ["bob"]);
    // Lea gets Bob's messages, although her own channel is for other actions.
    world.chat(&lea, "slack", "lea", only("actions", ["refund.*"])).await;
    world.ask(26_000.0).await;
    assert_eq!(world.told(2).await, ["bob", "lea"]);
    // Two people who are away and stand in for each other.
    let own = channels(&lea).await[0]["id"].as_str().unwrap().to_owned();
    let both = json!({"away_until": until, "substitute": BOB});
    assert_eq!(lea.call("PUT", &format!("{LIST}/{own}"), Some(both), &[]).await.0, 200);
    world.ask(27_000.0).await;
    assert_eq!(world.told(4).await, ["bob", "bob", "lea", "lea"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_erased_person_has_no_channels_and_is_nobodys_substitute() {
    let world = World::start().await;
    let (bob, lea) = (world.bob(), world.app.person(TENANT, "legal", LEA));
    let until = (Clock::default().now() + chrono::TimeDelta::days(3)).to_rfc3339();
    world.chat(&bob, "slack", "bob", nothing()).await;
    world.chat(&lea, "slack", "lea", json!({"away_until": until, "substitute": BOB})).await;
    world.ask(25_000.0).await;
    world.told(1).await;
    let body = json!({"email": BOB, "reason": "left the company"});
    let erased = world.app.owner().erase_personal_data(body).await.assert_status(200);
    assert_eq!(erased["erasure"]["erased"]["message_channels"], 2, "{erased:#}");
    let left = channels(&lea).await;
    assert_eq!(left.len(), 1);
    assert!(!left[0].to_string().contains(BOB), "{left:#?}");
    world.until("SELECT count(*) = 1 FROM message_channels").await;
    let own = format!(
        "SELECT count(*) = 0 FROM messages m WHERE NOT EXISTS \
                       (SELECT FROM message_channels c WHERE c.id = m.channel_id AND c.email = '{LEA}')"
    );
    world.until(&own).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_key_ring_takes_over_the_urls() {
    let world = World::start().await;
    let id = world.chat(&world.bob(), "slack", "bob", nothing()).await;
    let (store, new) = (world.app.database.store(), KeyRing::generate().unwrap());
    let ring = async |text: &str| {
        let ring = KeyRing::parse(text).unwrap();
        Keys::start(store.clone(), ring, Clock::default(), true).await.unwrap()
    };
    let both = ring(&format!("{new}{}", world.app.ring())).await;
    assert!(both.rewrap().await.unwrap() > 0);
    let sealed: Option<Vec<u8>> = message_channels::table
        .find(&id)
        .select(message_channels::sealed_url)
        .first(&mut world.app.database.owner().await)
        .await
        .unwrap();
    let (alone, sealed) = (ring(&new).await, sealed.unwrap());
    assert_eq!(alone.open_message_url(&id, &sealed).unwrap(), world.url("bob"));
    assert!(alone.open_message_url("svc:message_channel:0", &sealed).is_err());
}
