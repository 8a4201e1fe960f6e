//! What stays the installation's owner's: people, other tenants' records, and changes that would let
//! agents do more.

use serde_json::{Value, json};

use super::{Acme, OTHER, TENANT, id, refused};
use crate::support::{
    Answered, Members, Plain, new_agent, new_delegation, new_principal, new_purpose, nothing, only,
};

async fn agent(acme: &Acme, name: &str) -> String {
    let body = new_agent(name);
    id(&acme.by_ann("principals", body).await)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_admin_creates_and_changes_agents_alone() {
    let acme = Acme::start().await;
    let path = "/api/v1/app/principals";
    for class in ["human", "system", "external_app"] {
        let body = json!({"tenant_id": TENANT, "principal_class": class, "display_name": "X"});
        refused(acme.ann.post(path, body).await, 403, "forbidden", "that are not agents");
    }
    // A token is matched with these: an agent must not be taken for a person.
    for (member, value) in
        [("email", "bob@acme.example"), ("external_subject", "dev|bob@acme.example")]
    {
        let body = json!({"tenant_id": TENANT, "principal_class": "agent", "display_name": "X",
            member: value});
        refused(acme.ann.post(path, body).await, 403, "forbidden", member);
    }
    let body = new_principal("agent", "X").with("state", "suspended");
    refused(acme.ann.post(path, body).await, 403, "forbidden", "state");
    let boss = acme.person("boss@acme.example").await;
    let bot = agent(&acme, "bot").await;
    let one = format!("{path}/{bot}");
    // The owner of an agent may not approve its requests: who owns it is not for an admin to change.
    for change in [
        only("state", "suspended"),
        only("owner_principal_id", &boss),
        only("email", "x@acme.example"),
        only("model_id", "svc:ent:acme:model:x"),
    ] {
        refused(acme.ann.patch(&one, change).await, 403, "forbidden", "owner changes");
    }
    let of_person = format!("{path}/{boss}");
    let change = only("display_name", "Somebody");
    refused(acme.ann.patch(&of_person, change).await, 403, "forbidden", "that are not agents");
    let (_, kept) = acme.app.owner().get_principal(&boss).await;
    assert_eq!(kept["principal"]["display_name"], "boss@acme.example");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_tenants_record_is_unknown() {
    let acme = Acme::start().await;
    let workspace = json!({"tenant_id": OTHER, "name": "W", "slug": "w"});
    let workspace = id(&acme.made("workspaces", workspace).await);
    let person = new_principal("human", "P").with("tenant_id", OTHER);
    let person = id(&acme.made("principals", person).await);
    for (path, body, member) in [
        (
            "principals",
            json!({"principal_class": "agent", "display_name": "X", "owner_principal_id": person}),
            "owner_principal_id",
        ),
        ("teams", json!({"name": "T", "workspace_id": workspace}), "workspace_id"),
        (
            "resources",
            json!({"kind": "ledger", "name": "L", "owner_principal_id": person}),
            "owner_principal_id",
        ),
        (
            "tools",
            json!({"name": "T", "function_signature": "t()", "workspace_id": workspace}),
            "workspace_id",
        ),
    ] {
        let body = body.with("tenant_id", TENANT);
        let answer = acme.ann.post(&format!("/api/v1/app/{path}"), body).await;
        refused(answer, 400, "invalid_request", member);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_bounds_of_a_purpose_stay() {
    let acme = Acme::start().await;
    let purpose = new_purpose("travel", "Travel", &["travel.*"]);
    let one = format!("/api/v1/app/purposes/{}", id(&acme.by_ann("purposes", purpose).await));
    // A policy may rely on them, even if no delegation does.
    for change in [
        only("allowed_actions", ["*"]),
        only("principal_classes", ["agent"]),
        only("jurisdictions", ["DE"]),
        only("expires_at", "2040-01-01T00:00:00Z"),
    ] {
        refused(acme.ann.patch(&one, change).await, 403, "forbidden", "owner changes");
    }
    acme.ann.patch(&one, only("name", "Journeys")).await.assert_status(200);
    let owned = one.replace("/app", "");
    acme.app.owner().patch(&owned, only("jurisdictions", ["DE"])).await.assert_status(200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_terms_of_tools_do_not_become_milder() {
    let acme = Acme::start().await;
    let boss = acme.person("boss@acme.example").await;
    let bot = agent(&acme, "bot").await;
    acme.made("delegations", new_delegation(&boss, &bot, &["payment.*", "report.*"])).await;
    let strict = json!({"tenant_id": TENANT, "name": "pay", "function_signature": "pay()",
        "actions": ["payment.execute"], "requires": ["iban"],
        "action_risk_classification": {"risk_tier": "high", "required_oversight_mode": "two_person"}});
    let strict = id(&acme.made("tools", strict).await);
    let milder = "makes the terms of tools milder";
    for change in [
        json!({"requires": []}),
        only("access_level", "read"),
        only("actions", ["payment.execute", "report.read"]),
        only("actions", ["payment.refund"]),
    ] {
        refused(acme.ann.update_tool(&strict, change).await, 403, "forbidden", milder);
    }
    acme.ann.update_tool(&strict, only("requires", ["iban", "amount"])).await.assert_status(200);
    let workspace = json!("svc:ent:acme:workspace:x");
    for change in [
        only("workspace_id", &workspace),
        json!({"presentation": {"title": "Pay"}}),
        // It decides which of a request's fields a presentation shows.
        only("input_at", "arguments"),
        only("action_risk_classification", Value::Null),
        json!({"action_declaration": {"effect_class": "informational"}}),
    ] {
        refused(acme.ann.update_tool(&strict, change).await, 403, "forbidden", "owner changes");
    }
    // A request that names a tool need meet only the terms of this tool.
    let tools = "/api/v1/app/tools";
    let tool = |actions: &[&str], more: Value| {
        json!({"tenant_id": TENANT, "name": "t", "function_signature": "t()",
            "actions": actions})
        .and(&more)
    };
    for (actions, more) in [
        (&["payment.execute"][..], nothing()),
        (&["payment.*"], nothing()),
        (&["*"], nothing()),
        (&["payment.execute"], only("requires", ["iban", "amount"])),
        // Without a tool, an action needs the access level `execute`.
        (&["report.read"], only("access_level", "read")),
    ] {
        let answer = acme.ann.post(tools, tool(actions, more)).await;
        refused(answer, 403, "forbidden", milder);
    }
    for (member, value) in [
        (
            "presentation",
            json!({"title": "Pay {payee}", "facts": [{"path": "payee", "label": "To"}]}),
        ),
        ("action_declaration", only("effect_class", "informational")),
        ("action_risk_classification", only("risk_tier", "minimal")),
    ] {
        let answer = acme.ann.post(tools, tool(&["other.act"], json!({member: value}))).await;
        refused(answer, 403, "forbidden", member);
    }
    for (actions, more) in [
        (&["report.read"][..], nothing()),
        (&["report.read"], only("requires", ["day"])),
        // No principal has authority for this action.
        (&["travel.book"], only("access_level", "read")),
    ] {
        acme.by_ann("tools", tool(actions, more)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_decisions_read_of_resources_and_teams_stays() {
    let acme = Acme::start().await;
    let body = json!({"tenant_id": TENANT, "kind": "ledger", "name": "L",
        "sensitivity": "restricted"});
    let resource = format!("/api/v1/app/resources/{}", id(&acme.by_ann("resources", body).await));
    let team = json!({"tenant_id": TENANT, "name": "T"});
    let team = format!("/api/v1/app/teams/{}", id(&acme.by_ann("teams", team).await));
    for (one, change) in [
        (&resource, only("sensitivity", "public")),
        (&resource, only("kind", "file")),
        (&resource, only("name", "Other")),
        (&resource, only("workspace_id", "svc:ent:acme:workspace:x")),
        (&team, only("workspace_id", "svc:ent:acme:workspace:x")),
    ] {
        refused(acme.ann.patch(one, change).await, 403, "forbidden", "owner changes");
    }
    // A change may repeat present values.
    let same = json!({"notes": "N", "name": "L", "kind": "ledger", "sensitivity": "restricted"});
    let (status, changed) = acme.ann.patch(&resource, same).await;
    assert_eq!((status, changed["resource"]["notes"].text()), (200, "N"), "{changed:#}");
    // Grants and memberships give authority, or take an agent out of a policy.
    for path in ["acts-in", "granted-access-to", "member-of", "applies-to"] {
        let path = format!("/api/v1/app/relationships/{path}");
        assert_eq!(acme.ann.post(&path, nothing()).await.0, 404, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_delegates_is_the_owners() {
    let acme = Acme::start().await;
    let boss = acme.person("boss@acme.example").await;
    let bot = agent(&acme, "bot").await;
    let keys = "/api/v1/app/api-keys";
    let scope = "delegations:write";
    let key =
        |principal: &str| json!({"label": "k", "scopes": [scope], "principal_ids": [principal]});
    for principal in [&boss, &bot] {
        refused(acme.ann.post(keys, key(principal)).await, 403, "forbidden", scope);
    }
    let asking = json!({"label": "k", "scopes": ["runtime:write"], "principal_ids": [bot]});
    let one = format!("{keys}/{}", id(&acme.by_ann("api-keys", asking).await));
    refused(acme.ann.patch(&one, json!({"scopes": [scope]})).await, 403, "forbidden", scope);
    // An admin does not get the secret of such a key either.
    for principal in [&boss, &bot] {
        let mut owned = key(principal);
        owned["tenant_id"] = TENANT.into();
        let owned = id(&acme.made("api-keys", owned).await);
        let rotate = format!("{keys}/{owned}/rotate");
        refused(acme.ann.post(&rotate, nothing()).await, 403, "forbidden", scope);
    }
}
