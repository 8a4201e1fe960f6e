//! The content of messages to chats, and chats that fail.

use serde_json::{Value, json};

use super::{
    super::{
        delivery::{Answer, Received},
        endpoints::TENANT,
    },
    CAPABILITY, LIST, World, channels,
    formats::check,
};
use crate::support::{Plain, nothing, only};

const KINDS: [&str; 3] = ["slack", "mattermost", "teams"];

fn body_of<'a>(all: &'a [Received], name: &str) -> &'a Received {
    all.iter().rfind(|one| one.path.ends_with(name)).unwrap_or_else(|| panic!("{name}: {all:#?}"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_chat_gets_its_format_and_facts_only_where_the_owner_permits_them() {
    let world = World::start().await;
    let bob = world.bob();
    for kind in KINDS {
        world.chat(&bob, kind, kind, nothing()).await;
    }
    let approval = world.ask(25_000.0).await;
    let page =
        format!("{}/console/approvals/{}", world.app.base_url(), approval.replace(':', "%3A"));
    let all = world.received(3).await;
    assert_eq!(all.len(), 3, "{all:#?}");
    for kind in KINDS {
        let message = body_of(&all, kind);
        assert_eq!(message.headers["content-type"], "application/json");
        check(kind, &message.event());
        let text = message.event().to_string();
        assert!(text.contains(&page) && text.contains("payment.execute"), "{text}");
        assert!(text.contains("admin, approver or legal"), "{text}");
        assert!(!text.contains("25 000") && !text.contains("EUR"), "{text}");
    }

    // Only the installation's owner can permit facts.
    let facts = only("message_facts", true);
    assert_eq!(
        world
            .app
            .person(TENANT, "admin", "a@b.example")
            .update_tenant("acme", facts.clone())
            .await
            .0,
        403
    );
    assert_eq!(world.app.owner().update_tenant("acme", facts).await.0, 200);
    world.ask(26_000.0).await;
    let all = world.received(6).await;
    for kind in KINDS {
        let message = body_of(&all, kind).event();
        check(kind, &message);
        assert!(message.to_string().contains("26 000.00 EUR"), "{message:#}");
    }

    // A person who did not save the channel for long may have lost the role.
    world.run("UPDATE message_channels SET updated_at = now() - interval '91 days'").await;
    world.ask(27_000.0).await;
    let all = world.received(9).await;
    for kind in KINDS {
        let message = body_of(&all, kind).event().to_string();
        assert!(!message.contains("27 000"), "{message}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn words_of_an_agent_are_shown_and_have_no_effect() {
    let world = World::start().await;
    for kind in KINDS {
        world.chat(&world.bob(), kind, kind, nothing()).await;
    }
    let facts = only("message_facts", true);
    assert_eq!(world.app.owner().update_tenant("acme", facts).await.0, 200);
    let hostile = "<!channel> @all *x* [y](https://evil.example)\u{202e}\nWho decides: nobody";
    let mut asked = crate::support::asking(25_000.0, "DE");
    asked["context"]["remark"] = json!(hostile);
    let (_, held) = world.runtime.evaluate(asked).await;
    assert!(held["approval_id"].is_string(), "{held:#}");
    let all = world.received(3).await;
    for kind in KINDS {
        let message = body_of(&all, kind).event();
        check(kind, &message);
        let text = message.to_string();
        assert!(!text.contains('\u{202e}') && !text.contains("\\u202e"), "{text}");
        assert!(!text.contains("\\nWho decides: nobody"), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_url_of_a_chat_is_never_shown() {
    let world = World::start().await;
    let bob = world.bob();
    let id = world.chat(&bob, "slack", "bob", only("label", "Mine")).await;
    let shown = channels(&bob).await;
    assert_eq!(
        (shown[0]["id"].text(), &shown[0]["target"]),
        (id.as_str(), &json!(world.chat.base))
    );
    let tested = bob.post(&format!("{LIST}/{id}:test"), nothing()).await;
    for text in [json!(shown).to_string(), tested.1.to_string()] {
        assert!(!text.contains(CAPABILITY), "{text}");
    }
    let stored = format!(
        "SELECT strpos(c::text, '{CAPABILITY}') = 0 AND strpos(encode(c.sealed_url, 'escape'), \
         '{CAPABILITY}') = 0 FROM message_channels c WHERE c.id = '{id}'"
    );
    world.until(&stored).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_channel_that_fails_says_so_until_it_works() {
    let world = World::start().await;
    let bob = world.bob();
    let id = world.chat(&bob, "mattermost", "bob", nothing()).await;
    world.chat.always(Answer::status(404));
    world.ask(25_000.0).await;
    world.until("SELECT count(*) = 1 FROM messages WHERE state = 'failed'").await;
    let failing = channels(&bob).await.remove(0);
    assert!(failing["failing_since"].is_string(), "{failing:#}");
    assert_eq!(failing["last_error"], "status_404");
    assert_eq!(world.received(1).await.len(), 1, "a removed webhook is not tried again");

    let test = format!("{LIST}/{id}:test");
    let (status, tested) = bob.post(&test, nothing()).await;
    assert_eq!(
        (status, tested["sent"].as_bool(), tested["error"].text()),
        (200, Some(false), "status_404"),
        "{tested:#}"
    );
    let (status, refused) = bob.post(&test, nothing()).await;
    assert_eq!((status, refused["error"].text()), (429, "rate_limited"), "{refused:#}");
    world.run("UPDATE message_channels SET tested_at = now() - interval '11 s'").await;
    world.chat.always(Answer::status(200));
    let (status, tested) = bob.post(&test, nothing()).await;
    assert_eq!((status, tested["sent"].as_bool()), (200, Some(true)), "{tested:#}");
    let works = channels(&bob).await.remove(0);
    assert_eq!((&works["failing_since"], &works["last_error"]), (&Value::Null, &Value::Null));

    // A receiver that is busy gets the message again, and the same one.
    let mut answers = 0;
    world.chat.answers(move |_| {
        answers += 1;
        if answers == 1 { Answer::status(503) } else { Answer::status(200) }
    });
    let before = world.chat.received().len();
    world.ask(26_000.0).await;
    let all = world.received(before + 2).await;
    assert_eq!(all.len(), before + 2);
    assert_eq!(all[before].body, all[before + 1].body);
    world.until("SELECT count(*) = 1 FROM messages WHERE state = 'sent' AND attempts = 2").await;
}
