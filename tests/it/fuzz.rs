//! Bad input and strangers, at every operation that the descriptors know.
//!
//! Nothing here names an operation: a new RPC is tried out without a line of test code. Each
//! member of each request is left out, mistyped, misshapen, overlong and so on; the answer must
//! be a refusal that names the member, and nothing may have changed.

mod routes;
mod values;
mod wire;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::atomic::{AtomicUsize, Ordering},
};

use authority_model::access::{Access, RULES};
use futures_util::{StreamExt as _, stream};
use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, Value as Reflected, prost::Message as _};
use serde_json::{Map, Value, json};
use tonic::Code;

use crate::support::TestApp;
use routes::{Route, Rules, message, methods, pool, routes, rpc};
use values::{Place, Source, bads, places, sample};
use wire::{Caller, encoded, named, reason};

/// Calls at a time.
const AT_ONCE: usize = 16;
/// Members that say no more than what stands in their records.
const VOLATILE: [&str; 2] = ["last_used_at", "next_page_token"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_input_is_refused_by_name_and_changes_nothing() {
    let app = TestApp::start().await;
    let owner = Caller::owner(&app);
    let pool = pool();
    let routes: Vec<_> = routes(&pool).into_iter().filter(|route| !is_app(route)).collect();
    let (ground, problems) = Ground::lay(&owner, &routes).await;
    assert!(problems.is_empty(), "samples that were refused:\n{}", problems.join("\n"));
    let before = snapshot(&owner, &routes).await;
    assert!(!before.is_empty());

    let cases: Vec<_> = routes.iter().flat_map(|route| rest_cases(route, &ground)).collect();
    assert!(cases.len() > 1000, "only {} cases", cases.len());
    let mut failures = try_all(cases, |case| try_rest(&owner, case)).await;
    let calls: Vec<_> = methods(&pool).iter().flat_map(grpc_cases).collect();
    failures.extend(try_all(calls, |call| try_grpc(&owner, call)).await);

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
        let Some((_, access)) = RULES.iter().find(|(name, _)| *name == rpc) else {
            panic!("{rpc} does not say who may call it");
        };
        let scope = if access.scope == "events:read" { "webhooks:write" } else { "events:read" };
        let mut strangers = vec![("nobody", owner.with(None), 401, "unauthenticated")];
        strangers.push(("rubbish", owner.with(Some("rubbish")), 401, "unauthenticated"));
        let code = if access.scope.is_empty() { "forbidden" } else { "permission_scope_exceeded" };
        strangers.push(("a key without the scope", keys[scope].clone(), 403, code));
        if !access.member && !access.roles.contains(&"viewer") {
            strangers.push(("a member", member.clone(), 403, "forbidden"));
        }
        if !access.owner {
            strangers.push(("the owner", owner.clone(), 403, "forbidden"));
        }
        if access.public {
            continue;
        }
        for (who, caller, status, code) in strangers {
            calls.push(Strange { who, caller, status, code, route: None, rpc: rpc.clone() });
        }
    }
    let bound: Vec<_> = calls
        .iter()
        .flat_map(|call| {
            let routes = routes.iter().filter(|route| route.rpc == call.rpc);
            routes.map(|route| Strange { route: Some(route.clone()), ..call.clone() })
        })
        .collect();
    calls.extend(bound);
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
        failures.push("a record that names another tenant's was stored".to_owned());
    }
    let mut readers = Vec::new();
    for scope in ["runtime:read", "evidence:read", "events:read"] {
        readers.push((scope, owner.with(Some(&make_key(&owner, &ground.tenants[0], scope).await))));
    }
    for route in routes.iter().filter(|route| route.verb == "GET") {
        let scope = access(&route.rpc).map_or("", |access| access.scope);
        let Some((_, reader)) = readers.iter().find(|(known, _)| *known == scope) else { continue };
        for id in ground.ids_of(1) {
            if route.variables().is_empty() {
                continue;
            }
            let path = fill(route, |_| id.clone());
            let (status, body) = reader.rest("GET", &path, None).await;
            if status != 404 {
                failures.push(format!("GET {path} with another tenant's key: {status} {body}"));
            }
        }
    }
    report(failures);
}

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

