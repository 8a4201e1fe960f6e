//! Sends bad input and unauthorized calls to every operation in the descriptors.
//!
//! The tests name no operation: a new RPC is tested without further code. Each field of each
//! request is left out, mistyped, malformed, overlong and so on. The response must be an error that
//! names the field, and the records must not change.

mod access;
mod acts;
mod ground;
mod grpc;
mod pages;
mod rest;
pub(crate) mod routes;
mod trail;
mod values;

use std::collections::BTreeMap;

use authority_model::access::{Access, Binding, RULES};
use futures_util::{StreamExt as _, stream};
use serde_json::json;
use tonic::Code;

use crate::support::{
    TestApp,
    wire::{Caller, reason},
};
use ground::{Ground, bytes, fill, snapshot};
use grpc::{grpc_cases, try_grpc};
use pages::{is_paged, try_pages};
use rest::{foreign_cases, rest_cases, try_rest};
use routes::{Route, methods, pool, routes, rpc};

/// The number of concurrent calls.
const AT_ONCE: usize = 16;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_input_is_refused_by_name_and_changes_nothing() {
    let app = TestApp::start().await;
    let owner = Caller::owner(&app);
    let pool = pool();
    let routes: Vec<_> = routes(&pool).into_iter().filter(admits_owner).collect();
    let (ground, problems) = Ground::lay(&owner, &routes).await;
    assert!(problems.is_empty(), "samples that were refused:\n{}", problems.join("\n"));
    let before = snapshot(&owner, &routes).await;
    assert!(!before.is_empty());

    let cases: Vec<_> = routes.iter().flat_map(|route| rest_cases(route, &ground)).collect();
    assert!(cases.len() > 1000, "only {} cases", cases.len());
    let mut failures = try_all(cases, |case| try_rest(&owner, case)).await;
    // An operation that acts on the caller's own tenant refuses an owner, who has no tenant.
    let admin = owner.with(Some(&app.member_token(&ground.tenants[0], "admin")));
    let mut calls = Vec::new();
    for method in methods(&pool) {
        let bindings = bindings(&rpc(&method));
        let mut rules = bindings.iter().map(|binding| &binding.access);
        let caller = if rules.clone().any(|rule| rule.owner || rule.public) {
            &owner
        } else if rules.any(|rule| rule.member || !rule.roles.is_empty()) {
            &admin
        } else {
            // Only API keys may call it. Each call updates the key's record, so the comparison of
            // the records before and after would fail.
            continue;
        };
        calls.extend(grpc_cases(&pool, &method).into_iter().map(|call| (caller, call)));
    }
    failures.extend(try_all(calls, |(caller, call)| try_grpc(caller, call)).await);

    let after = snapshot(&owner, &routes).await;
    for (path, records) in &before {
        if after.get(path) != Some(records) {
            failures.push(format!("{path} changed:\n  {records}\n  {:?}", after.get(path)));
        }
    }
    report(failures);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_are_refused_everywhere() {
    let app = TestApp::start().await;
    let owner = Caller::owner(&app);
    let pool = pool();
    let routes = routes(&pool);
    let (ground, _) = Ground::lay(&owner, &routes).await;
    let tenant = &ground.tenants[0];
    let mut keys = BTreeMap::new();
    for scope in ["events:read", "webhooks:write"] {
        keys.insert(scope, owner.with(Some(&make_key(&owner, tenant, scope).await)));
    }
    let member = owner.with(Some(&app.member_token(tenant, "viewer")));
    let mut calls = Vec::new();
    for method in methods(&pool) {
        let rpc = rpc(&method);
        let bindings = bindings(&rpc);
        let strange = |rules: Vec<&Access>, route: Option<Route>| {
            if rules.iter().any(|rule| rule.public) {
                return Vec::new();
            }
            let taken = rules.iter().any(|rule| rule.scope == "events:read");
            let scope = if taken { "webhooks:write" } else { "events:read" };
            let scoped = rules.iter().any(|rule| !rule.scope.is_empty());
            let code = if scoped { "permission_scope_exceeded" } else { "forbidden" };
            let mut strangers = vec![
                ("nobody", owner.with(None), 401, "unauthenticated"),
                ("rubbish", owner.with(Some("rubbish")), 401, "unauthenticated"),
                ("a key without the scope", keys[scope].clone(), 403, code),
            ];
            if !rules.iter().any(|rule| rule.member || rule.roles.contains(&"viewer")) {
                strangers.push(("a member", member.clone(), 403, "forbidden"));
            }
            if !rules.iter().any(|rule| rule.owner) {
                strangers.push(("the owner", owner.clone(), 403, "forbidden"));
            }
            let call = |(who, caller, status, code)| {
                let (rpc, route) = (rpc.clone(), route.clone());
                Strange { who, caller, status, code, rpc, route }
            };
            strangers.into_iter().map(call).collect()
        };
        // Over gRPC, a caller may call the RPC if the rule of any binding permits it. Over REST,
        // only the rule of the called binding counts.
        calls.extend(strange(bindings.iter().map(|binding| &binding.access).collect(), None));
        for route in routes.iter().filter(|route| route.rpc == rpc) {
            calls.extend(strange(vec![access(route)], Some(route.clone())));
        }
    }
    report(try_all(calls, |call| refuses(call, &ground)).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_does_not_see_or_name_what_is_anothers() {
    let app = TestApp::start().await;
    let owner = Caller::owner(&app);
    let pool = pool();
    let routes: Vec<_> = routes(&pool).into_iter().filter(|route| !is_app(route)).collect();
    let (ground, _) = Ground::lay(&owner, &routes).await;
    let before = snapshot(&owner, &routes).await;
    let cases: Vec<_> = routes.iter().flat_map(|route| foreign_cases(route, &ground)).collect();
    assert!(cases.len() > 20, "only {} cases", cases.len());
    let mut failures = try_all(cases, |case| try_rest(&owner, case)).await;
    if snapshot(&owner, &routes).await != before {
        failures.push("a record that refers to another tenant's record was stored".to_owned());
    }
    let mut readers = Vec::new();
    for scope in ["runtime:read", "evidence:read", "events:read"] {
        readers.push((scope, owner.with(Some(&make_key(&owner, &ground.tenants[0], scope).await))));
    }
    for route in routes.iter().filter(|route| route.verb == "GET") {
        let scope = access(route).scope;
        let Some((_, reader)) = readers.iter().find(|(known, _)| *known == scope) else { continue };
        for id in ground.ids_of(1) {
            if route.variables().is_empty() {
                continue;
            }
            let path = fill(route, |_| id.clone());
            let (status, body) = reader.rest("GET", &path, None).await;
            // No id has the form of an MCP server's slug.
            let is_slug = route.variables().iter().all(|variable| *variable == "slug");
            if status != 404 && !(is_slug && status == 400) {
                failures.push(format!("GET {path} with another tenant's key: {status} {body}"));
            }
        }
    }
    report(failures);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_page_completely_while_records_are_made() {
    let app = TestApp::start().await;
    let owner = Caller::owner(&app);
    let pool = pool();
    let routes: Vec<_> = routes(&pool).into_iter().filter(admits_owner).collect();
    let (ground, _) = Ground::lay(&owner, &routes).await;
    let lists: Vec<_> = routes.iter().filter(|route| is_paged(route)).collect();
    assert!(lists.len() > 20, "only {} lists", lists.len());
    // Lists are read one after another, because records created for two lists could conflict.
    let mut failures = Vec::new();
    for list in lists {
        failures.extend(try_pages(&owner, &ground, &routes, list).await);
    }
    report(failures);
}

#[track_caller]
fn report(mut failures: Vec<String>) {
    failures.sort();
    let count = failures.len();
    failures.truncate(60);
    assert!(count == 0, "{count} failures:\n{}", failures.join("\n"));
}

async fn try_all<C, F: Future<Output = Option<String>>>(
    cases: Vec<C>,
    attempt: impl Fn(C) -> F,
) -> Vec<String> {
    let attempts = stream::iter(cases.into_iter().map(attempt));
    attempts.buffer_unordered(AT_ONCE).filter_map(async |found| found).collect().await
}

/// Returns the bindings of an RPC, each with its access rule.
fn bindings(rpc: &str) -> &'static [Binding] {
    let found = RULES.iter().find(|(name, _)| *name == rpc);
    found.unwrap_or_else(|| panic!("{rpc} has no access rule")).1
}

/// Returns the access rule of the RPC for this binding.
fn access(route: &Route) -> &'static Access {
    let own = |binding: &&Binding| binding.verb == route.verb && binding.path == route.path;
    let found = bindings(&route.rpc).iter().find(own);
    &found.unwrap_or_else(|| panic!("{} {} has no rule", route.verb, route.path)).access
}

/// Returns whether the binding acts on the caller's own tenant. An owner has no tenant.
fn is_app(route: &Route) -> bool {
    route.path.starts_with("/api/v1/app/")
}

/// Returns whether an owner may call the RPC through this binding.
fn admits_owner(route: &Route) -> bool {
    let rule = access(route);
    !is_app(route) && (rule.owner || rule.public)
}

async fn make_key(owner: &Caller, tenant: &str, scope: &str) -> String {
    let body = json!({"tenant_id": tenant, "label": scope, "scopes": [scope]});
    let (status, answer) = owner.rest("POST", "/api/v1/api-keys", Some(bytes(&body))).await;
    assert_eq!(status, 201, "{answer}");
    answer["secret"].as_str().expect("a secret").to_owned()
}

/// A call by a caller who is not permitted to make it.
#[derive(Clone)]
struct Strange {
    who: &'static str,
    caller: Caller,
    status: u16,
    code: &'static str,
    rpc: String,
    /// The REST route of the call; `None` for gRPC.
    route: Option<Route>,
}

async fn refuses(call: Strange, ground: &Ground) -> Option<String> {
    let Strange { who, caller, status: wanted, code: word, rpc, route } = call;
    let Some(route) = route else {
        let Err(status) = caller.grpc(&rpc, Vec::new()).await else {
            return Some(format!("{rpc} accepts a call by {who}"));
        };
        let code = if wanted == 401 { Code::Unauthenticated } else { Code::PermissionDenied };
        let right = status.code() == code && reason(&status) == word;
        return (!right).then(|| format!("{rpc} to {who}: {status:?}"));
    };
    let path = fill(&route, |name| ground.item(&route, name));
    let body = (!route.body.is_empty()).then(|| b"{}".to_vec());
    let (status, body) = caller.rest(&route.verb, &path, body).await;
    let right = status == wanted && body["error"] == word && body["ok"] == json!(false);
    (!right).then(|| format!("{} {} to {who}: {status} {body}", route.verb, route.path))
}
