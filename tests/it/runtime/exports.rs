//! The export of decisions: all that exist when it starts, in the order of their ids.

use authority_client::{Next, SURFACE};
use authority_ids::DecisionId;
use authority_model::proto::runtime::{
    ExportDecisionsRequest, decision_service_client::DecisionServiceClient,
};
use authority_process::clock::Clock;
use base64::{Engine, engine::general_purpose::STANDARD};
use chrono::TimeDelta;
use serde_json::{Value, json};
use tonic::Code;

use super::demo;
use crate::support::{AGENT, Client, Limits, Plain, TENANT, TestApp, asking, nothing, only};

const PATH: &str = "/api/v1/app/decisions:export";

async fn lines(client: &Client, filter: &Value) -> Vec<Value> {
    let (service, surface) = client.service();
    let path = surface.path(&[SURFACE, "decisions:export"]);
    let mut export = service.lines(&path, filter).await.unwrap();
    let mut lines = Vec::new();
    loop {
        match export.next().await.unwrap() {
            Next::Line(_, line) => lines.push(line),
            Next::End => return lines,
            Next::Lost(why) => panic!("{why}"),
        }
    }
}

#[track_caller]
fn ids(lines: &[Value]) -> Vec<&str> {
    let decisions = lines.iter().filter(|line| line["end"] == false);
    decisions.map(|line| line["decision"]["decision_id"].as_str().unwrap()).collect()
}

async fn decided(client: &Client, amount: f64) -> String {
    let (_, answer) = client.evaluate(asking(amount, "DE")).await;
    answer["decision_id"].as_str().unwrap_or_else(|| panic!("{answer:#}")).to_owned()
}

/// Stores decisions of the last hour: more than one page and one HTTP/2 window can contain.
async fn many(app: &TestApp, count: u32) {
    let at = Clock::default().now() - TimeDelta::hours(1);
    let first = DecisionId::first(u64::try_from(at.timestamp_millis()).unwrap());
    let sql = format!(
        "INSERT INTO decisions (id, tenant_id, subject, action, decision, reason_code, evaluated_at, \
             record, kid, signature, context, context_salt, facts, facts_salt) \
         SELECT '{first}' || lpad(to_hex(n), 52, '0'), '{TENANT}', 's', 'a', 'deny', 'r', '{at}', \
             convert_to('{{\"x\":\"' || repeat('x', 1000) || '\"}}', 'UTF8'), 'k', '', '{{}}', '', \
             '{{}}', '' FROM generate_series(1, {count}) AS n",
        at = at.to_rfc3339(),
    );
    app.database.run(&sql).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_goes_on_after_any_line_and_ends_where_it_began() {
    let (app, client, _) = demo().await;
    many(&app, 250).await;
    let auditor = app.person(TENANT, "auditor", "eve@example.org");
    let before = Clock::default().now() - TimeDelta::minutes(1);
    let (first, second) = (decided(&client, 1200.0).await, decided(&client, 1300.0).await);
    let all = lines(&auditor, &nothing()).await;
    let (last, found) = all.split_last().unwrap();
    assert_eq!((last["end"].as_bool(), last["count"].number()), (Some(true), 252), "{last:#}");
    let exported = ids(found);
    assert_eq!(exported.len(), 252);
    assert!(exported.is_sorted());
    assert_eq!(exported[250..], [first.as_str(), second.as_str()]);
    for place in [0, 99, 100, 249, 250] {
        let rest = lines(&auditor, &only("after", exported[place])).await;
        assert_eq!(ids(&rest), exported[place + 1..], "{place}");
    }
    // `next` does not skip decisions that may still commit with an id before the last lines.
    let next = last["next"].as_str().unwrap();
    let least = DecisionId::first(u64::try_from(before.timestamp_millis()).unwrap());
    assert!(next >= least.as_str() && next < first.as_str(), "{next}");
    assert_eq!(ids(&lines(&auditor, &only("after", next)).await), [&first, &second]);
    // No new decisions can appear before ten minutes ago: `next` is the last id.
    let until =
        (Clock::default().now() - TimeDelta::minutes(10)).format("%Y-%m-%dT%H:%M:%SZ").to_string();
    let old = lines(&auditor, &only("until", &until)).await;
    assert_eq!((&old[250]["next"], old[250]["count"].number()), (&json!(exported[249]), 250));
    let none = lines(&auditor, &json!({"until": until, "after": exported[249]})).await;
    assert_eq!((&none[0]["next"], none[0]["count"].number()), (&json!(exported[249]), 0));
    let (status, refused) = auditor.get(&format!("{PATH}?after=nothing")).await;
    assert_eq!((status, refused["details"][0]["field"].text()), (400, "after"), "{refused:#}");
}

/// Decisions made while the export runs are not included.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn its_end_is_fixed_when_it_begins() {
    let (app, client, _) = demo().await;
    many(&app, 6_000).await;
    let auditor = app.person(TENANT, "auditor", "eve@example.org");
    let mut grpc = DecisionServiceClient::connect(app.base_url().to_owned()).await.unwrap();
    let mut export = grpc.export_decisions(call(&auditor)).await.unwrap().into_inner();
    let first = export.message().await.unwrap().unwrap();
    assert!(!first.end);
    let later = decided(&client, 1200.0).await;
    let mut count = 1;
    let end = loop {
        let line = export.message().await.unwrap().unwrap();
        if line.end {
            break line;
        }
        assert_ne!(line.decision.unwrap().decision_id, later);
        count += 1;
    };
    assert_eq!((count, end.count), (6_000, Some(6_000)));
}