fn access(rpc: &str) -> Option<&'static Access> {
    RULES.iter().find(|(name, _)| *name == rpc).map(|(_, access)| access)
}

/// The tenant application's twins act on the caller's own tenant, which an owner has not.
fn is_app(route: &Route) -> bool {
    route.path.starts_with("/api/v1/app/")
}

async fn make_key(owner: &Caller, tenant: &str, scope: &str) -> String {
    let body = json!({"tenant_id": tenant, "label": scope, "scopes": [scope]});
    let (status, answer) = owner.rest("POST", "/api/v1/api-keys", Some(bytes(&body))).await;
    assert_eq!(status, 201, "{answer}");
    answer["secret"].as_str().expect("a secret").to_owned()
}

fn bytes(value: &Value) -> Vec<u8> {
    value.to_string().into_bytes()
}

/// Two tenants with a record of every kind that can be made from its descriptor alone.
struct Ground {
    tenants: Vec<String>,
    /// By tenant: kind and id, in the order in which they were made.
    made: Vec<Vec<(String, String)>>,
    /// Kinds whose samples need their optional references too.
    whole: BTreeSet<String>,
    /// Collection paths by kind.
    collections: BTreeMap<String, String>,
    numbers: AtomicUsize,
}

/// One tenant's records, to refer to.
struct Side<'a>(&'a Ground, usize);

/// Members whose names do not end with the kind that they refer to.
const ALIASES: [(&str, &str); 11] = [
    ("delegator", "principal"),
    ("delegate", "principal"),
    ("agent", "principal"),
    ("grantee", "principal"),
    ("actor", "principal"),
    ("entity", "principal"),
    ("subject", "principal"),
    ("used", "tool"),
    ("visible_in_workspaces", "workspace"),
    ("root", "delegation"),
    ("parent", ""),
];

impl Source for Side<'_> {
    fn reference(&self, member: &str, _owner: &str) -> Option<String> {
        let Self(ground, side) = self;
        if member == "tenant_id" {
            return ground.tenants.get(*side).cloned();
        }
        let kind = ground.kind_of(member)?;
        let mut known = ground.made[*side].iter().filter(|(made, _)| *made == kind);
        // Who delegates is not who is delegated to.
        let found = if member == "delegator_id" { known.next() } else { known.next_back() };
        found.map(|(_, id)| id.clone())
    }

    fn next(&self) -> usize {
        self.0.numbers.fetch_add(1, Ordering::Relaxed)
    }
}

impl Ground {
    async fn lay(owner: &Caller, routes: &[Route]) -> (Self, Vec<String>) {
        let creates: Vec<_> = routes.iter().filter(|route| is_create(route)).collect();
        let mut ground = Self {
            tenants: Vec::new(),
            made: vec![Vec::new(), Vec::new()],
            whole: BTreeSet::new(),
            collections: BTreeMap::new(),
            numbers: AtomicUsize::new(1),
        };
        for route in &creates {
            ground.collections.insert(route.body.clone(), route.path.clone());
        }
        for name in ["Fuzz one", "Fuzz two"] {
            let body = json!({"name": name});
            let (status, answer) = owner.rest("POST", "/api/v1/tenants", Some(bytes(&body))).await;
            assert_eq!(status, 201, "{answer}");
            ground.tenants.push(answer["tenant"]["id"].as_str().unwrap().to_owned());
        }
        let mut problems = Vec::new();
        // What refers to another kind waits for it: as many rounds as references are deep.
        for _ in 0..4 {
            problems.clear();
            for route in &creates {
                for side in 0..2 {
                    // Two of each, so that one can stand at either end of a relationship.
                    let found = ground.plant(owner, route, side, 2).await;
                    problems.extend(found.map(|problem| format!("POST {}: {problem}", route.path)));
                }
            }
        }
        (ground, problems)
    }

