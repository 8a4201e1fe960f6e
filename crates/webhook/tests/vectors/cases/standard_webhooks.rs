//! The cases that are specific to `standard-webhooks/v1`.

use authority_webhook::signing::Suite::StandardWebhooks;
use serde_json::{Value, json};

use super::{bad, good};
use crate::delivery::{AT, Delivery, EVENT, URL, body, secret, signer};

pub(super) fn cases() -> Vec<Value> {
    let of = |seeds: &[u8]| {
        let secrets: Vec<_> = seeds.iter().map(|seed| secret(*seed)).collect();
        Delivery::signed_by(&[StandardWebhooks], &secrets, &signer("webhook", 1), URL, &body())
    };
    let secrets = |seeds: &[u8]| json!({"secrets": seeds.iter().map(|seed| secret(*seed).reveal()).collect::<Vec<_>>()});
    let delivery = of(&[1]);
    let named = |what: &str| format!("standard-webhooks/v1: {what}");
    let good =
        |what: &str, delivery: &Delivery, options: &Value| good(&named(what), delivery, options);
    let bad = |what: &str, delivery: Delivery, expect: &str| bad(&named(what), &delivery, expect);
    let code = delivery.get("webhook-signature").to_owned();
    let mut cases = vec![
        good("rotated at the service, the old secret here", &of(&[2, 1]), &secrets(&[1])),
        good("rotated at the service, the new secret here", &of(&[2, 1]), &secrets(&[2])),
        good("both secrets here", &delivery, &secrets(&[2, 1])),
        good(
            "a version that is not known",
            &delivery.clone().set("webhook-signature", &format!("v1a,!! {code}")),
            &json!({}),
        ),
        bad("another secret", of(&[3]), "signature"),
        bad("another id", delivery.clone().replace("webhook-id", "9a1b", "9a1c"), "signature"),
        bad("another time", delivery.clone().set("webhook-timestamp", "1790000001"), "signature"),
        bad(
            "a time with a sign",
            delivery.clone().set("webhook-timestamp", "+1790000000"),
            "malformed",
        ),
        bad(
            "a time with a fraction",
            delivery.clone().set("webhook-timestamp", "1790000000.0"),
            "malformed",
        ),
        bad("no time", delivery.clone().without("webhook-timestamp"), "malformed"),
        bad("no id", delivery.clone().without("webhook-id"), "malformed"),
        bad("two ids", delivery.clone().add("Webhook-Id", EVENT), "malformed"),
        bad(
            "an unknown version alone",
            delivery.clone().replace("webhook-signature", "v1,", "v2,"),
            "signature",
        ),
        bad("no version", delivery.clone().replace("webhook-signature", "v1,", ""), "signature"),
        bad("half a code", delivery.clone().set("webhook-signature", "v1,AAAA"), "signature"),
        bad("an empty code", delivery.clone().set("webhook-signature", "v1,"), "signature"),
        bad(
            "a code that is no base64",
            delivery.clone().set("webhook-signature", "v1,!"),
            "malformed",
        ),
    ];
    for (what, wrong) in [("without whsec_", "AAAA"), ("too short", "whsec_AAAA")] {
        let options = json!({"secrets": [wrong]});
        cases.push(delivery.case(
            &named(&format!("a secret {what}")),
            &options,
            AT,
            "configuration",
        ));
    }
    cases
}
