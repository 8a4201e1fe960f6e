//! Schemas of tools' input are sealed with a decision. A replay checks the input against them.

use serde_json::{Value, json};

use super::{asking, bundle, check, decided, sealed, sealing};
use crate::support::{Answered, Members, Plain, new_tool};
use authority_evidence::verify::{Valid, sealed_in};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_decision_is_decided_again_by_the_schema_of_then() {
    let (app, client) = sealing().await;
    let schema = json!({"type": "object", "properties": {"amount": {"maximum": 1000.5}}, "required": ["amount"]});
    let tool = new_tool("wires", "wire()", &["payment.execute"]).with("input_schema", &schema);
    let made = app.owner().create_tool(tool).await.assert_status(201);
    let (allowed, denied) = (
        decided(&client, asking(1000.0, "DE")).await,
        decided(&client, asking(1200.0, "DE")).await,
    );
    app.owner()
        .update_tool(
            made["tool"]["id"].as_str().unwrap(),
            json!({"input_schema": {"type": "object", "required": ["iban"]}}),
        )
        .await;
    for (id, reason) in [(&allowed, "permission_granted"), (&denied, "context_invalid")] {
        sealed(&client, id).await;
        let file = bundle(&client, id).await;
        assert!(
            matches!(check(&file, None), Ok(Valid::IssuerNotPinned(_))),
            "{:?}",
            check(&file, None)
        );
        let again = sealed_in(file.as_bytes()).unwrap().decide_again().unwrap();
        assert_eq!(again.verdict.reason_code.word(), reason);
        let body = json!({"decision_id": id, "mode": "historical_state_snapshot"});
        let (status, proof) = client.mint_replay_proof(body).await;
        assert_eq!((status, proof["result"].text()), (200, "match"), "{proof:#}");
        // A bundle with a missing or a different schema no longer matches its seal.
        let mut bundle: Value = serde_json::from_str(&file).unwrap();
        let blobs = bundle["blobs"].as_array_mut().unwrap();
        let place = blobs
            .iter()
            .position(|blob| blob["text"].as_str().is_some_and(|text| text.contains("1000.5")));
        let place = place.expect("the schema is a text blob");
        blobs[place]["text"] =
            blobs[place]["text"].as_str().unwrap().replace("1000.5", "9999").into();
        assert!(check(&bundle.to_string(), None).is_err());
        bundle["blobs"].as_array_mut().unwrap().remove(place);
        assert!(check(&bundle.to_string(), None).is_err());
    }
    let present = json!({"decision_id": allowed, "mode": "current_state"});
    let (_, proof) = client.mint_replay_proof(present).await;
    assert_eq!(proof["result"], "mismatch", "{proof:#}");
}