    /// Makes records of the route's kind up to `count`; the last refusal.
    async fn plant(
        &mut self,
        owner: &Caller,
        route: &Route,
        side: usize,
        count: usize,
    ) -> Option<String> {
        let kind = &route.body;
        let field = route.input.get_field_by_name(kind)?;
        let of = message(&field)?;
        let mut last = None;
        for _ in self.made[side].iter().filter(|(made, _)| made == kind).count()..count {
            for whole in [false, true] {
                let body = Value::Object(sample(&of, whole, &Side(self, side)));
                let (status, answer) = owner.rest("POST", &route.path, Some(bytes(&body))).await;
                if status == 201 {
                    let record = &answer[kind];
                    let id = record["id"].as_str().unwrap_or("-").to_owned();
                    if whole {
                        self.whole.insert(kind.clone());
                    }
                    self.made[side].push((kind.clone(), id));
                    last = None;
                    break;
                }
                last = Some(format!("{body}: {status} {answer}"));
            }
        }
        // A second of a pair that is one of a kind is refused rightly.
        let made = self.made[side].iter().any(|(made, _)| made == kind);
        last.filter(|_| !made)
    }

    /// The kind that a member refers to.
    fn kind_of(&self, member: &str) -> Option<String> {
        let stem = member.strip_suffix("_id").or_else(|| member.strip_suffix("_ids"));
        let stem = stem.unwrap_or(member);
        let alias = ALIASES.iter().find(|(name, _)| *name == stem).map(|(_, kind)| *kind);
        if let Some(kind) = alias {
            return Some(kind.to_owned()).filter(|kind| !kind.is_empty());
        }
        if stem == member {
            return None;
        }
        let ends = |kind: &&String| stem == *kind || stem.ends_with(&format!("_{kind}"));
        self.collections.keys().filter(ends).max_by_key(|kind| kind.len()).cloned()
    }

    /// The ids of one tenant's records.
    fn ids_of(&self, side: usize) -> Vec<String> {
        self.made[side].iter().map(|(_, id)| id.clone()).filter(|id| id != "-").collect()
    }

    /// An id that the route's path is about, of the first tenant.
    fn item(&self, route: &Route, variable: &str) -> String {
        let collection = route.collection();
        let kind = self.collections.iter().find(|(_, path)| *path == collection);
        let kind = kind.map(|(kind, _)| kind.clone()).or_else(|| self.kind_of(variable));
        let made = self.made[0].iter().find(|(made, _)| Some(made) == kind.as_ref());
        made.map_or_else(|| "nothing".to_owned(), |(_, id)| id.clone())
    }

    fn base(&self, route: &Route) -> Map<String, Value> {
        if route.is_partial() {
            return Map::new();
        }
        let side = Side(self, 0);
        match route.body.as_str() {
            "*" => {
                let taken = route.variables();
                let mut all = sample(&route.input, false, &side);
                all.retain(|name, _| !taken.contains(&name.as_str()));
                all
            }
            name => {
                let field = route.input.get_field_by_name(name);
                let of = field.and_then(|field| message(&field));
                of.map(|of| sample(&of, self.whole.contains(name), &side)).unwrap_or_default()
            }
        }
    }
}

/// Whether the route makes a record of the kind that its body is named after.
fn is_create(route: &Route) -> bool {
    let admin = route.path.starts_with("/api/v1/") && !is_app(route);
    let plain = route.variables().is_empty() && !route.path.contains(':');
    let kind = route.body != "*" && !route.body.is_empty() && route.body != "tenant";
    route.verb == "POST" && admin && plain && kind
}

/// The path with its variables filled in.
fn fill(route: &Route, value: impl Fn(&str) -> String) -> String {
    let mut path = String::new();
    let mut rest = route.path.as_str();
    while let Some((before, after)) = rest.split_once('{') {
        let (variable, after) = after.split_once('}').unwrap_or((after, ""));
        let name = variable.split('=').next().unwrap_or(variable);
        path += before;
        path += &encoded(&value(name));
        rest = after;
    }
    path + rest
}

/// Every list, as the owner sees it.
async fn snapshot(owner: &Caller, routes: &[Route]) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    for route in routes.iter().filter(|route| route.verb == "GET") {
        if route.variables().is_empty() && route.input.get_field_by_name("limit").is_some() {
            let path = format!("{}?limit=500", route.path);
            let (status, mut body) = owner.rest("GET", &path, None).await;
            if status == 200 {
                still(&mut body);
                found.insert(route.path.clone(), body);
            }
        }
    }
    found
}

