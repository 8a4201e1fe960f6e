//! The cases that are specific to `rfc9421`.

use authority_webhook::signing::Suite::Rfc9421;
use serde_json::{Value, json};

use super::{MISREAD, TARGET, bad, good};
use crate::delivery::{Delivery, URL, body, signer};

pub(super) fn cases() -> Vec<Value> {
    let named = |what: &str| format!("rfc9421: {what}");
    let delivery = Delivery::signed(&[Rfc9421]);
    let input = delivery.get("signature-input");
    let signature = delivery.get("signature");
    let beside = delivery
        .clone()
        .set("signature-input", &format!("sig1=(\"date\");tag=\"a,svc=b\", {input}"))
        .set("signature", &format!("{signature},  sig1=:AAAA:"));
    let comma = delivery.clone().set("signature-input", &format!("{input},"));
    let valid = [
        good(&named("beside another signature"), &beside, &json!({})),
        good(&named("a comma without a member"), &comma, &json!({})),
        good(&named("the test's own signer"), &delivery.clone().signed_again("POST"), &json!({})),
    ];
    let refused = [by_others(), altered(), unreadable(), signed_otherwise()].concat();
    let refused = refused.iter().map(|(what, delivery, code)| bad(&named(what), delivery, code));
    let mentions = ["url", "content-type"];
    let charset = delivery.clone().set("content-type", "application/json; charset=utf-8");
    let misread = MISREAD.iter().map(|(what, url)| (*what, *url, &delivery));
    let misread = misread.chain([("a charset that a gateway added", URL, &charset)]);
    let misread =
        misread.map(|(what, url, sent)| sent.misread(&named(what), url, "signature", &mentions));
    valid.into_iter().chain(refused).chain(misread).collect()
}

type Case = (&'static str, Delivery, &'static str);

fn by_others() -> Vec<Case> {
    let by = |key| Delivery::signed_by(&[Rfc9421], &[], &key, URL, &body());
    let elsewhere = Delivery::signed_by(&[Rfc9421], &[], &signer("webhook", 1), TARGET, &body());
    vec![
        ("a key that is not published", by(signer("webhook", 3)), "unknown_key"),
        ("a key of another purpose", by(signer("evidence", 2)), "unknown_key"),
        ("for another URL", elsewhere, "signature"),
        ("by another method", Delivery::signed(&[Rfc9421]).signed_again("PUT"), "signature"),
    ]
}

/// Deliveries altered after signing.
fn altered() -> Vec<Case> {
    let set = |name: &str, value: &str| Delivery::signed(&[Rfc9421]).set(name, value);
    let replace =
        |name: &str, from: &str, to: &str| Delivery::signed(&[Rfc9421]).replace(name, from, to);
    let zeros = format!("svc=:{}==:", "A".repeat(86));
    let input = "signature-input";
    vec![
        ("another id", replace("webhook-id", "9a1b", "9a1c"), "signature"),
        ("another webhook-timestamp", set("webhook-timestamp", "1"), "signature"),
        ("another content type", set("content-type", "text/plain"), "signature"),
        ("another digest", replace("content-digest", "=:", "=:A"), "signature"),
        ("a later time", replace(input, "=1790000000", "=1790000001"), "signature"),
        ("a later expiry", replace(input, "=1790000300", "=1790000301"), "signature"),
        ("half a signature", set("signature", "svc=:AAAA:"), "signature"),
        ("a signature of zeros", set("signature", &zeros), "signature"),
    ]
}

fn unreadable() -> Vec<Case> {
    let delivery = || Delivery::signed(&[Rfc9421]);
    let input = delivery().get("signature-input").to_owned();
    let with_input = |value: String| delivery().set("signature-input", &value);
    let other_label =
        delivery().replace("signature-input", "svc=", "sig=").replace("signature", "svc=", "sig=");
    vec![
        ("another label", other_label, "malformed"),
        ("our label twice", with_input(format!("{input}, {input}")), "malformed"),
        ("a quote before our label", with_input(format!("\"{input}")), "malformed"),
        ("two headers", delivery().add("signature-input", &input), "malformed"),
        ("no signature", delivery().without("signature"), "malformed"),
        ("no digest", delivery().without("content-digest"), "malformed"),
        ("no content type", delivery().without("content-type"), "malformed"),
        ("a signature that is no base64", delivery().set("signature", "svc=:!:"), "malformed"),
        ("a signature without colons", delivery().replace("signature", ":", ""), "malformed"),
    ]
}

/// Deliveries signed with the service's key, but not in the form the service uses.
fn signed_otherwise() -> Vec<Case> {
    let signed = |from: &str, to: &str| {
        Delivery::signed(&[Rfc9421]).replace("signature-input", from, to).signed_again("POST")
    };
    vec![
        ("expired", signed("expires=1790000300", "expires=1790000004"), "time"),
        ("a signed old time", signed("created=1790000000", "created=1789999000"), "time"),
        ("the method not covered", signed("\"@method\" ", ""), "malformed"),
        ("the URL not covered", signed("\"@target-uri\" ", ""), "malformed"),
        ("the digest not covered", signed("\"content-digest\" ", ""), "malformed"),
        ("the content type not covered", signed("\"content-type\" ", ""), "malformed"),
        ("the id not covered", signed("\"webhook-id\" ", ""), "malformed"),
        ("the time not covered", signed(" \"webhook-timestamp\"", ""), "malformed"),
        ("another tag", signed("svc-webhook-v1", "svc-other-v1"), "malformed"),
        ("no tag", signed(";tag=\"svc-webhook-v1\"", ""), "malformed"),
        ("another algorithm", signed("ed25519", "hmac-sha256"), "malformed"),
        ("no expiry", signed(";expires=1790000300", ""), "malformed"),
    ]
}
