//! Responses that wait for the disk, tested by the `synchronous_commit` setting of the commit.

use diesel::{QueryableByName, sql_query, sql_types::Text};
use diesel_async::RunQueryDsl;
use serde_json::Value;

use super::{asking, demo};
use crate::support::{Answered, Client, TestApp, only};

/// Records the setting at each decision's commit: a deferred trigger runs last.
const NOTE_COMMITS: &str = "
    CREATE TABLE commits (decision_id text PRIMARY KEY, waits text NOT NULL);
    CREATE FUNCTION note_commit() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$ BEGIN
        INSERT INTO commits VALUES (NEW.id, current_setting('synchronous_commit'));
        RETURN NULL;
    END $$;
    CREATE CONSTRAINT TRIGGER note_commit AFTER INSERT ON decisions
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION note_commit();";

#[derive(QueryableByName)]
struct Commit {
    #[diesel(sql_type = Text)]
    waits: String,
}

/// Makes a request and returns the setting with which its decision was committed.
async fn waits(app: &TestApp, client: &Client, headers: &[(&str, &str)], ask: Value) -> String {
    let answer = client.evaluate_with(ask, headers).await.assert_status(200);
    let id = answer["decision_id"].as_str().unwrap();
    let mut db = app.database.owner().await;
    let found = sql_query("SELECT waits FROM public.commits WHERE decision_id = $1");
    found.bind::<Text, _>(id).get_result::<Commit>(&mut db).await.unwrap().waits
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_relaxed_tenant_waits_for_the_disk_for_holds_and_keys_alone() {
    let (app, client, _) = demo().await;
    app.database.run(NOTE_COMMITS).await;
    let usual = waits(&app, &client, &[], asking(1.0, "DE")).await;
    assert_ne!(usual, "off");
    let relaxed = only("durability", "relaxed");
    app.owner().update_tenant("acme", relaxed).await.assert_status(200);
    // The first decision stores new facts, with other SQL than the second.
    for amount in [1.0, 1.0, 2.0] {
        assert_eq!(waits(&app, &client, &[], asking(amount, "DE")).await, "off");
    }
    assert_eq!(waits(&app, &client, &[], asking(1.0, "US")).await, "off", "a denial");
    assert_eq!(waits(&app, &client, &[], asking(25_000.0, "DE")).await, usual, "a hold");
    let key = [("idempotency-key", "once")];
    assert_eq!(waits(&app, &client, &key, asking(1.0, "DE")).await, usual, "a key");
}
