//! `include_record` and `client_nonce`: a caller checks an answer without a second call.

use authority_crypto::sha256;
use authority_evidence::digest_text;
use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use super::demo;
use crate::support::{
    AUTHORIZE, Answered, BATCH_EVALUATE, Client, EVALUATE, EVALUATE_DECISION, Members, asking, only,
};

const NONCE: &str = "00112233445566778899aabbccddeeff";

/// Sends the request to every operation. Returns the answers.
async fn answers(client: &Client, ask: &Value) -> Vec<Value> {
    let mut authorize = ask.clone();
    let subject = authorize.as_object_mut().unwrap().remove("subject").unwrap();
    authorize["actor"] = only("entity_id", &subject);
    let mut answers = Vec::new();
    for (path, body) in [
        (EVALUATE, ask.clone()),
        (AUTHORIZE, authorize),
        (EVALUATE_DECISION, ask.clone()),
        (BATCH_EVALUATE, json!({"requests": [ask]})),
    ] {
        let (status, mut answer) = client.post(path, body).await;
        assert_eq!(status, 200, "{path}: {answer:#}");
        if answer["results"].is_array() {
            answer = answer["results"][0]["answer"].take();
        }
        answers.push(answer);
    }
    answers
}

/// Checks the digests that EVIDENCE.md describes. Returns the record.
fn checked(answer: &Value, context: &Value) -> Value {
    let text = answer["record"].as_str().unwrap_or_else(|| panic!("{answer:#}"));
    let digest = digest_text(&sha256(text.as_bytes()));
    assert_eq!(answer["evidence_pack"]["record_digest"], digest, "{answer:#}");
    let hex = digest.strip_prefix("sha256:").unwrap();
    assert!(answer["decision_id"].as_str().unwrap().ends_with(&hex[..52]), "{answer:#}");
    let record: Value = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json_canonicalizer::to_string(&record).unwrap(), text);
    let mut salted = STANDARD.decode(answer["context_salt"].as_str().unwrap()).unwrap();
    assert_eq!(salted.len(), 16);
    salted.extend(serde_json_canonicalizer::to_vec(context).unwrap());
    assert_eq!(record["request"]["context_digest"], digest_text(&sha256(&salted)), "{record:#}");
    record
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_operation_returns_the_record_on_request() {
    let (_app, client, _) = demo().await;
    // Allowed, held and denied.
    for amount in [1200.0, 25_000.0, 1e9] {
        let mut ask = asking(amount, "DE");
        for answer in answers(&client, &ask).await {
            assert_eq!((&answer["record"], &answer["context_salt"]), (&Value::Null, &Value::Null));
        }
        ask["include_record"] = true.into();
        ask["client_nonce"] = NONCE.into();
        for answer in answers(&client, &ask).await {
            let record = checked(&answer, &ask["context"]);
            let request = &record["request"];
            assert_eq!(request["client_nonce"], NONCE, "{record:#}");
            assert!(request.get("include_record").is_none(), "{record:#}");
            assert_ne!(record["nonce"], NONCE, "the service draws its own");
            assert_eq!(record["verdict"]["reason_code"], answer["reason_code"]);
            assert_eq!(
                client.get_decision(answer["decision_id"].as_str().unwrap()).await.1["record"],
                record
            );
        }
    }
}

/// The repeated answer is the first one, with its record. A retry sends the nonce of its call.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repeated_answer_has_the_first_record() {
    let (_app, client, _) = demo().await;
    let ask = asking(1200.0, "DE").with("include_record", true).with("client_nonce", NONCE);
    let headers = [("idempotency-key", "once")];
    let call = async |ask: Value| client.call("POST", EVALUATE_DECISION, Some(ask), &headers).await;
    let first = call(ask.clone()).await.assert_status(200);
    checked(&first, &ask["context"]);
    assert_eq!(call(ask.clone()).await, (200, first));
    for (member, value) in
        [("client_nonce", json!("f".repeat(32))), ("include_record", json!(false))]
    {
        let mut other = ask.clone();
        other[member] = value;
        let (status, refused) = call(other).await;
        assert!(status == 409 || status == 422, "{member}: {status} {refused:#}");
    }
}

/// The nonce does not belong to the question: a held question stays one request for approval.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_nonce_is_the_same_question() {
    let (_app, client, _) = demo().await;
    let mut ids = Vec::new();
    for nonce in [json!(NONCE), json!("f".repeat(32)), Value::Null] {
        let (_, held) = client.evaluate(asking(25_000.0, "DE").with("client_nonce", nonce)).await;
        ids.push(held["approval_id"].as_str().unwrap().to_owned());
    }
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    let mut ask = asking(1200.0, "DE");
    for bad in [json!(NONCE.to_uppercase()), json!(&NONCE[1..]), json!(""), json!(7)] {
        ask["client_nonce"] = bad;
        let refused = client.evaluate(ask.clone()).await.assert_status(400);
        assert_eq!(refused["details"][0]["field"], "client_nonce", "{refused:#}");
    }
}