/// Takes out what changes by itself.
fn still(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|name, _| !VOLATILE.contains(&name.as_str()));
            members.values_mut().for_each(still);
        }
        Value::Array(items) => items.iter_mut().for_each(still),
        _ => {}
    }
}

/// A REST call that must be refused.
struct Case {
    title: String,
    verb: String,
    path: String,
    body: Option<Vec<u8>>,
    content_type: &'static str,
    statuses: Vec<u16>,
    /// The member that `details` must name.
    member: Option<String>,
}

impl Case {
    fn new(route: &Route, why: &str, path: String, body: Option<String>) -> Self {
        Self {
            title: format!("{} {} {why}", route.verb, route.path),
            verb: route.verb.clone(),
            path,
            body: body.map(String::into_bytes),
            content_type: "application/json",
            statuses: vec![400],
            member: None,
        }
    }

    fn naming(self, member: impl Into<String>) -> Self {
        Self { member: Some(member.into()), ..self }
    }

    fn giving(self, statuses: &[u16]) -> Self {
        Self { statuses: statuses.to_vec(), ..self }
    }
}

fn rest_cases(route: &Route, ground: &Ground) -> Vec<Case> {
    let mut cases = body_cases(route, ground);
    cases.extend(text_cases(route, ground));
    cases.extend(query_cases(route, ground));
    cases.extend(path_cases(route, ground));
    cases
}

