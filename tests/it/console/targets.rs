//! The targets of a policy: changes are tried first, and targets that match no action are reported.

use serde_json::json;

use super::{
    Console,
    policies::{ALL, owner, policy, written},
    records::links,
};
use crate::support::{Answered, asking};

/// The address of a target.
const ROW: &str = "/console/records/applies-to/svc[^\"]*";

/// A policy with a misspelt target has no effect, but looks harmless.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_misspelt_target_is_named_before_the_policy_is_in_force() {
    let console = Console::start().await;
    console.held(25_000.0).await;
    let draft = json!({"tenant_id": "svc:tenant:acme", "regime": "internal", "name": "No payments",
                       "state": "draft", "cedar": ALL, "applies_to": ["action:paymnt.execute"]});
    let made = console.app.owner().create_policy(draft).await.assert_status(201);
    let id = made["policy"]["id"].as_str().unwrap();
    let path = format!("/console/policies/{id}");
    let mut owner = owner(&console).await;
    let rows = owner.get(&format!("/console/records/applies-to?m.policy_id={id}")).await;
    let row = links(&rows, ROW).concat();
    for path in [path.clone(), format!("{path}/activate?version=1"), row] {
        owner.get(&path).await.shows("has `paymnt.execute`. Did you mean `payment.execute`?");
    }
}

/// Each target names its policy. Deleting the last target warns that the policy then applies
/// everywhere.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_policy_covers_without_its_last_target_is_said() {
    let console = Console::start().await;
    let mut owner = owner(&console).await;
    let draft = json!({"tenant_id": "svc:tenant:acme", "regime": "internal", "name": "No payments",
                       "cedar": ALL, "applies_to": ["action:payment.execute"]});
    let (_, made) = console.app.owner().create_policy(draft).await;
    let id = made["policy"]["id"].as_str().unwrap();
    let list = format!("/console/records/applies-to?m.policy_id={id}");
    let page = owner.get(&list).await;
    page.shows(">No payments · action:payment.execute</a>");
    let create =
        format!("/console/records/applies-to/new/create?m.policy_id={}", id.replace(':', "%3A"));
    page.shows(&format!("href=\"{create}\""));
    let page = owner.get(&create).await;
    page.shows(&format!("name=\"m.policy_id\" value=\"{id}\""));
    let mut form = page.form("/console/records/applies-to/new/create");
    for (name, value) in [("m.policy_id", id), ("m.target_class", "purpose:invoice-setlement")] {
        form.push((name.to_owned(), value.to_owned()));
    }
    let made = owner.post("/console/records/applies-to/new/create", &form).await;
    made.shows("<h1 class=\"name\">No payments · purpose:invoice-setlement</h1>");
    made.shows("No purpose of the tenant is called `invoice-setlement`. Did you mean");
    let delete = format!("{}/delete", made.path.split('?').next().unwrap());
    let page = owner.get(&delete).await;
    page.shows("The policy “No payments” then applies only to action:payment.execute, while it is in effect.");
    let form = page.form_with(&delete, "name", "delete");
    owner.post(&delete, &form).await.shows("Deleted");
    let row = links(&owner.get(&list).await, ROW);
    owner.get(&format!("{}/delete", row[0])).await.shows(
        "It is the last target of the policy “No payments”. Without a target, the policy applies to every action, while it is in effect.",
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn targets_are_tried_before_they_are_changed() {
    let console = Console::start().await;
    console.held(25_000.0).await;
    let mut owner = owner(&console).await;
    let id = written(&console, &mut owner, ALL).await;
    let path = format!("/console/policies/{id}");
    let (scope, activate) = (format!("{path}/scope"), format!("{path}/activate"));
    owner.get(&scope).await.shows("Its effect cannot be tried.");
    let page = owner.get(&format!("{activate}?version=1")).await;
    let form = page.form_with(&activate.replace(':', "%3A"), "reason", "Agreed.");
    owner.post(&activate, &form).await.shows("The text is in force.");
    let (_, refused) = console.agent.evaluate(asking(25_000.0, "DE")).await;
    assert_eq!(refused["decision"], "deny", "{refused:#}");

    owner.get(&path).await.shows("/scope\">Try other targets, or without it…</a>");
    let page = owner.get(&scope).await;
    page.shows("It applies to every action.");
    page.shows("with no end");
    let tried = |targets: &str, act: &str| {
        let mut form = page.form(&scope.replace(':', "%3A"));
        form.push(("targets".to_owned(), targets.to_owned()));
        form.push(("do".to_owned(), act.to_owned()));
        form
    };
    let changes = |count: u32| {
        format!(
            "Of the last <strong>2</strong> decisions, <strong>{count}</strong> would be decided differently than by the policies in force now."
        )
    };
    // The first request was held before the policy existed. The active policy denies both requests.
    let page = owner.post(&scope, &tried("", "targets")).await;
    page.shows(&changes(0));
    let page = owner.post(&scope, &tried("action:report.*\r\naction:mail.*", "targets")).await;
    page.shows(&changes(2));
    page.shows("<strong class=\"verdict denied\">denied</strong>");
    page.shows("action:report.*\naction:mail.*</textarea>");
    let page = owner.post(&scope, &tried("", "without")).await;
    page.shows(&changes(2));
    let page = owner.post(&scope, &tried("moon", "targets")).await;
    assert_eq!(page.status, 400, "{}", page.text);
    page.shows("role=\"alert\"");
    page.shows("targets: `moon` is not a target");
    let page = owner.post(&scope, &tried("action:paymnt.execute", "targets")).await;
    page.shows("has `paymnt.execute`. Did you mean `payment.execute`?");
    assert_eq!(policy(&console, &id).await["applies_to"], json!([]));
}
