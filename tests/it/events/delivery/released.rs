//! Live deliveries, verified by released libraries that are independent of this service:
//! `standardwebhooks` (Rust, Python, JavaScript), `http-message-signatures` and `PyJWT` (Python),
//! `jose` (JavaScript). The receivers around them are `tests/features/receiver.py` and
//! `receiver.mjs`.

use std::process::Command;

use serde_json::{Value, json};

use super::{
    Endpoint, Receiver, World,
    libraries::{judged, tools},
    receiver::Received,
};

const SUITES: [&str; 3] = ["standard-webhooks/v1", "rfc9421", "jwt"];

struct Case {
    suite: &'static str,
    delivery: Received,
    body: String,
    url: String,
    secret: String,
    is_genuine: bool,
}

impl Case {
    fn as_json(&self, jwks: &Value) -> Value {
        json!({"suite": self.suite, "body": self.body, "headers": self.delivery.headers, "url": self.url,
               "secret": self.secret, "jwks": jwks})
    }

    /// Returns whether the Rust library accepts the case. It supports only the first suite.
    fn passes_in_rust(&self) -> bool {
        let mut headers = http::HeaderMap::new();
        for (name, value) in self.delivery.pairs() {
            let name: http::HeaderName = name.parse().unwrap();
            headers.insert(name, value.parse().unwrap());
        }
        let webhook = standardwebhooks::Webhook::new(&self.secret).unwrap();
        webhook.verify(self.body.as_bytes(), &headers).is_ok()
    }
}

/// Returns for each suite a valid delivery, one with a changed body, and one with another
/// receiver's URL. Only the first suite does not sign the URL and accepts the third case.
fn cases(received: &[Received], secret: &str, url: &str) -> Vec<Case> {
    let mut cases = Vec::new();
    for (delivery, suite) in received.iter().flat_map(|one| SUITES.map(|suite| (one, suite))) {
        let body = String::from_utf8(delivery.body.clone()).unwrap();
        let is_shared = suite == SUITES[0];
        for (body, url, is_genuine) in [
            (body.clone(), url.to_owned(), true),
            (body.replacen('{', "{ ", 1), url.to_owned(), false),
            (body, format!("{url}/another"), is_shared),
        ] {
            let (delivery, secret) = (delivery.clone(), secret.to_owned());
            cases.push(Case { suite, delivery, body, url, secret, is_genuine });
        }
    }
    cases
}

#[tokio::test]
async fn live_deliveries_are_genuine_for_released_libraries() {
    let (world, receiver) = (World::start().await, Receiver::start().await);
    let rotated =
        Endpoint { rotated: true, ..Endpoint::at(format!("{}/hooks?a=1", receiver.base)) };
    let made = world.endpoint(rotated).await;
    world.events(2).await;
    let received = receiver.wait_for(2).await;
    let jwks: Value = serde_json::from_str(&world.app.app.keys.jwks()).unwrap();
    for secret in &made.secrets {
        let cases = cases(&received, secret, &made.url);
        let judged_by = |suites: &[&str], command: &mut Command| {
            let cases: Vec<&Case> =
                cases.iter().filter(|case| suites.contains(&case.suite)).collect();
            let asked = cases.iter().map(|case| case.as_json(&jwks)).collect();
            let expected: Value = cases.iter().map(|case| case.is_genuine).collect();
            assert_eq!(judged(command, &asked), expected, "{command:?}");
        };
        let mut python = Command::new(tools().join("venv/bin/python"));
        judged_by(&SUITES, python.args(["-B", "receiver.py"]).current_dir(tools()));
        let mut node = Command::new("node");
        judged_by(&[SUITES[0], SUITES[2]], node.arg("receiver.mjs").current_dir(tools()));
        for case in cases.iter().filter(|case| case.suite == SUITES[0]) {
            assert_eq!(case.passes_in_rust(), case.is_genuine);
        }
    }
}
