//! Messages by e-mail.

use serde_json::json;

use super::{super::endpoints::TENANT, BOB, LIST, ROUNDS, World, added, channels};
use crate::support::{
    Plain, Wishes, nothing, only,
    smtp::{Mail, Mode, SmtpServer},
};

async fn world(server: &SmtpServer) -> World {
    World::wished(Wishes { smtp: server.config(), ..Wishes::default() }).await
}

/// The mails at the server, after `count` of them and enough time for more.
async fn mails(server: &SmtpServer, count: usize) -> Vec<Mail> {
    for _ in 0..600 {
        if server.received().len() >= count {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    tokio::time::sleep(ROUNDS).await;
    server.received()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_server_email_is_refused_with_the_missing_settings() {
    let world = World::start().await;
    let (status, refused) = world.bob().post(LIST, only("kind", "email")).await;
    assert_eq!((status, refused["error"].text()), (409, "mail_not_configured"), "{refused:#}");
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains("`smtp.host`") && message.contains("`smtp.from`"), "{message}");
    assert_eq!(world.bob().get(LIST).await.1["sends_email"], false);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mail_goes_encrypted_to_the_address_in_the_token() {
    for mode in [Mode::StartTls, Mode::Tls] {
        let server = SmtpServer::start(mode).await;
        let world = world(&server).await;
        let bob = world.bob();
        let id = added(bob.post(LIST, only("kind", "email")).await);
        assert_eq!(channels(&bob).await[0]["target"], json!(BOB));
        let approval = world.ask(25_000.0).await;
        let all = mails(&server, 1).await;
        assert_eq!(all.len(), 1, "{all:#?}");
        let mail = &all[0];
        assert!(mail.is_secure && mail.user == "authority", "{mail:#?}");
        assert_eq!((&*mail.from, &*mail.to), ("authority@example.org", &[BOB.to_owned()][..]));
        assert_eq!(mail.header("Subject"), "A request waits for approval");
        assert_eq!(mail.header("Auto-Submitted"), "auto-generated");
        assert!(mail.header("Message-ID").ends_with("@example.org>"), "{mail:#?}");
        assert!(mail.body.contains("Action: payment.execute\r\n"), "{}", mail.body);
        assert!(mail.body.contains(&approval.replace(':', "%3A")), "{}", mail.body);
        assert!(!mail.body.contains("25 000"), "{}", mail.body);

        let end = format!(
            "UPDATE approvals SET expires_at = now() - interval '1 s' WHERE id = '{approval}'"
        );
        world.run(&end).await;
        let all = mails(&server, 2).await;
        assert_eq!(all[1].header("Subject"), "A request expired without a decision");
        assert_ne!(all[0].header("Message-ID"), all[1].header("Message-ID"));
        let (status, tested) = bob.post(&format!("{LIST}/{id}:test"), nothing()).await;
        assert_eq!((status, tested["sent"].as_bool()), (200, Some(true)), "{tested:#}");
        assert_eq!(mails(&server, 3).await[2].header("Subject"), "Test message");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_sent_without_encryption() {
    let server = SmtpServer::start(Mode::Plain).await;
    let world = world(&server).await;
    let bob = world.bob();
    let id = added(bob.post(LIST, only("kind", "email")).await);
    let (status, tested) = bob.post(&format!("{LIST}/{id}:test"), nothing()).await;
    assert_eq!((status, tested["sent"].as_bool()), (200, Some(false)), "{tested:#}");
    assert!(tested["error"].as_str().unwrap().starts_with("smtp"), "{tested:#}");
    assert!(channels(&bob).await[0]["failing_since"].is_string());
    assert!(server.received().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_mail_is_sent_again_with_the_same_id_after_a_temporary_refusal() {
    let server = SmtpServer::start(Mode::StartTls).await;
    let world = world(&server).await;
    let bob = world.bob();
    added(bob.post(LIST, only("kind", "email")).await);
    server.refuse(Some("451 try again later"));
    world.ask(25_000.0).await;
    world.until("SELECT last_error = 'smtp_451' FROM message_channels").await;
    let id = "SELECT count(*) = 1 FROM messages WHERE state = 'open' AND attempts = 1";
    world.until(id).await;
    server.refuse(None);
    let all = mails(&server, 1).await;
    assert_eq!(all.len(), 1, "{all:#?}");
    let own = all[0].header("Message-ID").trim_start_matches('<').split('@').next().unwrap();
    world.until(&format!("SELECT count(*) = 1 FROM messages WHERE id = 'svc:message:{own}'")).await;
    // A permanent refusal, as for an unknown mailbox, is not repeated.
    server.refuse(Some("550 no such mailbox"));
    world.ask(26_000.0).await;
    world.until("SELECT count(*) = 1 FROM messages WHERE state = 'failed' AND attempts = 1").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn email_is_for_the_persons_own_address_only() {
    let server = SmtpServer::start(Mode::StartTls).await;
    let world = world(&server).await;
    let admin = world.app.person(TENANT, "admin", "ann@acme.example");
    for (body, field) in [
        (json!({"kind": "email", "url": "https://chat.example.com/x"}), "url"),
        (json!({"kind": "email", "for_tenant": true}), "for_tenant"),
    ] {
        let (status, refused) = admin.post(LIST, body).await;
        assert_eq!((status, refused["details"][0]["field"].text()), (400, field), "{refused:#}");
    }
    let unfit = world.app.person(TENANT, "approver", "bøb@acme.example");
    let (status, refused) = unfit.post(LIST, only("kind", "email")).await;
    assert_eq!((status, refused["details"][0]["field"].text()), (400, "kind"), "{refused:#}");
}
