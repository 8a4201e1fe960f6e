//! The write's transaction checks the key by its current row.

use std::time::Duration;

use diesel_async::SimpleAsyncConnection;

use super::{Acme, BOT, CAT, PATH, id, part};
use crate::support::nothing;

/// A change that ends the credential has not been committed when the call begins: no node knows it
/// and the call is authenticated. The call waits for the changed row and is then refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_ends_while_a_key_delegates_is_seen() {
    let acme = Acme::start().await;
    let root = acme.root(BOT, nothing()).await;
    for (change, expected) in [
        ("UPDATE api_keys SET status = 'revoked', revoked_at = now() WHERE id = '{key}'", 401),
        ("UPDATE api_keys SET expires_at = now() - interval '1 s' WHERE id = '{key}'", 401),
        ("UPDATE api_keys SET secret_code = sha256('x') WHERE id = '{key}'", 401),
        ("UPDATE api_keys SET scopes = '{runtime:write}' WHERE id = '{key}'", 403),
        ("UPDATE api_keys SET principal_ids = '{{cat}}' WHERE id = '{key}'", 400),
        ("UPDATE principals SET state = 'suspended' WHERE id = '{bot}'", 403),
        ("UPDATE tenants SET state = 'suspended' WHERE id = 'svc:tenant:acme'", 403),
    ] {
        let (key, key_id) = acme.key(&[BOT]).await;
        let change = change.replace("{key}", &key_id).replace("{bot}", BOT);
        let change = change.replace("{cat}", CAT);
        let (_, child) = key.post(PATH, part(&root, CAT)).await;
        let revoke = format!("{PATH}/{}/revoke", id(&child));
        let mut other = acme.app.database.owner().await;
        let sql = format!("BEGIN; {}", Acme::service(&change));
        other.batch_execute(&sql).await.unwrap();
        let give = tokio::spawn({
            let (key, body) = (key.clone(), part(&root, CAT));
            async move { key.post(PATH, body).await }
        });
        let end = tokio::spawn(async move { key.post(&revoke, nothing()).await });
        tokio::time::sleep(Duration::from_millis(300)).await;
        assert!(!give.is_finished() && !end.is_finished(), "{change}");
        other.batch_execute("COMMIT").await.unwrap();
        let (status, refused) = give.await.unwrap();
        assert_eq!(status, expected, "{change}: {refused:#}");
        let (status, refused) = end.await.unwrap();
        // Revoking another agent's delegation is answered as if the id were unknown.
        let expected = if expected == 400 { 404 } else { expected };
        assert_eq!(status, expected, "{change}: {refused:#}");
        let back = "UPDATE principals SET state = 'active'; UPDATE tenants SET state = 'active'";
        acme.app.database.run(&format!("BEGIN; {}; COMMIT", Acme::service(back))).await;
        acme.app.app.graph.catch_up().await;
    }
}
