//! The deliveries of the table.

mod jwt;
mod message_signature;
mod standard_webhooks;

use authority_webhook::signing::Suite::{self, Jwt, Rfc9421, StandardWebhooks};
use serde_json::{Value, json};

use crate::delivery::{AT, Delivery, EVENT, TENANT, URL, body, published, secret, signer};

/// The whole table.
pub(crate) fn table() -> Value {
    let keys = [signer("webhook", 1), signer("evidence", 2)];
    let all =
        [common(), standard_webhooks::cases(), message_signature::cases(), jwt::cases()].concat();
    json!({
        "about": "Each delivery is judged at `now` with `options`, and the case's own laid over them: \
                  `valid`, or the code of the error, whose message contains each of `mentions`. Made by crates/webhook/tests/vectors.",
        "options": {
            "jwks": {"keys": keys.each_ref().map(published)},
            "secrets": [secret(1).reveal()],
            "accept": null, "url": URL, "tolerance": null, "tenant_id": TENANT,
        },
        "cases": all,
    })
}

fn good(name: &str, delivery: &Delivery, options: &Value) -> Value {
    delivery.case(name, options, AT + 5, "valid")
}

fn bad(name: &str, delivery: &Delivery, expect: &str) -> Value {
    delivery.case(name, &json!({}), AT + 5, expect)
}

/// URLs that differ from the endpoint's, as a receiver may configure them by mistake.
const MISREAD: [(&str, &str); 5] = [
    ("url with a final slash", "https://example.com/hooks/"),
    ("url with http", "http://example.com/hooks"),
    ("url with the proxy's host", "https://hooks.internal/hooks"),
    ("url with the host in capitals", "https://Example.com/hooks"),
    ("url with a port", "https://example.com:443/hooks"),
];

const TARGET: &str = "https://example.org/hooks";

/// The cases that are the same for every suite.
fn common() -> Vec<Value> {
    let mut cases = Vec::new();
    for (suite, digest) in [(StandardWebhooks, "signature"), (Rfc9421, "digest"), (Jwt, "digest")] {
        let name = |what: &str| format!("{suite}: {what}");
        let delivery = Delivery::signed(&[suite]);
        let accept = json!({"accept": [suite.as_str()]});
        let case = |what: &str, delivery: &Delivery, options: &Value, now: u64, expect: &str| {
            delivery.case(&name(what), options, now, expect)
        };
        let none = json!({});
        let upper = |(name, value): &(String, String)| (name.to_uppercase(), format!(" {value}\t"));
        let shouted =
            Delivery { headers: delivery.headers.iter().map(upper).collect(), ..delivery.clone() };
        let signed = |body: &str| {
            Delivery::signed_by(&[suite], &[secret(1)], &signer("webhook", 1), URL, body)
        };
        let other_event = body().replace(EVENT, "svc:event:0198c0ffee017c4f8a2d5b6e7f809a1c");
        let id_number = body().replace(&format!("\"{EVENT}\""), "7");
        cases.extend([
            case("signed", &delivery, &none, AT, "valid"),
            case("and named in accept", &delivery, &accept, AT, "valid"),
            case("upper-case header names, space around values", &shouted, &none, AT, "valid"),
            case("300 seconds old", &delivery, &none, AT + 300, "valid"),
            case("300 seconds ahead", &delivery, &none, AT - 300, "valid"),
            case("301 seconds old", &delivery, &none, AT + 301, "time"),
            case("301 seconds ahead", &delivery, &none, AT - 301, "time"),
            case("older than a tolerance", &delivery, &json!({"tolerance": 10}), AT + 11, "time"),
            case("as old as a tolerance", &delivery, &json!({"tolerance": 10}), AT + 10, "valid"),
            case("no tolerance", &delivery, &json!({"tolerance": 0}), AT + 1, "time"),
            case("no tolerance, at once", &delivery, &json!({"tolerance": 0}), AT, "valid"),
            case(
                "another body",
                &delivery.clone().body(&body().replace(":7", ":8")),
                &none,
                AT,
                digest,
            ),
            case(
                "the body written again",
                &delivery.clone().body(&(body() + "\n")),
                &none,
                AT,
                digest,
            ),
            case("an empty body", &delivery.clone().body(""), &none, AT, digest),
            case(
                "another tenant's",
                &delivery,
                &json!({"tenant_id": "svc:tenant:other"}),
                AT,
                "tenant_id",
            ),
            case(
                "a body without a tenant",
                &signed(&body().replace("tenant_id", "tenant")),
                &none,
                AT,
                "tenant_id",
            ),
            case("the signature of another event", &signed(&other_event), &none, AT, "event_id"),
            case("an event_id that is no text", &signed(&id_number), &none, AT, "event_id"),
            case("a signed body that is no object", &signed("[]"), &none, AT, "envelope"),
            case("a signed body that is no JSON", &signed("{"), &none, AT, "envelope"),
            case("no url", &delivery, &json!({"url": ""}), AT, "configuration"),
            case("no tenant_id", &delivery, &json!({"tenant_id": ""}), AT, "configuration"),
            case("no keys", &delivery, &json!({"jwks": null, "secrets": []}), AT, "configuration"),
        ]);
    }
    cases.extend(choices());
    cases
}

/// Cases with several suites: which of them decides.
fn choices() -> Vec<Value> {
    let all = Delivery::signed(&Suite::ALL);
    let other = body().replace(":7", ":8");
    let other = Delivery::signed_by(&Suite::ALL, &[secret(1)], &signer("webhook", 1), URL, &other);
    // The signature of another body.
    let broken = |name: &str| all.clone().set(name, other.get(name));
    let accept = |names: &[&str]| json!({"accept": names});
    let at = |name: &str, delivery: &Delivery, options: Value, expect: &str| {
        delivery.case(name, &options, AT, expect)
    };
    vec![
        at("all suites", &all, json!({}), "valid"),
        at("all suites, a secret alone", &all, json!({"jwks": null}), "valid"),
        at("all suites, a JWKS alone", &all, json!({"secrets": []}), "valid"),
        at("rfc9421 comes before a broken jwt", &broken("webhook-jwt"), json!({}), "valid"),
        at("accept decides the order", &broken("signature"), accept(&["jwt", "rfc9421"]), "valid"),
        at("no fallback from rfc9421", &broken("signature"), json!({}), "signature"),
        at(
            "no fallback from a jwt",
            &all.clone().set("webhook-jwt", "a"),
            accept(&["jwt", "rfc9421"]),
            "malformed",
        ),
        at(
            "no fallback from a secret",
            &broken("webhook-signature"),
            accept(&["standard-webhooks/v1", "jwt"]),
            "signature",
        ),
        at(
            "an absent suite is passed over",
            &Delivery::signed(&[Jwt]),
            accept(&["rfc9421", "jwt"]),
            "valid",
        ),
        at("not accepted", &Delivery::signed(&[Jwt]), accept(&["rfc9421"]), "no_signature"),
        at("not signed", &Delivery::signed(&[]), json!({}), "no_signature"),
        at(
            "signed with a secret, a JWKS alone",
            &Delivery::signed(&[StandardWebhooks]),
            json!({"secrets": []}),
            "no_signature",
        ),
        at(
            "accept without its keys",
            &all,
            json!({"jwks": null, "accept": ["jwt"]}),
            "configuration",
        ),
        at(
            "accept without its secret",
            &all,
            json!({"secrets": [], "accept": ["standard-webhooks/v1"]}),
            "configuration",
        ),
    ]
}
