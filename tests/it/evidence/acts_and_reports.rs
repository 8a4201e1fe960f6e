//! Checks acts and reports as EVIDENCE.md describes, using only the published keys.

use authority_crypto::{sha256, verify_with_jwk};
use authority_evidence::{digest_text, verify::KeySet};
use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use serde_json::{Value, json};

use super::{TENANT, asking, published, sealing};
use crate::support::{Answered, nothing, only};

fn jcs(value: &Value) -> Vec<u8> {
    serde_json_canonicalizer::to_vec(value).unwrap()
}

fn digest(value: &Value) -> String {
    digest_text(&sha256(&jcs(value)))
}

/// Checks that the text is the canonical form of these fields, and that it is signed.
#[track_caller]
fn check(text: &Value, members: &Value, kid: &Value, signature: &Value, keys: &KeySet) {
    assert_eq!(text.as_str().unwrap().as_bytes(), jcs(members), "{text}");
    verifies(text, kid, signature, keys);
}

/// Checks that the text is signed by a key of purpose `evidence`.
#[track_caller]
pub(crate) fn verifies(text: &Value, kid: &Value, signature: &Value, keys: &KeySet) {
    let (text, kid) = (text.as_str().unwrap(), kid.as_str().unwrap());
    let x = &keys[kid];
    let print = sha256(format!(r#"{{"crv":"Ed25519","kty":"OKP","x":"{x}"}}"#).as_bytes());
    let (purpose, fits) = kid.rsplit_once('-').unwrap();
    assert!(purpose.starts_with("svc-evidence-") && hex::encode(print).starts_with(fits), "{kid}");
    assert_eq!(URL_SAFE_NO_PAD.decode(x).unwrap().len(), 32);
    let jwk = json!({"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "x": x});
    let signature = STANDARD.decode(signature.as_str().unwrap()).unwrap();
    verify_with_jwk(&jwk, text.as_bytes(), &signature).unwrap();
    assert!(verify_with_jwk(&jwk, format!("{text} ").as_bytes(), &signature).is_err());
}

/// Returns the salted digest of a text; null without a salt.
pub(crate) fn salted(salt: &Value, text: &Value) -> Value {
    let Some(salt) = salt.as_str() else { return Value::Null };
    let salted = [STANDARD.decode(salt).unwrap(), jcs(text)].concat();
    digest_text(&sha256(&salted)).into()
}

/// Builds an act's canonical text as EVIDENCE.md defines it, from the fields that are shown next to
/// it.
pub(crate) fn act(act: &Value, about: &Value, question: &str) -> Value {
    assert_eq!(act["comment"].is_null(), act["comment_salt"].is_null(), "{act:#}");
    let mut members = json!({
        "kind": "svc.approval.act.v1", "about": about, "tenant_id": TENANT, "question": question,
        "by_digest": salted(&act["by_salt"], &act["by"]), "role": act["role"],
        "verdict": act["verdict"],
        "comment_digest": salted(&act["comment_salt"], &act["comment"]), "at": act["at"],
    });
    if act["self"] == true {
        members["self"] = true.into();
    }
    members
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acts_hold_what_the_page_says() {
    let (app, client) = sealing().await;
    let keys = published(&client).await;
    let ann = app.person(TENANT, "approver", "ann@example.org");
    let bob = app.person(TENANT, "legal", "bob@example.org");
    for (amount, acts) in [
        (
            25_000.0,
            vec![
                (&ann, "approve", only("comment", "checked")),
                (&bob, "withdraw", only("reason", "too late")),
            ],
        ),
        (26_000.0, vec![(&ann, "decline", only("reason", "n\u{e9}in \"\u{1f600}\""))]),
        (27_000.0, vec![(&bob, "approve", nothing())]),
    ] {
        let (_, held) = client.evaluate(asking(amount, "DE")).await;
        let id = held["approval_id"].as_str().unwrap();
        for (person, verb, body) in acts {
            person.act_on_approval(id, verb, body).await.assert_status(200);
        }
        let (_, shown) = ann.get_approval(id).await;
        let approval = &shown["approval"];
        let question = digest(&approval["request"]);
        assert_eq!(approval["request_digest"], question, "{approval:#}");
        for said in approval["acts"].as_array().unwrap() {
            let members = act(said, &approval["id"], &question);
            check(&said["record"], &members, &said["kid"], &said["signature"], &keys);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_standing_approval_signs_the_delegation_as_it_was() {
    let (app, client) = sealing().await;
    let keys = published(&client).await;
    let ann = app.person(TENANT, "approver", "ann@example.org");
    let (_, listed) = ann.list_delegations("").await;
    let mut was = listed["delegations"][0].clone();
    for member in ["standing", "updated_at", "created_by", "warnings", "line_id", "renewed_by"] {
        was.as_object_mut().unwrap().remove(member).unwrap();
    }
    for list in ["purposes", "jurisdictions", "resource_ids", "workspace_ids"] {
        if was[list].is_null() {
            was[list] = json!([]);
        }
    }
    let signed = ann
        .act_on_delegation(was["id"].as_str().unwrap(), "approve", only("comment", "all year"))
        .await
        .assert_status(200);
    let said = &signed["delegation"]["standing"][0];
    let members = act(said, &was["id"], &digest(&was));
    check(&said["record"], &members, &said["kid"], &said["signature"], &keys);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_report_holds_what_the_page_says() {
    let (_app, client) = sealing().await;
    let keys = published(&client).await;
    for body in
        [json!({"outcome": "executed", "detail": "reference 4711"}), only("outcome", "abandoned")]
    {
        let (_, allowed) = client.evaluate(asking(10.0, "DE")).await;
        let id = &allowed["decision_id"];
        let made = client.report_decision(id.as_str().unwrap(), body).await.assert_status(200);
        let said: Value = serde_json::from_str(made["record"].as_str().unwrap()).unwrap();
        let by = said["reported_by"].as_str().unwrap();
        assert!(by.starts_with("svc:api_key:"), "{by}");
        let members = json!({
            "kind": "svc.decision.report.v1", "decision_id": id, "tenant_id": TENANT,
            "record_digest": allowed["evidence_pack"]["record_digest"], "outcome": made["outcome"],
            "detail": made["detail"], "at": made["at"], "reported_by": by,
        });
        let signature = &made["signature"];
        check(&made["record"], &members, &signature["kid"], &signature["value"], &keys);
    }
}