/// Each member of the body gone wrong.
fn body_cases(route: &Route, ground: &Ground) -> Vec<Case> {
    if route.body.is_empty() {
        return Vec::new();
    }
    let path = fill(route, |name| ground.item(route, name));
    let base = ground.base(route);
    let side = Side(ground, 0);
    let case = |why: String, body: String| Case::new(route, &why, path.clone(), Some(body));
    let mut cases = Vec::new();
    for place in places(route.body_fields()) {
        let (name, rules) = (place.name(), Rules::of(&place.field));
        let nested = !place.around.is_empty();
        // A batch's items fail alone, inside an answer of 200.
        let alone = place.around.first().is_some_and(FieldDescriptor::is_list);
        let statuses: &[u16] = if alone { &[200, 400] } else { &[400] };
        let named = |case: Case| if alone { case } else { case.naming(name.clone()) };
        if rules.required && (nested || !route.is_partial()) {
            let why = format!("without `{name}`");
            cases.push(named(case(why, place.body(&base, None, &side)).giving(statuses)));
        }
        if rules.required {
            let body = place.body(&base, Some("null"), &side);
            cases.push(named(case(format!("with `{name}` null"), body)).giving(statuses));
        }
        for bad in bads(&place.field, &rules, &side) {
            let why = format!("with `{name}{}` {}", bad.at, bad.why);
            let case = case(why, place.body(&base, Some(&bad.json), &side)).giving(statuses);
            let names = bad.named && !alone;
            let member = format!("{name}{}", if rules.output_only { "" } else { bad.at });
            cases.push(if names { case.naming(member) } else { case });
        }
        if let Some(inner) = message(&place.field).filter(|_| !rules.output_only) {
            let inside = Value::Object(sample(&inner, false, &side)).to_string();
            let comma = if inside == "{}" { "" } else { "," };
            let inside = inside.trim_end_matches('}').to_owned() + comma;
            let object = format!(r#"{inside}"no_such_member":1}}"#);
            let listed = place.field.is_list();
            let json = if listed { format!("[{object}]") } else { object };
            let member = format!("{name}{}.no_such_member", if listed { "[0]" } else { "" });
            let body = place.body(&base, Some(&json), &side);
            cases.push(case(format!("with `{member}`"), body).naming(member));
        }
        if rules.output_only
            && !nested
            && let Some(good) = values::good(&place.field, &rules, &side)
        {
            let body = place.body(&base, Some(&good.to_string()), &side);
            cases.push(case(format!("with the server's own `{name}`"), body).naming(name));
        }
    }
    cases
}

/// The body as a whole gone wrong.
fn text_cases(route: &Route, ground: &Ground) -> Vec<Case> {
    if route.body.is_empty() {
        return Vec::new();
    }
    let path = fill(route, |name| ground.item(route, name));
    let base = Value::Object(ground.base(route)).to_string();
    let inside = base[1..base.len() - 1].to_owned();
    let comma = if inside.is_empty() { "" } else { "," };
    let case = |why: &str, body: &str| Case::new(route, why, path.clone(), Some(body.to_owned()));
    let unknown = format!(r#"{{{inside}{comma}"no_such_member":1}}"#);
    let twice = format!(r#"{{{inside}{comma}"no_such_member":1,"no_such_member":2}}"#);
    let deep = format!("{{\"x\":{}1{}}}", "[".repeat(33), "]".repeat(33));
    let far = format!("{{\"x\":{}1{}}}", "[".repeat(50_000), "]".repeat(50_000));
    let zero = format!(r#"{{{inside}{comma}"a\u0000b":1}}"#);
    let mut cases = vec![
        case("with an unknown member", &unknown).naming("no_such_member"),
        case("with a member twice", &twice),
        case("too deep", &deep),
        case("far too deep", &far),
        case("with U+0000 in a name", &zero),
        case("with no object", "[]"),
        case("with no object", "5"),
        case("with no object", r#""x""#),
        case("with half an object", "{"),
        case("with two objects", "{}{}"),
        case("with no JSON", "hello"),
        case("with a comma too many", r#"{"a":1,}"#),
    ];
    if let Some((member, value)) = ground.base(route).into_iter().next() {
        let body = format!(r#"{{{inside},{}:{value}}}"#, json!(member));
        cases.push(case(&format!("with `{member}` twice"), &body));
    }
    cases.push(Case { body: Some(vec![b'{', b'"', 0xff, b'"', b':', b'1', b'}']),
        ..case("with no UTF-8", "") });
    let large = format!(r#"{{"x":"{}"}}"#, "a".repeat(257 << 10));
    cases.push(case("with too large a body", &large).giving(&[413]));
    cases.push(Case { content_type: "text/plain", ..case("as text", &base) }.giving(&[415]));
    cases
}

/// Each parameter of the query gone wrong.
fn query_cases(route: &Route, ground: &Ground) -> Vec<Case> {
    let path = fill(route, |name| ground.item(route, name));
    let body = (!route.body.is_empty()).then(|| Value::Object(ground.base(route)).to_string());
    // A DELETE without its parameters may be about another form of key.
    let refused: &[u16] = if route.verb == "DELETE" { &[400, 405] } else { &[400] };
    let case = |why: String, query: String| {
        let path = format!("{path}?{query}");
        Case::new(route, &why, path, body.clone()).giving(refused)
    };
    let mut cases = vec![case("with an unknown parameter".to_owned(), "no_such=1".to_owned())];
    for field in route.query_fields() {
        let (name, rules) = (field.name().to_owned(), Rules::of(&field));
        let mut values: Vec<String> = Vec::new();
        match field.kind() {
            Kind::Bool => values.extend(["perhaps", ""].map(str::to_owned)),
            Kind::Int32 | Kind::Uint32 => {
                values.extend(["x", "1.5", "9007199254740993", "", "1e1", "+"].map(str::to_owned));
                values.extend(rules.most.map(|most| (most + 1).to_string()));
                values.extend(rules.least.map(|least| (least - 1).to_string()));
            }
            Kind::String => {
                values.push("a\0b".to_owned());
                values.extend(rules.max_len.map(|most| "a".repeat(most.min(7000) + 1)));
                if !rules.one_of.is_empty() {
                    values.push("no_such_word".to_owned());
                }
                if name == "page_token" {
                    values.extend(["x", "AAAA", "!!", "eyJhIjoxfQ"].map(str::to_owned));
                }
            }
            Kind::Message(inner) if inner.full_name() == "google.protobuf.Timestamp" => {
                values.extend(["yesterday", "17"].map(str::to_owned));
            }
            _ => {}
        }
        let long = |value: &String| value.len() > 60;
        for value in values {
            let shown = if long(&value) { "too long".to_owned() } else { format!("{value:?}") };
            let query = format!("{name}={}", encoded(&value));
            cases.push(case(format!("with {name} {shown}"), query).naming(name.clone()));
        }
        if !field.is_list() {
            let query = format!("{name}=1&{name}=1");
            cases.push(case(format!("with {name} twice"), query).naming(name.clone()));
        }
        if field.kind() == Kind::String {
            cases.push(case(format!("with {name} of no UTF-8"), format!("{name}=%ff")));
        }
    }
    cases
}

/// Each variable of the path gone wrong.
fn path_cases(route: &Route, ground: &Ground) -> Vec<Case> {
    let mut cases = Vec::new();
    // A relationship's key stands in the query as well, or in no readable form in the path.
    let unread = route.collection().contains("/relationships/");
    let statuses: &[u16] = if unread { &[400, 404, 405] } else { &[404, 405] };
    for variable in route.variables() {
        let fits = Value::Object(ground.base(route)).to_string();
        let body = (!route.body.is_empty()).then_some(fits);
        let long = "a".repeat(6000);
        let odd = ["rubbish", "svc:ent:fuzz:tool:0", "../..", "%", "ä", "*", "' OR 1=1 --", &long];
        for id in odd {
            let strange = id.len() > 1000;
            let path = fill(route, |name| {
                if name == variable { id.to_owned() } else { ground.item(route, name) }
            });
            let shown = if strange { "too long" } else { id };
            let case = Case::new(route, &format!("of {variable} {shown:?}"), path, body.clone());
            let also: &[u16] = if strange { &[400, 404, 405, 414] } else { statuses };
            cases.push(case.giving(also));
        }
        let zero = fill(route, |_| "a\0b".to_owned());
        let case = Case::new(route, &format!("of {variable} with U+0000"), zero, body);
        cases.push(case.giving(&[400, 404, 405]));
    }
    cases
}

/// Each reference of a record to another tenant's.
fn foreign_cases(route: &Route, ground: &Ground) -> Vec<Case> {
    if !is_create(route) && !route.is_partial() {
        return Vec::new();
    }
    let path = fill(route, |name| ground.item(route, name));
    let base = ground.base(route);
    let (ours, theirs) = (Side(ground, 0), Side(ground, 1));
    let mut cases = Vec::new();
    for place in places(route.body_fields()) {
        let (name, rules) = (place.field.name(), Rules::of(&place.field));
        if rules.output_only || (route.is_partial() && rules.immutable) || name == "tenant_id" {
            continue;
        }
        let Some(id) = theirs.reference(name, "") else { continue };
        let listed = place.field.is_list();
        let value = if listed { json!([id]) } else { json!(id) };
        let body = place.body(&base, Some(&value.to_string()), &ours);
        let why = format!("with another tenant's `{}`", place.name());
        cases.push(Case::new(route, &why, path.clone(), Some(body)).naming(place.name()));
    }
    cases
}

async fn try_rest(caller: &Caller, case: Case) -> Option<String> {
    let size = case.body.as_ref().map_or(0, Vec::len);
    let sent = case.body.as_deref().filter(|_| size < 2000).map(String::from_utf8_lossy);
    let sent = sent.unwrap_or_default().into_owned();
    let (status, body) = caller.typed(&case.verb, &case.path, case.body, case.content_type).await;
    let problem = judge(status, &body, &case.statuses, case.member.as_deref())?;
    Some(format!("{}: {problem}: {body}\n    {} {sent}", case.title, cut(&case.path)))
}

fn cut(text: &str) -> &str {
    text.get(..200).unwrap_or(text)
}

fn judge(status: u16, body: &Value, statuses: &[u16], member: Option<&str>) -> Option<String> {
    if !statuses.contains(&status) {
        return Some(format!("status {status}, not {statuses:?}"));
    }
    if status < 300 {
        return None;
    }
    let code = body["error"].as_str().unwrap_or_default();
    let fits = match status {
        400 => matches!(code, "invalid_request" | "malformed_json"),
        404 => code.starts_with("not_found"),
        405 => !code.is_empty(),
        413 => code == "too_large",
        414 => true,
        415 => code == "unsupported_media_type",
        _ => false,
    };
    if !fits || body["ok"] != json!(false) || !body["message"].is_string() {
        return Some(format!("{status} with code `{code}`"));
    }
    let member = member.filter(|_| status == 400)?;
    let details = body["details"].as_array().map(Vec::as_slice).unwrap_or_default();
    let fields = details.iter().filter_map(|detail| detail["field"].as_str());
    let found = fields.into_iter().any(|field| is_member(field, member));
    (!found).then(|| format!("details do not name `{member}`"))
}

/// Whether a violation's field is the member, or lies in it.
fn is_member(field: &str, member: &str) -> bool {
    let rest = field.strip_prefix(member);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// A gRPC call that must be refused.
struct Call {
    title: String,
    rpc: String,
    message: Vec<u8>,
    codes: Vec<Code>,
    member: Option<String>,
}

fn grpc_cases(method: &prost_reflect::MethodDescriptor) -> Vec<Call> {
    let (rpc, input) = (rpc(method), method.input());
    let mask = input.fields().find(|field| is_named(field, "google.protobuf.FieldMask"));
    let call = |why: String, message: Vec<u8>, member: Option<String>| Call {
        title: format!("{rpc} {why}"),
        rpc: rpc.clone(),
        message,
        codes: vec![Code::InvalidArgument],
        member,
    };
    let mut calls = Vec::new();
    for field in input.fields().filter(|field| Rules::of(field).required) {
        let name = field.name().to_owned();
        calls.push(call(format!("without `{name}`"), Vec::new(), Some(name)));
    }
    // What is no message at all, and a message cut off.
    for garbage in [vec![0xff; 16], vec![0x0a, 0x7f, 1], vec![0x08]] {
        let no_bug = [Code::InvalidArgument, Code::NotFound, Code::Unimplemented, Code::Ok];
        let call = call(format!("as {garbage:?}"), garbage, None);
        calls.push(Call { codes: no_bug.to_vec(), ..call });
    }
    for place in places(input.fields().collect()) {
        let rules = Rules::of(&place.field);
        let alone = place.around.first().is_some_and(FieldDescriptor::is_list);
        for (why, value) in bad_values(&place.field, &rules) {
            let mut whole = DynamicMessage::new(input.clone());
            set(&mut whole, &place, value);
            if let (Some(mask), Some(top)) = (&mask, place.around.first()) {
                let inner = place.around.get(1).unwrap_or(&place.field);
                let _ = top;
                whole.set_field(mask, mask_of(mask, inner.name()));
            }
            let name = place.name();
            let member = (!alone).then(|| name.clone());
            let call = call(format!("with `{name}` {why}"), whole.encode_to_vec(), member);
            let id = place.around.is_empty() && name == "id";
            let codes = match (alone, id) {
                (true, _) => vec![Code::InvalidArgument, Code::Ok],
                (_, true) => vec![Code::InvalidArgument, Code::NotFound, Code::Unimplemented],
                _ => call.codes.clone(),
            };
            calls.push(Call { codes, ..call });
        }
    }
    // An operation that is always refused need not look at what it is given.
    for call in &mut calls {
        if method.name().starts_with("Delete") {
            call.codes.push(Code::Unimplemented);
        }
    }
    calls
}

fn is_named(field: &FieldDescriptor, name: &str) -> bool {
    field.kind().as_message().is_some_and(|message| message.full_name() == name)
}

fn mask_of(field: &FieldDescriptor, path: &str) -> Reflected {
    let Kind::Message(kind) = field.kind() else { return Reflected::String(path.to_owned()) };
    let mut mask = DynamicMessage::new(kind);
    let paths = Reflected::List(vec![Reflected::String(path.to_owned())]);
    mask.set_field_by_name("paths", paths);
    Reflected::Message(mask)
}

/// Puts a value where the place is, and the messages around it.
fn set(whole: &mut DynamicMessage, place: &Place, value: Reflected) {
    let mut value = if place.field.is_list() { Reflected::List(vec![value]) } else { value };
    let mut field = place.field.clone();
    for outer in place.around.iter().rev() {
        let Kind::Message(kind) = outer.kind() else { return };
        let mut message = DynamicMessage::new(kind);
        message.set_field(&field, value);
        let message = Reflected::Message(message);
        value = if outer.is_list() { Reflected::List(vec![message]) } else { message };
        field = outer.clone();
    }
    whole.set_field(&field, value);
}

/// Values that protobuf can carry and the rules do not allow.
fn bad_values(field: &FieldDescriptor, rules: &Rules) -> Vec<(String, Reflected)> {
    let items = rules.items.as_deref();
    let rules = if field.is_list() { items.unwrap_or(rules) } else { rules };
    let mut found = Vec::new();
    let mut bad = |why: &str, value: Reflected| found.push((why.to_owned(), value));
    match field.kind() {
        Kind::String => {
            bad("U+0000", Reflected::String("a\0b".to_owned()));
            if let Some(most) = rules.max_len {
                bad("too long", Reflected::String("a".repeat(most + 1)));
            }
            if !rules.one_of.is_empty() {
                bad("no such word", Reflected::String("no_such_word".to_owned()));
            }
            if rules.pattern.is_some() || rules.email {
                bad("wrong shape", Reflected::String("!! no".to_owned()));
            }
        }
        Kind::Int32 => {
            for (limit, by) in [(rules.most, 1), (rules.least, -1)] {
                let number = limit.and_then(|limit| i32::try_from(limit + by).ok());
                if let Some(number) = number {
                    bad("out of bounds", Reflected::I32(number));
                }
            }
        }
        Kind::Message(kind) if kind.full_name() == "google.protobuf.Timestamp" => {
            for (seconds, nanos) in [(i64::MAX, 0), (0, -1), (0, i32::MAX)] {
                let mut time = DynamicMessage::new(kind.clone());
                time.set_field_by_name("seconds", Reflected::I64(seconds));
                time.set_field_by_name("nanos", Reflected::I32(nanos));
                bad("beyond the calendar", Reflected::Message(time));
            }
        }
        Kind::Message(kind) if kind.full_name() == "google.protobuf.Struct" => {
            let json = |wire: prost_types::Struct| {
                DynamicMessage::decode(kind.clone(), wire.encode_to_vec().as_slice()).unwrap()
            };
            use prost_types::value::Kind as Wire;
            let zero = Wire::StringValue("b\0c".to_owned());
            for (why, name, value) in [
                ("not a number", "a", Wire::NumberValue(f64::NAN)),
                ("endless", "a", Wire::NumberValue(f64::INFINITY)),
                ("U+0000", "a", zero),
                ("U+0000 in a name", "a\0", Wire::BoolValue(true)),
            ] {
                let fields = [(name.to_owned(), prost_types::Value { kind: Some(value) })];
                let wire = prost_types::Struct { fields: fields.into() };
                bad(why, Reflected::Message(json(wire)));
            }
        }
        _ => {}
    }
    found
}

async fn try_grpc(caller: &Caller, call: Call) -> Option<String> {
    let (code, message, fields) = match caller.grpc(&call.rpc, call.message).await {
        Ok(_) => (Code::Ok, String::new(), Vec::new()),
        Err(status) => (status.code(), status.message().to_owned(), named(&status)),
    };
    if !call.codes.contains(&code) {
        return Some(format!("{}: {code:?}, not {:?}: {message}", call.title, call.codes));
    }
    let member = call.member.filter(|_| code == Code::InvalidArgument)?;
    let found = fields.iter().any(|field| is_member(field, &member));
    (!found).then(|| format!("{}: {fields:?} do not name `{member}`: {message}", call.title))
}

/// A call by one who may not.
#[derive(Clone)]
struct Strange {
    who: &'static str,
    caller: Caller,
    status: u16,
    code: &'static str,
    rpc: String,
    /// None: over gRPC.
    route: Option<Route>,
}

async fn refuses(call: Strange, ground: &Ground) -> Option<String> {
    let Strange { who, caller, status: wanted, code: word, rpc, route } = call;
    let Some(route) = route else {
        let Err(status) = caller.grpc(&rpc, Vec::new()).await else {
            return Some(format!("{rpc} answers {who}"));
        };
        let code = if wanted == 401 { Code::Unauthenticated } else { Code::PermissionDenied };
        let right = status.code() == code && reason(&status) == word;
        return (!right).then(|| format!("{rpc} to {who}: {status:?}"));
    };
    // An owner may call what has a twin outside the tenant application.
    let path = fill(&route, |name| ground.item(&route, name));
    let body = (!route.body.is_empty()).then(|| b"{}".to_vec());
    let (status, body) = caller.rest(&route.verb, &path, body).await;
    let right = status == wanted && body["error"] == word && body["ok"] == json!(false);
    (!right).then(|| format!("{} {} to {who}: {status} {body}", route.verb, route.path))
}
