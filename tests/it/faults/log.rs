//! The log at its most verbose: what happened, and nothing that is secret.

use serde_json::json;

use super::process::{Folder, Service, allowed};
use crate::support::Client;

const SECRET: &str = "marker-5be1c09a";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_names_what_happens_and_holds_no_context_token_or_key() {
    let folder = Folder::new("log");
    let mut service = Service::logging("trace", &folder);
    let mut body = allowed();
    body["context"]["note"] = json!(SECRET);
    let (status, decided) = service.client.post("/api/v1/runtime/evaluate", body).await;
    assert_eq!((status, &decided["decision"]), (200, &json!("allow")), "{decided}");
    let forger = Client::new(&service.client.base, &format!("svc_{SECRET}"));
    let forged = forger.post("/api/v1/runtime/evaluate", allowed()).await;
    assert_eq!(forged.0, 401);
    service.stop();

    let log = service.logged();
    assert!(log.contains("\"message\":\"decided\""), "decisions are not logged");
    assert!(log.contains(decided["decision_id"].as_str().unwrap()));
    assert!(!log.contains(SECRET), "{}", log.lines().find(|line| line.contains(SECRET)).unwrap());
    let key = service.client.token.rsplit('_').nth(1).unwrap();
    assert!(!log.contains(key), "the secret of an API key is in the log");
}
