//! An erasure that ends before its last transaction commits, for example because its node is
//! killed.

use std::time::Duration;

use diesel_async::SimpleAsyncConnection;
use serde_json::{Value, json};

use super::{ANN, World, dump::columns_with};
use crate::support::{Answered, only};

/// Selects the sessions that wait to write the erasure.
const WAITING: &str =
    "SELECT pid FROM pg_locks WHERE NOT granted AND relation = 'erasures'::regclass";

/// Data that were already erased stay erased, all other data are unchanged, and the erasure is not
/// listed. Requesting it again completes it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_erasure_that_crashed_is_asked_again() {
    let world = World::start().await;
    let lead = world.lead(ANN).await;
    let (_, approval) = world.held(&world.key, "ann@example.org, privately").await;
    assert!(
        !world.owner.get_approval(&approval).await.assert_shown("approval")["request"].is_null()
    );
    let mut holder = world.app.database.owner().await;
    holder.batch_execute("BEGIN; LOCK TABLE erasures IN SHARE MODE").await.unwrap();
    let (crashed, ()) = tokio::join!(world.erase(only("email", ANN)), async {
        let killed = format!(
            "DO $$ BEGIN \
                 FOR n IN 1..600 LOOP EXIT WHEN EXISTS ({WAITING}); PERFORM pg_sleep(0.05); END LOOP; \
                 IF NOT EXISTS ({WAITING}) THEN RAISE 'it did not come to its end'; END IF; \
             END $$; \
             SELECT pg_terminate_backend(pid) FROM ({WAITING}) AS waiting"
        );
        world.app.database.run(&killed).await;
    });
    assert!(crashed.0 >= 500, "{} {:#}", crashed.0, crashed.1);
    holder.batch_execute("ROLLBACK").await.unwrap();
    let until_listed = async || {
        for _ in 0..100 {
            let (status, listed) = world.owner.list_erasures("").await;
            if status == 200 {
                return listed["erasures"].clone();
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("the service does not recover");
    };
    assert_eq!(until_listed().await, json!([]));
    assert_eq!(world.owner.get_lead(&lead).await.assert_shown("lead")["submitter_email"], ANN);
    let shown = world.owner.get_approval(&approval).await.assert_shown("approval");
    assert_eq!(shown["request"], Value::Null, "its page is erased: {shown:#}");

    let erasure = world.erase_ann().await;
    assert_eq!(erasure["erased"]["leads"], 1, "{erasure:#}");
    assert_eq!(columns_with(&world.app, ANN).await, Vec::<String>::new());
    assert_eq!(until_listed().await, json!([erasure]));
}
