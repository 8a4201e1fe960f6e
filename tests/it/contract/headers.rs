//! Operations accept and return exactly the headers that the document declares for them.

use std::collections::BTreeSet;

use agent_authority::routes::ROUTES;
use reqwest::{Response, header::HeaderMap};
use serde_json::Value;

use super::{
    document,
    examples::{Example, World, examples},
};
use crate::support::TestApp;

/// POST operations that take no idempotency key, each with the reason.
const UNKEYED: [(&str, &str); 5] = [
    ("AuthorityService/AdmitPurpose", "evaluates without a record"),
    ("DecisionService/ImpactPolicies", "reads decisions and evaluates policies on them"),
    ("DecisionService/SimulateDecision", "decides without a record"),
    ("PersonalDataService/ExportPersonalData", "reads"),
    ("PolicyService/ValidatePolicy", "reads a text"),
];

/// The document's declaration of an operation.
struct Declared<'a>(&'a Value);

impl Declared<'_> {
    fn takes(&self, name: &str) -> bool {
        let reference = format!("#/components/parameters/{name}");
        let parameters = self.0["parameters"].as_array().into_iter().flatten();
        parameters.into_iter().any(|one| one["$ref"] == *reference)
    }

    #[track_caller]
    fn gives(&self, name: &str) -> bool {
        let responses = self.0["responses"].as_object().unwrap();
        let success = responses.iter().find(|(status, _)| status.starts_with('2'));
        success.is_some_and(|(_, success)| success["headers"].get(name).is_some())
    }
}

#[tokio::test]
async fn every_post_with_an_effect_declares_an_idempotency_key() {
    let whole = document(TestApp::shared().await).await;
    let mut unkeyed = BTreeSet::new();
    for route in ROUTES.iter().filter(|route| route.method == "POST") {
        let declared = Declared(&whole["paths"][route.path]["post"]);
        assert!(declared.0.is_object(), "{}", route.path);
        let takes = declared.takes("IdempotencyKey");
        assert_eq!(declared.gives("Idempotency-Replayed"), takes, "{}", route.path);
        if !takes {
            unkeyed.insert(route.rpc);
        }
    }
    let short = |rpc: &&str| rpc.rsplit('.').next().unwrap().to_owned();
    let unkeyed: BTreeSet<_> = unkeyed.iter().map(short).collect();
    let excepted: BTreeSet<_> = UNKEYED.iter().map(|(method, _)| (*method).to_owned()).collect();
    assert_eq!(unkeyed, excepted);
}

/// The response to an example's call.
struct Sent {
    status: u16,
    headers: HeaderMap,
    body: Value,
}

impl Sent {
    async fn of(response: Response) -> Self {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Self { status, headers, body: response.json().await.unwrap_or_default() }
    }

    fn gives(&self, name: &str) -> bool {
        self.headers.contains_key(name)
    }
}

/// Sends each example with another version's entity tag, and then twice with the same idempotency
/// key.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn operations_take_and_give_the_headers_that_they_declare() {
    let mut world = World::start().await;
    let whole = document(&world.app).await;
    let mut faults = Vec::new();
    for (place, example) in examples(&whole).iter().enumerate() {
        let declared = Declared(&whole["paths"][&example.path][example.method.to_lowercase()]);
        let told = faults_of(&mut world, example, &declared, &format!("r-{place}")).await;
        let about = |fault| format!("{} {}: {fault}", example.method, example.path);
        faults.extend(told.into_iter().map(about));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

async fn faults_of(
    world: &mut World,
    example: &Example,
    declared: &Declared<'_>,
    id: &str,
) -> Vec<String> {
    let mut faults = Vec::new();
    let (path, body) = world.ready(example).await;
    let client = world.client(&example.path);
    let send = async |headers: &[(&str, &str)]| {
        let method = example.method.parse().unwrap();
        let request = client.http.request(method, format!("{}{path}", client.base));
        let request = request.bearer_auth(&client.token).header("x-request-id", id).json(&body);
        let request =
            headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        Sent::of(request.send().await.unwrap()).await
    };
    let other_version = ("if-match", "\"0\"");
    let takes_version = declared.takes("IfMatch");
    if takes_version {
        let refused = send(&[other_version]).await;
        if refused.status != 412 {
            faults.push(format!("If-Match: {} {}", refused.status, refused.body));
        }
    }
    // An operation that does not declare `If-Match` ignores it.
    let ignored = [other_version];
    let others: &[_] = if takes_version { &[] } else { &ignored };
    let key = [&[("idempotency-key", id)], others].concat();
    let first = send(&key).await;
    if first.status != example.status {
        return vec![format!("{} {}", first.status, first.body)];
    }
    if first.gives("idempotency-replayed") {
        faults.push("the first answer is marked as a repeated one".to_owned());
    }
    if first.gives("etag") != declared.gives("ETag") {
        faults.push(format!("ETag: given {}", first.gives("etag")));
    }
    if first.headers.get("x-request-id").is_none_or(|echo| echo != id) {
        faults.push("X-Request-Id is not echoed".to_owned());
    }
    if declared.takes("IdempotencyKey") {
        let again = send(&key).await;
        if again.headers.get("idempotency-replayed").is_none_or(|value| value != "true") {
            faults.push(format!("is not marked: {} {}", again.status, again.body));
        }
        if (again.status, &again.body) != (first.status, &first.body) {
            faults.push(format!("{} and then {}", first.body, again.body));
        }
        if again.headers.get("etag") != first.headers.get("etag") {
            faults.push("another ETag".to_owned());
        }
    }
    world.settle(example, &first.body);
    faults
}

/// A request id of the documented form is echoed; any other is replaced.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_id_is_echoed_up_to_its_documented_length() {
    let app = TestApp::start().await;
    let whole = document(&app).await;
    let most = whole["components"]["parameters"]["RequestId"]["schema"]["maxLength"].as_u64();
    let most = usize::try_from(most.unwrap()).unwrap();
    let (longest, longer) = ("x".repeat(most), "x".repeat(most + 1));
    let cases = [("", false), ("two words", false), (&longest, true), (&longer, false)];
    for (sent, echoed) in cases {
        let request = app.client("").http.get(format!("{}/health", app.base_url()));
        let answer = request.header("x-request-id", sent).send().await.unwrap();
        assert_eq!(answer.status(), 200);
        let id = answer.headers()["x-request-id"].to_str().unwrap();
        assert_eq!(id == sent, echoed, "{sent}: {id}");
        assert!(!id.is_empty());
    }
}
