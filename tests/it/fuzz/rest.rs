//! Invalid REST calls: fields of the body and the query, and variables of the path.

use prost_reflect::{FieldDescriptor, Kind};
use serde_json::{Value, json};

use super::{
    ground::{Ground, Side, fill, is_create},
    routes::{Route, Rules, message},
    values::{Source as _, bads, good, places, sample},
};
use crate::support::wire::{Caller, encoded};

/// A REST call that the service must refuse.
pub(super) struct Case {
    title: String,
    verb: String,
    path: String,
    body: Option<Vec<u8>>,
    content_type: &'static str,
    statuses: Vec<u16>,
    /// The field that `details` must name.
    member: Option<String>,
}

impl Case {
    pub(super) fn new(route: &Route, why: &str, path: String, body: Option<String>) -> Self {
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

    pub(super) fn naming(self, member: impl Into<String>) -> Self {
        Self { member: Some(member.into()), ..self }
    }

    pub(super) fn giving(self, statuses: &[u16]) -> Self {
        Self { statuses: statuses.to_vec(), ..self }
    }
}

pub(super) fn rest_cases(route: &Route, ground: &Ground) -> Vec<Case> {
    let mut cases = body_cases(route, ground);
    cases.extend(text_cases(route, ground));
    cases.extend(query_cases(route, ground));
    cases.extend(path_cases(route, ground));
    // An operation that is always refused need not check its input.
    for case in cases.iter_mut().filter(|_| route.refused) {
        case.statuses.push(405);
        case.member = None;
    }
    for case in cases.iter_mut().filter(|_| route.limited) {
        case.statuses.push(429);
    }
    cases
}

/// Returns cases with an invalid value for each field of the body.
pub(super) fn body_cases(route: &Route, ground: &Ground) -> Vec<Case> {
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
        // A batch can succeed with status 200 although some of its items fail.
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
            && let Some(good) = good(&place.field, &rules, &side)
        {
            let body = place.body(&base, Some(&good.to_string()), &side);
            cases.push(case(format!("with the server's own `{name}`"), body).naming(name));
        }
    }
    cases
}

/// Returns cases in which the body as a whole is invalid.
pub(super) fn text_cases(route: &Route, ground: &Ground) -> Vec<Case> {
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
        case("far too deep", &far).giving(&[400, 413]),
        case("with U+0000 in a name", &zero),
        case("with a body that is not an object", "[]"),
        case("with a body that is not an object", "5"),
        case("with a body that is not an object", r#""x""#),
        case("with half an object", "{"),
        case("with two objects", "{}{}"),
        case("with a body that is not JSON", "hello"),
        case("with a comma too many", r#"{"a":1,}"#),
    ];
    if let Some((member, value)) = ground.base(route).into_iter().next() {
        let body = format!(r"{{{inside},{}:{value}}}", json!(member));
        cases.push(case(&format!("with `{member}` twice"), &body));
    }
    cases.push(Case {
        body: Some(vec![b'{', b'"', 0xff, b'"', b':', b'1', b'}']),
        ..case("with invalid UTF-8", "")
    });
    let large = format!(r#"{{"x":"{}"}}"#, "a".repeat(257 << 10));
    cases.push(case("with too large a body", &large).giving(&[413]));
    cases.push(Case { content_type: "text/plain", ..case("as text", &base) }.giving(&[415]));
    cases
}

/// Returns cases with an invalid value for each parameter of the query.
pub(super) fn query_cases(route: &Route, ground: &Ground) -> Vec<Case> {
    let path = fill(route, |name| ground.item(route, name));
    let body = (!route.body.is_empty()).then(|| Value::Object(ground.base(route)).to_string());
    // A rejected query of a DELETE may lead to another operation's path, which answers 405.
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
                if rules.refuse_empty(&field) {
                    values.push(String::new());
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
            cases.push(case(format!("with {name} of invalid UTF-8"), format!("{name}=%ff")));
        }
    }
    cases
}

/// Returns cases with an invalid value for each variable of the path.
pub(super) fn path_cases(route: &Route, ground: &Ground) -> Vec<Case> {
    let mut cases = Vec::new();
    // A relationship's key can be in the query, or encoded in the path.
    let unread = route.collection().contains("/relationships/");
    // The installation's owner names the tenant of an MCP server in the query.
    let unread = unread || route.collection().contains("/mcp-servers");
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

/// Returns cases in which a reference is the id of another tenant's record.
pub(super) fn foreign_cases(route: &Route, ground: &Ground) -> Vec<Case> {
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
        // Records of the installation may be used by all tenants.
        let Some(id) = theirs.reference(name, "").filter(|_| !ground.is_shared(name)) else {
            continue;
        };
        let listed = place.field.is_list();
        let value = if listed { json!([id]) } else { json!(id) };
        let body = place.body(&base, Some(&value.to_string()), &ours);
        let why = format!("with another tenant's `{}`", place.name());
        cases.push(Case::new(route, &why, path.clone(), Some(body)).naming(place.name()));
    }
    // A record without a `tenant_id` takes the tenant of the record that it refers to. If it has
    // only one reference, that reference is therefore never to another tenant.
    let names_tenant = places(route.body_fields())
        .iter()
        .any(|place| place.field.name() == "tenant_id" && !Rules::of(&place.field).output_only);
    if is_create(route) && cases.len() == 1 && !names_tenant {
        cases.clear();
    }
    cases
}

pub(super) async fn try_rest(caller: &Caller, case: Case) -> Option<String> {
    let size = case.body.as_ref().map_or(0, Vec::len);
    let sent = case.body.as_deref().filter(|_| size < 2000).map(String::from_utf8_lossy);
    let sent = sent.unwrap_or_default().into_owned();
    let (status, body) = caller.typed(&case.verb, &case.path, case.body, case.content_type).await;
    let problem = judge(status, &body, &case.statuses, case.member.as_deref())?;
    Some(format!("{}: {problem}: {body}\n    {} {sent}", case.title, cut(&case.path)))
}

pub(super) fn cut(text: &str) -> &str {
    text.get(..200).unwrap_or(text)
}

pub(super) fn judge(
    status: u16,
    body: &Value,
    statuses: &[u16],
    member: Option<&str>,
) -> Option<String> {
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
        429 => code == "rate_limited",
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

/// Returns whether the reported field is this field, or is within it.
pub(super) fn is_member(field: &str, member: &str) -> bool {
    let rest = field.strip_prefix(member);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}
