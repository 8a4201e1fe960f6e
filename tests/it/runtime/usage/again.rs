//! Rounds that fail store no counts. Decisions can be counted again.

use authority_process::clock::Clock;
use authority_runtime::UsageRollUp;
use chrono::{TimeDelta, Utc};
use diesel_async::SimpleAsyncConnection;
use serde_json::{Value, json};

use super::{ACME, looked, stored};
use crate::support::{Answered, TestApp, new_tenant};

/// The sums of the days and of the hours.
async fn sums(app: &TestApp) -> [Vec<Value>; 2] {
    let mut sums = [Vec::new(), Vec::new()];
    for (period, sum) in ["day", "hour"].into_iter().zip(&mut sums) {
        let found = app.owner().list_usage(&format!("period={period}")).await.assert_status(200);
        let days = found["usage"].as_array().unwrap().iter();
        sum.extend(days.map(|day| json!([day["allow"], day["deny"]])));
    }
    sums
}

/// Stops a round after it has written its counts and before it has committed them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crash_while_counting_counts_no_decision_twice() {
    let app = TestApp::start().await;
    let at = Clock::default().now() - TimeDelta::minutes(10);
    app.count_usage().await;
    app.database.run(&stored(ACME, "deny", at, 3)).await;
    let fail = "CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS \
         'BEGIN RAISE ''no more''; END'; \
         CREATE TRIGGER fail BEFORE UPDATE OF counted_until ON usage_cursor \
         FOR EACH ROW EXECUTE FUNCTION fail()";
    app.database.run(&looked(at - TimeDelta::minutes(1))).await;
    app.database.run(fail).await;
    let roll_up = UsageRollUp::new(app.database.store());
    let mut has_failed = false;
    // An open transaction of another test, or a round of the service, can delay a round.
    for _ in 0..600 {
        has_failed = roll_up.round().await.is_err();
        if has_failed {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert!(has_failed);
    assert_eq!(sums(&app).await, [Vec::<Value>::new(), Vec::new()]);
    app.database.run("DROP TRIGGER fail ON usage_cursor").await;
    for _ in 0..3 {
        app.count_usage().await;
        assert_eq!(sums(&app).await, [[json!([0, 3])].to_vec(), [json!([0, 3])].to_vec()]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn decisions_can_be_counted_again() {
    let app = TestApp::start().await;
    app.count_usage().await;
    let now = Clock::default().now();
    let [today, before] = [now - TimeDelta::minutes(1), now - TimeDelta::days(3)];
    app.database.run(&stored(ACME, "deny", today, 3)).await;
    app.database.run(&stored(ACME, "allow", before, 2)).await;
    app.database.run(&looked(before - TimeDelta::days(1))).await;
    app.count_usage().await;
    let counted = sums(&app).await;
    assert_eq!(counted[0], [json!([0, 3]), json!([2, 0])]);
    // Wrong counts of the last days are corrected. Earlier counts stay.
    let system = "SELECT set_config('role', authority_role('system'), false);";
    let wrong = format!("{system} UPDATE usage_hours SET deny = 7; UPDATE usage_days SET deny = 9");
    app.database.run(&wrong).await;
    let again = |at: chrono::DateTime<Utc>| format!("SELECT recount_usage('{}')", at.date_naive());
    app.database.run(&again(before - TimeDelta::days(1))).await;
    app.count_usage().await;
    assert_eq!(sums(&app).await, counted);
    let mut owner = app.database.owner().await;
    // Decisions that were removed could not be counted again.
    let removed = format!(
        "{system} INSERT INTO archives (tenant_id, month, decisions, versions, changes, bytes, \
             manifest, manifest_sha256, settled_before, archived_at, removal_begun) \
         VALUES ('{ACME}', to_char(now(), 'YYYY-MM'), 0, 0, 0, 0, 'm', sha256('m'), now(), now(), now())"
    );
    assert_eq!(app.owner().create_tenant(new_tenant("Acme", "acme")).await.0, 201);
    app.database.run(&removed).await;
    let refused = owner.batch_execute(&again(now)).await.unwrap_err().to_string();
    assert!(refused.contains("were removed: begin after the last month"), "{refused}");
    let later = owner.batch_execute(&again(now + TimeDelta::days(2))).await;
    let later = later.unwrap_err().to_string();
    assert!(later.contains("are not counted yet"), "{later}");
    assert_eq!(sums(&app).await, counted);
    // The service itself may not delete counts in this way.
    let call = format!("{system} {}", again(now));
    let refused = owner.batch_execute(&call).await.unwrap_err().to_string();
    assert!(refused.contains("permission denied for function recount_usage"), "{refused}");
}