fn call(client: &Client) -> tonic::Request<ExportDecisionsRequest> {
    let mut call = tonic::Request::new(ExportDecisionsRequest::default());
    let bearer = format!("Bearer {}", client.token).parse().unwrap();
    call.metadata_mut().insert("authorization", bearer);
    call
}

/// The context and the salt of its digest are exported only on request.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn contexts_are_shown_on_request() {
    let (app, client, _) = demo().await;
    decided(&client, 1234.5).await;
    let admin = app.person(TENANT, "admin", "ann@example.org");
    let plain = lines(&admin, &nothing()).await;
    assert_eq!(plain[0]["context"], Value::Null);
    assert!(!plain[0].to_string().contains("1234.5"));
    for client in [&admin, &app.person(TENANT, "auditor", "eve@example.org")] {
        let shown = &lines(client, &only("context", true)).await[0];
        assert_eq!(shown["context"]["value"]["amount"], json!(1234.5), "{shown:#}");
        let salt = STANDARD.decode(shown["context"]["salt"].as_str().unwrap()).unwrap();
        assert_eq!(salt.len(), 16);
        // This is the `context_digest` that EVIDENCE.md describes.
        let text = r#"{"amount":1234.5,"currency":"EUR","jurisdiction":"DE"}"#;
        let digest = authority_crypto::sha256(&[&salt, text.as_bytes()].concat());
        let digest = format!("sha256:{}", hex::encode(digest));
        assert_eq!(shown["record"]["request"]["context_digest"], digest, "{shown:#}");
    }
    let (status, text) =
        app.owner().text("GET", "/api/v1/decisions:export?context=true", None).await;
    assert!(status == 200 && text.contains("1234.5"), "{text}");
    for role in ["approver", "legal", "member", "viewer"] {
        let person = app.person(TENANT, role, "p@example.org");
        assert_eq!(person.get(&format!("{PATH}?context=true")).await.0, 403, "{role}");
    }
    assert_eq!(client.get(&format!("{PATH}?context=true")).await.0, 403);
}

