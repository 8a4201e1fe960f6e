//! Access control: each type of credential at every binding of every RPC.

use std::collections::BTreeMap;

use agent_authority::routes::ROUTES;
use authority_model::{
    access::{Access, RULES},
    surfaces::Surfaces,
};
use tonic::Code;

use super::{
    access, bindings,
    ground::{bytes, fill},
    report,
    routes::{Route, pool, routes},
    try_all,
};
use crate::support::{TestApp, wire::Caller};
use serde_json::{Value, json};

const ROLES: [&str; 6] = ["admin", "auditor", "approver", "legal", "member", "viewer"];
const SCOPES: [&str; 10] = [
    "runtime:read",
    "runtime:write",
    "runtime:stop",
    "evidence:read",
    "evidence:write",
    "delegations:write",
    "events:read",
    "webhooks:write",
    "reality:write",
    "tools:observe",
];

/// The surface of a path, determined by the API's naming rules and not by the service's own table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Admin,
    App,
    Runtime,
    Other,
}

fn part(path: &str) -> Part {
    match path {
        path if path.starts_with("/api/v1/app/") => Part::App,
        path if path.starts_with("/api/v1/runtime/") => Part::Runtime,
        path if path.starts_with("/api/v1/") => Part::Admin,
        _ => Part::Other,
    }
}

#[test]
fn every_binding_has_a_rule_and_an_admin_path_takes_the_owner_alone() {
    let mut failures = Vec::new();
    let bound: usize = RULES.iter().map(|(_, bindings)| bindings.len()).sum();
    assert_eq!(bound, ROUTES.len());
    for route in ROUTES {
        let own = |binding: &&authority_model::access::Binding| {
            binding.verb == route.method && binding.path == route.path
        };
        let rule = RULES.iter().find(|(rpc, _)| *rpc == route.rpc).expect("a rule");
        let Some(binding) = rule.1.iter().find(own) else {
            failures.push(format!("{} {} has no rule", route.method, route.path));
            continue;
        };
        let Access { public, owner, member, roles, scope } = binding.access;
        let tenants = member || !roles.is_empty() || !scope.is_empty();
        let right = match part(route.path) {
            Part::Admin => owner && !tenants && !public,
            // These paths admit only users of the tenant. Owners and keys have other paths.
            Part::App => !owner && !public && scope.is_empty() && (member || !roles.is_empty()),
            Part::Runtime => owner && !scope.is_empty() && !public,
            Part::Other => owner || tenants || public,
        };
        if !right {
            failures.push(format!("{} {}: {:?}", route.method, route.path, binding.access));
        }
    }
    report(failures);
}

/// The document's security alternatives match the access rule. Each alternative is one role or one
/// scope, of which a caller needs only one.
#[test]
fn the_document_says_who_may_call_each_operation() {
    let document: Value = serde_json::from_str(agent_authority::app::OPENAPI).unwrap();
    // `/x/{id}` and `/x/{x.id}` count as the same path.
    let shape = |path: &str| {
        let parts = path.split('{').map(|part| part.split_once('}').map_or(part, |(_, rest)| rest));
        parts.collect::<Vec<_>>().join("{}")
    };
    let paths: BTreeMap<_, _> =
        document["paths"].as_object().unwrap().iter().map(|(path, at)| (shape(path), at)).collect();
    for binding in RULES.iter().flat_map(|(_, bindings)| bindings.iter()) {
        let Access { owner, member, roles, scope, .. } = binding.access;
        let alone = [("owner", owner), ("member", member)];
        let mut wanted: Vec<Value> =
            alone.iter().filter(|(_, open)| *open).map(|(name, _)| json!({*name: []})).collect();
        wanted.extend(roles.iter().map(|role| json!({"member": [role]})));
        wanted.extend((!scope.is_empty()).then(|| json!({"api_key": [scope]})));
        let operation = &paths[&shape(binding.path)][binding.verb.to_lowercase()];
        assert_eq!(operation["security"], json!(wanted), "{} {}", binding.verb, binding.path);
    }
}

/// A caller with a credential of the tenant, with the owner's credential, or without any.
#[derive(Clone)]
struct Who {
    name: String,
    role: &'static str,
    scope: &'static str,
    caller: Caller,
}

impl Who {
    fn may(&self, access: &Access) -> bool {
        access.public
            || (self.name == "owner" && access.owner)
            || (!self.role.is_empty() && (access.member || access.roles.contains(&self.role)))
            || (!self.scope.is_empty() && access.scope == self.scope)
    }
}

async fn everybody(app: &TestApp, owner: &Caller) -> Vec<Who> {
    let make = |path: &'static str, body: Value| async move {
        let (status, answer) = owner.rest("POST", path, Some(bytes(&body))).await;
        assert_eq!(status, 201, "{answer}");
        answer
    };
    let tenant = make("/api/v1/tenants", json!({"name": "Access"})).await;
    let tenant = tenant["tenant"]["id"].as_str().unwrap().to_owned();
    let who = |name: &str, role, scope, token: Option<&str>| Who {
        name: name.to_owned(),
        role,
        scope,
        caller: owner.with(token),
    };
    let mut all = vec![who("owner", "", "", Some(app.owner_token())), who("nobody", "", "", None)];
    for role in ROLES {
        all.push(who(role, role, "", Some(&app.member_token(&tenant, role))));
    }
    let agent = json!({"tenant_id": tenant, "principal_class": "agent", "display_name": "Bot",
                       "name": "bot"});
    let agent = make("/api/v1/principals", agent).await["principal"]["id"].clone();
    for scope in SCOPES {
        let mut key = json!({"tenant_id": tenant, "label": scope, "scopes": [scope]});
        if scope == "delegations:write" {
            key["principal_ids"] = json!([agent]);
        }
        let secret = make("/api/v1/api-keys", key).await["secret"].clone();
        all.push(who(scope, "", scope, secret.as_str()));
    }
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_rest_each_binding_admits_whom_its_own_rule_names() {
    let app = TestApp::start().await;
    let owner = Caller::owner(&app);
    let everybody = everybody(&app, &owner).await;
    let mut calls = Vec::new();
    for route in routes(&pool()) {
        calls.extend(everybody.iter().map(|who| (route.clone(), who.clone())));
    }
    report(try_all(calls, |(route, who)| async move { tried(&route, &who).await }).await);
}

