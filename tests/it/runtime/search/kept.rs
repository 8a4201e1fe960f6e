//! The index is written once, can be written again, and takes few bytes.

use std::time::Instant;

use authority_process::clock::Clock;
use chrono::TimeDelta;
use serde_json::{Value, json};

use super::{TENANT, auditor, count, decided, decisions, demo, found, number, paying};
use crate::support::{Answered, TestApp, Wishes, only};

/// The maximum number of bytes of a decision with four facts, with its indexes.
const BYTES: i64 = 150;

/// All rows of the index, in order.
async fn rows(app: &TestApp) -> Vec<String> {
    use diesel_async::RunQueryDsl;

    #[derive(diesel::QueryableByName)]
    struct Row {
        #[diesel(sql_type = diesel::sql_types::Text)]
        row: String,
    }
    let mut db = app.database.owner().await;
    let all = "SELECT f::text AS row FROM decision_facts f ORDER BY f::text";
    let rows = diesel::sql_query(all).load::<Row>(&mut db).await.unwrap();
    rows.into_iter().map(|row| row.row).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn indexing_again_gives_the_same_rows() {
    let (app, client, _) = demo().await;
    for number in 0..5 {
        decided(&client, paying(10.0, "Globex", "FR76", &format!("R-{number}"))).await;
    }
    let beside = app.beside(Wishes::default()).await;
    tokio::join!(app.index_facts(), beside.index_facts());
    let first = rows(&app).await;
    assert_eq!(first.len(), 5);
    app.reindex_facts().await;
    assert_eq!(rows(&app).await, first);
    // Rows of decisions before the day stay.
    let tomorrow = (Clock::default().now() + TimeDelta::days(2)).date_naive();
    let again = format!("SELECT reindex_decision_facts('{tomorrow}')");
    let refused = {
        use diesel_async::SimpleAsyncConnection;
        app.database.owner().await.batch_execute(&again).await.unwrap_err().to_string()
    };
    assert!(refused.contains("are not indexed yet"), "{refused}");
    assert_eq!(rows(&app).await, first);
}

/// A tool that declares its facts later: earlier decisions are found after they were indexed again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn indexing_again_uses_the_present_declarations() {
    let (app, client, _) = demo().await;
    let (_, tools) = app.owner().list_tools(&format!("tenant_id={TENANT}")).await;
    let tools = tools["tools"].as_array().unwrap();
    let tool = tools.iter().find(|tool| tool["name"] == "payments").unwrap();
    let path = format!("/api/v1/tools/{}", tool["id"].as_str().unwrap());
    let declare = async |presentation: Value| {
        let body = only("presentation", &presentation);
        app.owner().patch(&path, body).await.assert_status(200);
    };
    declare(json!(null)).await;
    let mut ask = paying(10.0, "Globex", "FR76", "R-1");
    ask["context"]["costs"] = "CC-9".into();
    decided(&client, ask).await;
    app.index_facts().await;
    assert_eq!(count(&app, "decision_facts").await, 0);
    let facts = json!([{"path": "costs", "label": "Cost centre", "role": "target"}]);
    declare(json!({"title": "Pay {amount}", "facts": facts})).await;
    app.reindex_facts().await;
    let auditor = auditor(&app);
    assert_eq!(decisions(&found(&auditor, "target:cc-9").await).len(), 1);
    assert!(decisions(&found(&auditor, "Globex").await).is_empty(), "not declared");
}

/// Prints the time as well, which depends on the build and the machine.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decision_takes_few_bytes_of_the_index() {
    const CALLS: usize = 40;
    const BATCH: usize = 100;
    let (app, client, _) = demo().await;
    for call in 0..CALLS {
        let ask = |place: usize| {
            let number = call * BATCH + place;
            let amount = f64::from(u32::try_from(number).unwrap() + 1);
            let supplier = number % 50;
            let iban = format!("DE89 {supplier}");
            paying(amount, &format!("Supplier {supplier}"), &iban, &format!("RE-{number}"))
        };
        let requests: Vec<Value> = (0..BATCH).map(ask).collect();
        client.batch_evaluate(only("requests", &requests)).await.assert_status(200);
    }
    let begun = Instant::now();
    app.index_facts().await;
    let all = i64::try_from(CALLS * BATCH).unwrap();
    println!("{:?} a decision", begun.elapsed() / u32::try_from(all).unwrap());
    assert_eq!(count(&app, "decision_facts").await, all);
    // Completes the BRIN indexes.
    app.database.run("VACUUM ANALYZE decision_facts").await;
    let size = "SELECT sum(pg_total_relation_size(relid))::bigint AS number \
         FROM pg_partition_tree('decision_facts') WHERE isleaf AND pg_relation_size(relid) > 0";
    let bytes = number(&app, size).await / all;
    println!("{bytes} bytes a decision");
    assert!(bytes <= BYTES, "{bytes} bytes a decision");
    for text in ["RE-3999", "document:RE-0", "4,000.00 EUR"] {
        assert_eq!(decisions(&found(&auditor(&app), text).await).len(), 1, "{text}");
    }
}
