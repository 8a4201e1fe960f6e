//! A role sees exactly the operations that the API's rules permit.

use authority_model::access::RULES;

use super::Console;
use crate::support::{Answered, Members, new_tenant};

const LIST: &str = "/authority.approval.v1.ApprovalService/ListApprovals";
/// The links in the header, each with the operation that it needs.
const SECTIONS: [(&str, &str); 3] = [
    ("/console/approvals", LIST),
    ("/console/decisions", "/authority.runtime.v1.DecisionService/ListDecisions"),
    ("/console/stop", "/authority.registry.v1.StopSignalService/ListStopSignals"),
];
const APPROVE: &str = "/authority.approval.v1.ApprovalService/ApproveApproval";

fn opens(rpc: &str, role: &str) -> bool {
    let (_, bindings) = RULES.iter().find(|(known, _)| *known == rpc).unwrap();
    bindings.iter().any(|binding| binding.access.member || binding.access.roles.contains(&role))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_role_sees_and_does_what_the_api_lets_it() {
    let console = Console::start().await;
    let id = console.held(25_000.0).await;
    for role in ["admin", "approver", "legal", "auditor", "member", "viewer"] {
        let mut browser = console.browser();
        let email = format!("{role}@acme.example");
        let page = browser.sign_in(role, &email, "/console").await;
        assert_eq!(page.status, 200, "{role}: {}", page.text);
        let expected = if opens(LIST, role) { 200 } else { 403 };
        assert_eq!(browser.get("/console/approvals").await.status, expected, "{role}");
        for (path, needed) in SECTIONS {
            let is_linked = page.text.contains(&format!("href=\"{path}\""));
            assert_eq!(is_linked, opens(needed, role), "{role} {path}");
        }
        let page = browser.get(&format!("/console/approvals/{id}")).await;
        assert_eq!(page.text.contains("data-key=\"a\""), opens(APPROVE, role), "{role}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_tenants_request_does_not_exist() {
    let console = Console::start().await;
    let id = console.held(25_000.0).await;
    let body = new_tenant("Other", "other").with("owner_email", "o@other.example");
    console.app.owner().create_tenant(body).await.assert_status(201);
    let mut browser = console.browser();
    let choice = browser.get("/console").await;
    let mut form = super::browser::person(&choice, "admin", "admin@other.example");
    form.last_mut().unwrap().1 = "svc:tenant:other".to_owned();
    browser.post("/dev-idp/authorize", &form).await;
    browser.get("/console/approvals").await.shows("No waiting requests");
    assert_eq!(browser.get(&format!("/console/approvals/{id}")).await.status, 404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_owner_chooses_a_tenant_under_a_new_cookie() {
    let console = Console::start().await;
    console.held(25_000.0).await;
    let mut browser = console.signed_in(("owner", "operator@localhost")).await;
    let before = browser.clone();
    let page = browser.get("/console/tenant").await;
    let form = page.form_with("/console/tenant", "tenant_id", "svc:tenant:acme");
    browser.post("/console/tenant", &form).await.shows("<span class=\"tenant\">acme</span>");
    browser.get("/console/approvals").await.shows("invoice-bot");
    // An unknown tenant has no effect. An empty console would look like a tenant without records.
    let page = browser.get("/console/tenant").await;
    let form = page.form_with("/console/tenant", "tenant_id", "svc:tenant:nowhere");
    let refused = browser.post("/console/tenant", &form).await;
    assert_eq!(refused.status, 404, "{}", refused.text);
    refused.shows("this tenant does not exist");
    browser.get("/console/approvals").await.shows("invoice-bot");
    assert_ne!(browser.cookies["session"], before.cookies["session"]);
    assert_eq!(before.clone().get_one("/console/approvals").await.status, 303);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owner_is_told_whose_request_it_is() {
    let console = Console::start().await;
    let id = console.held(25_000.0).await;
    let path = format!("/console/approvals/{id}");
    let mut owner = console.signed_in(("owner", "operator@localhost")).await;
    for page in ["/console/approvals", &path, &format!("{path}/approve")] {
        owner.get(page).await.shows("tenant acme");
    }
    // Users of the tenant do not need this label.
    let mut approver = console.signed_in(super::APPROVER).await;
    let page = approver.get(&path).await;
    assert!(!page.text.contains("tenant acme</span>"), "{}", page.text);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_address_asks_for_in_vain_is_said() {
    let console = Console::start().await;
    let mut owner = console.signed_in(("owner", "operator@localhost")).await;
    let page = owner.get("/console/records").await;
    page.shows("Everything that decisions are made from.");
    let page = owner.get("/console/records/tools?decision=deny&m.state=active").await;
    page.shows("This list is not filtered by <code>decision</code>.");
    let page = owner.get("/console/records/tools?m.state=active&page=").await;
    assert!(!page.text.contains("is not filtered by"), "{}", page.text);
    // A browser gets a page for an unknown address, and a program gets the usual error.
    let browsers = "text/html,application/xhtml+xml,*/*;q=0.8";
    for path in ["/console/nothing", "/console/approvals/a/b/c", "/console/records/tools/a/b/c"] {
        let page = owner.get_with(path, "accept", browsers).await;
        assert_eq!(page.status, 404, "{path}");
        page.shows("This address has no page.");
        page.shows("operator@localhost");
        let program = owner.get_one(path).await;
        assert_eq!((program.status, &program.text[..1]), (404, "{"), "{path}");
        let stranger = console.browser().get_with(path, "accept", browsers).await;
        assert_eq!(stranger.status, 404, "{path}");
        stranger.shows("This address has no page.");
    }
    // If a role lacks the permission, the page names the roles that have it.
    let mut approver = console.signed_in(super::APPROVER).await;
    let page = approver.get("/console/records").await;
    page.shows("The records that decisions are made from, as far as your role may read them: ");
    page.shows("made by the owner of the installation.");
    let refused = approver.get("/console/records/principals/new/create").await;
    assert_eq!(refused.status, 403, "{}", refused.text);
    refused.shows(
        "you are approver@acme.example, approver, and may not do this. It is open to a tenant&#39;s admin",
    );
    let refused = approver.get("/console/records/api-keys").await;
    assert_eq!(refused.status, 403, "{}", refused.text);
    refused.shows("; it is open to a tenant&#39;s admin, and the owner of the installation");
}
