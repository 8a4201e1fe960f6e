//! Receipts that a tenant restricts to its users: only sessions of these users can read them, like
//! the users' tokens.

use super::{Console, browser::person};
use crate::support::{Answered, asking, new_tenant, only};

const VIEWER: (&str, &str) = ("viewer", "viewer@acme.example");

async fn decided(console: &Console) -> String {
    let decided = console.agent.evaluate(asking(1_200.0, "DE")).await.assert_status(200);
    decided["decision_id"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_reads_the_receipts_of_its_own_tenant_alone() {
    let console = Console::start().await;
    let id = decided(&console).await;
    let path = format!("/console/receipts/{id}");
    let mut viewer = console.browser();
    let page = viewer.sign_in(VIEWER.0, VIEWER.1, &path).await;
    // A public receipt has its own address.
    assert_eq!((page.status, page.path), (200, format!("/receipts/{}", id.replace(':', "%3A"))));
    let other = new_tenant("Other", "other");
    assert_eq!(console.app.owner().create_tenant(other).await.0, 201);
    let members = only("receipts", "members");
    assert_eq!(console.app.owner().update_tenant("acme", members).await.0, 200);

    let page = viewer.get(&path).await;
    assert_eq!((page.status, page.path.as_str()), (200, path.as_str()), "{}", page.text);
    page.shows("<h1>Allowed</h1>");
    // A user of the tenant can see names.
    page.shows("Head of finance");
    assert_eq!(page.headers["cache-control"], "no-store");
    let policy = page.headers["content-security-policy"].to_str().unwrap();
    assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"));
    let record = format!("./{id}/record.json");
    page.shows(&format!("href=\"{record}\""));
    let file = viewer.get(&format!("{path}/record.json")).await;
    assert_eq!((file.status, &file.text[..1]), (200, "{"));
    assert_eq!(file.headers["cache-control"], "no-store");

    // The receipt's own address does not accept a cookie. It links browsers to the console.
    let refused = viewer.get_with(&format!("/receipts/{id}"), "accept", "text/html").await;
    assert_eq!(refused.status, 401, "{}", refused.text);
    refused.shows(&format!("href=\"{path}\""));
    assert!(refused.headers["www-authenticate"].to_str().unwrap().starts_with("Bearer"));
    let refused = viewer.get_one(&format!("/receipts/{id}")).await;
    assert!(refused.status == 401 && !refused.text.contains("<html"), "{}", refused.text);

    // For users of another tenant the receipt does not exist. Without a session, the sign-in comes
    // first.
    let mut stranger = console.browser();
    let choice = stranger.get("/console").await;
    let mut form = person(&choice, "admin", "admin@other.example");
    form.last_mut().unwrap().1 = "svc:tenant:other".to_owned();
    stranger.post("/dev-idp/authorize", &form).await;
    for path in [path.clone(), format!("{path}/record.json"), format!("{path}/pack.json")] {
        let page = stranger.get_one(&path).await;
        assert_eq!(page.status, 404, "{path}: {}", page.text);
        let nobody = console.browser().get_one(&path).await;
        assert_eq!(nobody.status, 303, "{path}");
        assert!(nobody.headers["location"].to_str().unwrap().starts_with("/console/sign-in?to="));
    }
    // The owner of the installation can read every receipt.
    let mut owner = console.signed_in(("owner", "operator@localhost")).await;
    assert_eq!(owner.get_one(&path).await.status, 200);
}