async fn tried(route: &Route, who: &Who) -> Option<String> {
    let path = fill(route, |_| "nothing".to_owned());
    let body = (!route.body.is_empty()).then(|| b"[]".to_vec());
    let (status, answer) = who.caller.rest(&route.verb, &path, body).await;
    let refused = if who.name == "nobody" { 401 } else { 403 };
    let right =
        if who.may(access(route)) { status != 401 && status != 403 } else { status == refused };
    (!right).then(|| format!("{} {} by {}: {status} {answer}", route.verb, route.path, who.name))
}

/// A tenant's credential can call an operation at the tenant's path, but not at the admin path.
/// Over gRPC it can call the operation, except at an address that serves only the admin surface.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_admin_path_refuses_whom_its_twin_admits() {
    let app = TestApp::start().await;
    let owner = Caller::owner(&app);
    let admin = app.listening(Surfaces::ADMIN).await;
    let everybody = everybody(&app, &owner).await;
    let all = routes(&pool());
    let (mut pairs, mut failures) = (0, Vec::new());
    for route in all.iter().filter(|route| part(&route.path) == Part::Admin) {
        let twins = all.iter().filter(|twin| twin.rpc == route.rpc && twin.path != route.path);
        for twin in twins {
            let theirs = everybody.iter().filter(|who| who.name != "owner");
            for who in theirs.filter(|who| who.may(access(twin))) {
                pairs += 1;
                failures.extend(tried(route, who).await);
                failures.extend(tried(twin, who).await);
                let at_admin = who.caller.at(&admin).grpc(&route.rpc, Vec::new()).await;
                let shared = who.caller.grpc(&route.rpc, Vec::new()).await;
                let code = |answer: Result<_, tonic::Status>| {
                    answer.map_or_else(|s| s.code(), |_: bytes::Bytes| Code::Ok)
                };
                let (at_admin, shared) = (code(at_admin), code(shared));
                let refused = match who.name.as_str() {
                    "nobody" => Code::Unauthenticated,
                    _ => Code::PermissionDenied,
                };
                if at_admin != refused || shared == refused {
                    let rpc = &route.rpc;
                    failures.push(format!("{rpc} by {}: {at_admin:?}, {shared:?}", who.name));
                }
            }
        }
    }
    assert!(pairs >= 49, "only {pairs} pairs");
    report(failures);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn over_grpc_an_address_serves_the_methods_of_its_bindings() {
    let app = TestApp::start().await;
    let owner = Caller::owner(&app);
    let everybody = everybody(&app, &owner).await;
    let app_and_gateway = Surfaces::APP.and(Surfaces::GATEWAY);
    let mut calls = Vec::new();
    for surfaces in [Surfaces::ADMIN, Surfaces::APP, Surfaces::GATEWAY, app_and_gateway] {
        let base = app.listening(surfaces).await;
        for who in &everybody {
            let at = Who { caller: who.caller.at(&base), ..who.clone() };
            calls.extend(RULES.iter().map(|(rpc, _)| (*rpc, surfaces, at.clone())));
        }
    }
    let tried = |(rpc, surfaces, who): (&'static str, Surfaces, Who)| async move {
        let answer = who.caller.grpc(rpc, vec![0xff]).await;
        let code = answer.map_or_else(|status| status.code(), |_| Code::Ok);
        let mut reached = bindings(rpc).iter().filter(|binding| serves(surfaces, binding.path));
        let right = if reached.clone().next().is_none() {
            // Such a call is refused before authentication.
            !matches!(code, Code::PermissionDenied | Code::Unauthenticated | Code::Ok)
        } else if reached.any(|binding| who.may(&binding.access)) {
            !matches!(code, Code::PermissionDenied | Code::Unauthenticated)
        } else {
            let refused = who.name == "nobody";
            code == if refused { Code::Unauthenticated } else { Code::PermissionDenied }
        };
        (!right).then(|| format!("{rpc} by {} at {surfaces:?}: {code:?}", who.name))
    };
    report(try_all(calls, tried).await);
}

fn serves(surfaces: Surfaces, path: &str) -> bool {
    let own = match part(path) {
        // Reality coupling is served at the application's address as well.
        Part::Admin if path.contains("/v1/reality-") || path.contains("/v1/stable-drift-") => {
            Surfaces::ADMIN.and(Surfaces::APP)
        }
        Part::Admin => Surfaces::ADMIN,
        Part::App | Part::Runtime => Surfaces::APP,
        Part::Other if path == "/" || path.starts_with("/health") => Surfaces::ALL,
        Part::Other if path.starts_with("/api/consultant-lead") => Surfaces::SITE,
        Part::Other => Surfaces::GATEWAY,
    };
    surfaces.meets(own)
}