/// A caller can run one export at a time. The export ends when the person is suspended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_is_the_callers_only_one_and_ends_with_the_person() {
    let (app, _, _) = demo().await;
    many(&app, 12_000).await;
    let auditor = app.person(TENANT, "auditor", "approver@acme.example");
    let mut grpc = DecisionServiceClient::connect(app.base_url().to_owned()).await.unwrap();
    let export = grpc.export_decisions(call(&auditor)).await.unwrap();
    assert_eq!(Limits::in_metadata(export.metadata()), r#""exports_per_caller";r=0"#);
    let mut export = export.into_inner();
    export.message().await.unwrap().unwrap();
    let url = format!("{}{PATH}", app.base_url());
    let second = auditor.http.get(url).bearer_auth(&auditor.token).send().await.unwrap();
    assert_eq!(
        (second.status().as_u16(), &second.headers()["retry-after"]),
        (429, &"1".parse().unwrap())
    );
    let shown = Limits::of(&second);
    let policy = r#""exports_per_caller";q=1;qu="concurrent-requests""#;
    assert_eq!(
        (shown.left.as_str(), shown.policy.as_str()),
        (r#""exports_per_caller";r=0"#, policy)
    );
    // Another caller can run an export at the same time.
    let other = app.person(TENANT, "auditor", "eve@example.org");
    drop(grpc.export_decisions(call(&other)).await.unwrap());
    let (_, people) = app.owner().list_principals("limit=500").await;
    let person = people["principals"].as_array().unwrap().iter();
    let mut person = person.filter(|person| person["email"] == "approver@acme.example");
    let (status, done) = app
        .owner()
        .update_principal(
            person.next().unwrap()["id"].as_str().unwrap(),
            only("state", "suspended"),
        )
        .await;
    assert_eq!(status, 200, "{done:#}");
    let ended = loop {
        match export.message().await {
            Ok(Some(line)) => assert!(!line.end, "the export completed"),
            Ok(None) => panic!("the export ended without an error"),
            Err(status) => break status,
        }
    };
    assert_eq!(ended.code(), Code::PermissionDenied, "{ended:?}");
}

/// The export ends when the token expires.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_ends_with_the_token() {
    let (app, _, _) = demo().await;
    many(&app, 12_000).await;
    // Tokens are accepted for 30 s after their expiry.
    let end = Clock::default().now() - TimeDelta::seconds(25);
    let token =
        app.token(&json!({"sub": "dev|x", "email": "x@acme.example", "exp": end.timestamp(),
        "iat": end.timestamp() - 60,
        "public_metadata": {"role": "auditor", "tenant_id": TENANT}}));
    let auditor = app.client(&token);
    let mut grpc = DecisionServiceClient::connect(app.base_url().to_owned()).await.unwrap();
    let mut export = grpc.export_decisions(call(&auditor)).await.unwrap().into_inner();
    export.message().await.unwrap().unwrap();
    let ended = loop {
        match export.message().await {
            Ok(Some(line)) if line.end => panic!("the export outlived its token"),
            Ok(Some(_)) => {
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
            Ok(None) => panic!("the export ended without an error"),
            Err(status) => break status,
        }
    };
    assert_eq!(ended.code(), Code::Unauthenticated, "{ended:?}");
}

/// The rows of an export as CSV.
async fn rows(client: &Client, query: &str) -> (String, Vec<String>) {
    let request = client.http.get(format!("{}{PATH}{query}", client.base));
    let request = request.bearer_auth(&client.token).header("accept", "text/csv");
    let answer = request.send().await.unwrap();
    assert_eq!(answer.status(), 200);
    let kind = answer.headers()["content-type"].to_str().unwrap().to_owned();
    let text = answer.text().await.unwrap();
    (kind, text.split_terminator("\r\n").map(str::to_owned).collect())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_decisions_are_rows_for_spreadsheets() {
    let (app, client, _) = demo().await;
    let auditor = app.person(TENANT, "auditor", "aud@example.org");
    let first = decided(&client, 1_200.5).await;
    let second = decided(&client, 25_000.0).await;
    let (_, held) = app.owner().list_approvals(&format!("subject={AGENT}")).await;
    let approval = held["approvals"][0]["id"].as_str().unwrap().to_owned();
    let (kind, all) = rows(&auditor, "?context=true").await;
    assert_eq!(kind, "text/csv; charset=utf-8; header=present");
    assert_eq!(
        all[0],
        "evaluated_at,decision_id,tenant_id,subject,action,amount,currency,decision,reason_code,\
         approval_id,verify_url,end,count,next"
    );
    let lines = lines(&auditor, &only("context", true)).await;
    let expected = [
        (&first, "1200.5", "allow", ""),
        (&second, "25000", "require_approval", approval.as_str()),
    ];
    for ((row, line), (id, amount, word, approval)) in all[1..].iter().zip(&lines).zip(expected) {
        let decision = &line["decision"];
        let text = |member: &str| decision[member].as_str().unwrap();
        let (at, reason, url) = (text("evaluated_at"), text("reason_code"), text("verify_url"));
        let word = if word == "allow" { text("decision") } else { word };
        assert_eq!(
            *row,
            format!(
                "{at},{id},{TENANT},{AGENT},payment.execute,{amount},EUR,{word},{reason},{approval},{url},false,,"
            )
        );
        assert_eq!((text("amount"), text("currency")), (amount, "EUR"), "{line:#}");
    }
    // The last row shows that the file is complete.
    let end = &lines[2];
    // `next` depends on the time of the export.
    let next = end["next"].as_str().unwrap().len();
    let begin = ",,,,,,,,,,,true,2,svc:decision:";
    assert!(all[3].starts_with(begin), "{all:#?}");
    assert_eq!(all[3].len() - begin.len() + "svc:decision:".len(), next, "{all:#?}");
    assert_eq!(all.len(), 4);
    // Amounts belong to the context.
    let (_, without) = rows(&auditor, "").await;
    assert!(without[1].contains(",payment.execute,,,allow"), "{without:#?}");
    let (_, denied) = rows(&auditor, "?decision=deny").await;
    assert_eq!(denied.len(), 2, "{denied:#?}");
}
