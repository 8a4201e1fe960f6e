//! Writes the REST routes and the OpenAPI document from the descriptors that the model crate
//! compiled, and the list of the documentation's pages.

#[path = "build/documentation.rs"]
mod documentation;
#[path = "build/events.rs"]
mod events;

use std::{collections::BTreeSet, env, fs, path::PathBuf};

use gateway_rest_build::{Access, Info, Options, Requirement, bearer, openapi, openapi_text};
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor, MethodDescriptor, Value};
use serde_json::{Map, json};

const DESCRIPTION: &str = "Decides whether an AI agent's action is permitted, explains why, \
     records it so that anyone can verify and replay it, and lets people hold, approve and stop it.\n\n\
     Every error body is `{ok: false, error, message, details, request_id}`. Success bodies of paths \
     below `/api/` begin with `ok: true`, except the body of `/api/v1/runtime/evaluate` and the messages \
     of streams. Success bodies of other paths have no `ok`. Where a tenant's id is expected, its slug \
     is accepted. Lists take `limit` (1 to 500) and `page_token`. Times are RFC 3339 in UTC; in a query also a span before now: `-90s`, \
     `-15m`, `-1h`, `-7d`.\n\n\
     A body is JSON without a content coding: at most 256 KiB, and at most 1 MiB as protobuf. A free-form \
     member nests at most 32 levels, including itself. An error lists at most 50 members, and then \
     the number of further members. Malformed HTTP (an invalid head, over 100 headers or 16 KiB of \
     them) gets a 400 or 431 without a body.\n\n\
     Within a version of the API, operations, members, parameters and values of enums may be added: \
     ignore unknown members, treat an unknown `error` by its HTTP status, and an unknown `decision` as \
     `deny`.";

/// The version of the API, as in its paths.
const API_VERSION: &str = "1.0.0";
/// JSON Schemas of the bodies that are not messages.
const DOCUMENTS: &str = "openapi/documents.json";
/// Examples of fields by `Message.field`, or by the field's name in all messages.
const EXAMPLES: &str = "openapi/examples.json";

/// The tags that most readers look for. They come first in the document.
const FIRST_TAGS: [&str; 7] =
    ["Runtime", "Decision", "Approval", "StopSignal", "Quarantine", "Evidence", "Event"];

/// Paths below `/api/`. Their success bodies have no `ok`.
const WITHOUT_OK: [&str; 1] = [
    // The interface specification shows the whole body, without `ok`.
    "/api/v1/runtime/evaluate",
];

/// Methods that are called with POST but do not change data. They take no Idempotency-Key.
const UNKEYED: [&str; 5] =
    ["AdmitPurpose", "ExportPersonalData", "ImpactPolicies", "SimulateDecision", "ValidatePolicy"];

/// Methods that limit how often a caller may call. Streams limit how many may be open.
const LIMITED: &str = "Authorize BatchEvaluate CaptureLead DecideHook Evaluate EvaluateDecision FeedRealitySnapshot \
    FeedRealitySnapshots GetDirectoryConsultant TestWebhookEndpoint";
/// The headers that show limits, and their components.
const LIMITS: [(&str, &str); 2] =
    [("RateLimit", "RateLimit"), ("RateLimit-Policy", "RateLimitPolicy")];

/// Methods that read one tenant. The installation's owner belongs to no tenant and must name one.
const OF_ONE_TENANT: [&str; 3] = ["ListEvents", "StreamEvents", "FindUnknownNames"];

#[expect(
    clippy::disallowed_methods,
    reason = "cargo passes data to build scripts in the environment"
)]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    let descriptors = env::var("DEP_AUTHORITY_MODEL_DESCRIPTORS")?;
    println!("cargo::rerun-if-changed={descriptors}");
    let pool = DescriptorPool::decode(fs::read(descriptors)?.as_slice())?;
    let packages = pool.services().map(|service| service.package_name().to_owned());
    let packages = packages.filter(|package| package.starts_with("authority."));
    let options = Options {
        rest: "authority.rest.v1.rest".to_owned(),
        field: "authority.rest.v1.field".to_owned(),
        packages: packages.collect(),
        ok: |path| path.starts_with("/api/") && !WITHOUT_OK.contains(&path),
        examples: serde_json::from_str(&fs::read_to_string(EXAMPLES)?)?,
        ..Options::default()
    };
    println!("cargo::rustc-env=API_VERSION={API_VERSION}");
    println!("cargo::rerun-if-changed={EXAMPLES}");
    check_examples(&pool, &options);
    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("routes.rs"), gateway_rest_build::routes(&pool, &options))?;
    println!("cargo::rerun-if-changed={DOCUMENTS}");
    let documents: Map<String, serde_json::Value> =
        serde_json::from_str(&fs::read_to_string(DOCUMENTS)?)?;
    let event_types = env::var("DEP_AUTHORITY_WEBHOOK_EVENT_TYPES")?;
    println!("cargo::rerun-if-changed={event_types}");
    let event_types = serde_json::from_str(&fs::read_to_string(event_types)?)?;
    let info = Info {
        description: DESCRIPTION.to_owned(),
        documents: documents.into_iter().chain(events::events(event_types)).collect(),
        operation_id: &operation_id,
        first_tags: &FIRST_TAGS,
        amend: &headers,
        security_schemes: vec![
            (
                "owner".to_owned(),
                bearer("JWT", "RS256, `public_metadata.role` = `owner`: the installation's owner."),
            ),
            (
                "member".to_owned(),
                bearer("JWT", "RS256, of a tenant: `org_id` or `public_metadata.tenant_id`."),
            ),
            (
                "api_key".to_owned(),
                bearer("svc_<env>_<id>_<secret>_<checksum>", "An API key with the named scope."),
            ),
        ],
        access: &access,
        error: error(),
        ..Info::new("Agent Authority", API_VERSION)
    };
    let mut document = openapi(&pool, &options, &info);
    document["info"]["x-build-version"] = env!("CARGO_PKG_VERSION").into();
    parts(&mut document["components"]);
    // For an allow with constraints, Evaluate returns `allow` (runtime/answer.rs).
    document["components"]["schemas"]["EvaluateResponse"]["properties"]["decision"] = json!({
        "type": "string", "enum": ["allow", "require_approval", "deny"],
        "description": "allow, require_approval or deny.",
    });
    // By reference: openapi-generator writes invalid Python for the body of an inline webhook.
    document["components"]["pathItems"] = events::webhooks();
    document["webhooks"] = json!({"event": {"$ref": "#/components/pathItems/event"}});
    fs::write(out.join("openapi.json"), openapi_text(&document))?;
    Ok(fs::write(out.join("documentation.rs"), documentation::pages()?)?)
}

/// Fails the build if an example has a name that is neither a field nor a method.
fn check_examples(pool: &DescriptorPool, options: &Options) {
    let messages = pool.all_messages().filter(|of| of.package_name().starts_with("authority."));
    let methods = pool.services().flat_map(|service| service.methods().collect::<Vec<_>>());
    let methods = methods.map(|method| method.name().to_owned());
    let names: BTreeSet<_> = messages
        .flat_map(|of| {
            let names = of.fields().map(|field| field.name().to_owned()).collect::<Vec<_>>();
            let whole = names.iter().map(|name| format!("{}.{name}", of.name()));
            whole.chain(names.clone()).collect::<Vec<_>>()
        })
        .chain(methods)
        .collect();
    let unknown: Vec<_> = options.examples.keys().filter(|name| !names.contains(*name)).collect();
    assert!(unknown.is_empty(), "{EXAMPLES}: no fields or methods {unknown:?}");
}

/// Returns an operation's id: `list_principals`, or with a prefix for the surfaces of a tenant's
/// members and of the gateway: `app_list_principals`, `gateway_list_events`. All ids are in
/// `openapi/operations.txt`.
fn operation_id(method: &MethodDescriptor, _: usize, path: &str) -> String {
    let surface = match path {
        _ if path.starts_with("/api/v1/app/") => "app_",
        _ if path.starts_with("/v1/") => "gateway_",
        _ => "",
    };
    let mut id = surface.to_owned();
    for (place, letter) in method.name().char_indices() {
        if letter.is_uppercase() && place > 0 {
            id.push('_');
        }
        id.extend(letter.to_lowercase());
    }
    id
}

/// Returns the credentials that a binding of a method accepts, from `authority.auth.v1.access`.
fn access(method: &MethodDescriptor, place: usize) -> Access {
    let rule = rule(method, place);
    // The model's build has checked the number of rules.
    let rule = rule.unwrap_or_else(|| panic!("{}: no access rule", method.full_name()));
    let flag = |name| rule.get_field_by_name(name).and_then(|v| v.as_bool()).unwrap_or_default();
    let open = |scheme: &str, word: Option<&str>| Requirement {
        scheme: scheme.to_owned(),
        scopes: word.into_iter().map(str::to_owned).collect(),
    };
    let mut alternatives = Vec::new();
    if flag("owner") {
        alternatives.push(open("owner", None));
    }
    if flag("member") {
        alternatives.push(open("member", None));
    }
    let roles = rule.get_field_by_name("roles");
    let roles = roles.iter().filter_map(|v| v.as_list()).flatten().filter_map(Value::as_str);
    alternatives.extend(roles.map(|role| open("member", Some(role))));
    let scope = rule.get_field_by_name("scope");
    let scope = scope.as_ref().and_then(|v| v.as_str()).filter(|scope| !scope.is_empty());
    alternatives.extend(scope.map(|scope| open("api_key", Some(scope))));
    assert!(
        flag("public") == alternatives.is_empty(),
        "{}: a binding must be public or have access rules, not both",
        method.full_name()
    );
    Access { alternatives }
}

/// Returns the rule of a binding. The first binding's rule is the option itself. The option
/// contains the rules of the other bindings, in their order.
fn rule(method: &MethodDescriptor, place: usize) -> Option<DynamicMessage> {
    let extension = method.parent_pool().get_extension_by_name("authority.auth.v1.access")?;
    let options = method.options();
    let first = options.has_extension(&extension).then(|| options.get_extension(&extension))?;
    let first = first.as_message()?;
    let Some(other) = place.checked_sub(1) else { return Some(first.clone()) };
    let others = first.get_field_by_name("additional_bindings")?;
    others.as_list()?.get(other)?.as_message().cloned()
}

/// Allows a span before now for a time in a query (`src/app/host.rs`).
fn spans(parameter: &mut serde_json::Value) {
    if parameter["in"] == "query" && parameter["schema"]["format"] == "date-time" {
        let time = parameter["schema"].take();
        parameter["schema"] =
            json!({"anyOf": [time, {"type": "string", "pattern": "^-[0-9]+[smhd]$"}]});
    }
}

/// States in the description of a list without `count` that the list has no `count`.
fn without_count(operation: &mut serde_json::Value) {
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let names: Vec<_> = parameters.filter_map(|parameter| parameter["name"].as_str()).collect();
    let is_list =
        names.contains(&"limit") && ["page_token", "after"].iter().any(|one| names.contains(one));
    if is_list && !names.contains(&"count") {
        let text = operation.get("description").unwrap_or(&operation["summary"]);
        let text = text.as_str().unwrap_or_default().trim_end_matches('.');
        operation["description"] = format!("{text}. This list has no `count`.").into();
    }
}

/// Returns the JSON Schema of every error's body.
fn error() -> serde_json::Value {
    json!({
        "type": "object",
        "description": "Why the request failed.",
        "required": ["ok", "error", "message", "details", "request_id"],
        "properties": {
            "ok": {"type": "boolean", "description": "Always false here."},
            "error": {"$ref": "#/components/schemas/ErrorWord"},
            "message": {"type": "string", "description": "For people."},
            "details": {
                "type": "array",
                "description": "Each invalid field, and each value that the client can continue with.",
                "items": {
                    "type": "object",
                    "required": ["field", "problem"],
                    "properties": {
                        "field": {"type": "string"},
                        "problem": {"type": "string"},
                        "value": {
                            "type": ["integer", "string"],
                            "description": "The value of `field`, as in ErrorInfo's metadata over gRPC: \
                                `oldest` and `head` of `sequence_expired` and `sequence_ahead`; `role` and \
                                `permitted_roles` of a role that may not call the operation.",
                        },
                    },
                },
            },
            "request_id": {"type": ["string", "null"], "description": "Identifies the request in the log."},
        },
    })
}

/// Adds the request and response headers of an operation.
fn headers(method: &MethodDescriptor, verb: &str, operation: &mut serde_json::Value) {
    let part = |place: &str, name: &str| json!({"$ref": format!("#/components/{place}/{name}")});
    let mut takes = vec![part("parameters", "RequestId")];
    let mut gives = Map::from_iter([("X-Request-Id".to_owned(), part("headers", "RequestId"))]);
    if matches!(verb, "POST" | "PATCH") && !UNKEYED.contains(&method.name()) {
        takes.push(part("parameters", "IdempotencyKey"));
        gives.insert("Idempotency-Replayed".to_owned(), part("headers", "IdempotencyReplayed"));
        // The first call is still running, or the key was sent with another body.
        for status in ["409", "422"] {
            operation["responses"][status] = part("responses", status);
        }
    }
    let owner_only = operation["security"] == json!([{"owner": []}]);
    for parameter in operation["parameters"].as_array_mut().into_iter().flatten() {
        spans(parameter);
        if owner_only && OF_ONE_TENANT.contains(&method.name()) && parameter["name"] == "tenant_id"
        {
            parameter["required"] = true.into();
        }
    }
    without_count(operation);
    // An operation on one record that may return 412 takes the record's version in If-Match.
    let of_one = operation["parameters"].as_array().is_some_and(|all| !all.is_empty());
    if of_one && operation["responses"].get("412").is_some() {
        takes.push(part("parameters", "IfMatch"));
    }
    if LIMITED.split(' ').any(|name| name == method.name()) || method.is_server_streaming() {
        for (name, component) in LIMITS {
            gives.insert(name.to_owned(), part("headers", component));
        }
    }
    let output = method.output();
    if verb != "DELETE" && is_record(&output) {
        gives.insert("ETag".to_owned(), part("headers", "ETag"));
    }
    if let Some(parameters) = operation["parameters"].as_array_mut() {
        parameters.extend(takes);
    } else {
        operation["parameters"] = takes.into();
    }
    let responses = operation["responses"].as_object_mut().into_iter().flatten();
    for (_, response) in responses.filter(|(status, _)| status.starts_with('2')) {
        let headers = response.as_object_mut().map(|of| of.entry("headers").or_insert(json!({})));
        if let Some(headers) = headers.and_then(serde_json::Value::as_object_mut) {
            headers.extend(gives.clone());
        }
    }
}

/// Returns whether responses of this type contain the record's version.
fn is_record(message: &MessageDescriptor) -> bool {
    let pool = message.parent_pool();
    let resource = pool.get_extension_by_name("google.api.resource");
    resource.is_some_and(|resource| message.options().has_extension(&resource))
}

/// Adds the components for the headers, and the request's id to every error.
fn parts(components: &mut serde_json::Value) {
    let text = |description: &str, name: &str, most: usize| {
        json!({"name": name, "in": "header", "required": false, "description": description,
               "schema": {"type": "string", "minLength": 1, "maxLength": most}})
    };
    components["parameters"] = json!({
        "RequestId": text("Echoed in the response and in the log. Replaced by a generated id if it is \
            absent, empty, too long, or not visible ASCII.", "X-Request-Id", 128),
        "IdempotencyKey": text("The same key with the same body repeats the first response, for 24 \
            hours; 422 with another body. A response with a secret is repeated once, within ten minutes; \
            then 409.", "Idempotency-Key", 255),
        "IfMatch": text("The ETag of the expected version; 412 if the record has another version.", "If-Match", 255),
    });
    let header =
        |description: &str| json!({"description": description, "schema": {"type": "string"}});
    components["headers"] = json!({
        "RequestId": header("The request's id."),
        "ETag": header("The record's version, for If-Match."),
        "RateLimit": header("The calls that are left of each limit (`r`), and the seconds until the whole \
            limit is available again (`t`): `\"decisions_per_api_key\";r=4;t=1`. Of streams, the number that may \
            still be opened, without `t`. Absent without a limit."),
        "RateLimitPolicy": header("Each limit (`q`) and its window in seconds (`w`), or `qu` of open streams: \
            `\"decisions_per_api_key\";q=5;w=1`. Absent without a limit."),
        "RetryAfter": header("The seconds to wait."),
        "IdempotencyReplayed": {
            "description": "`true` if this repeats the first response to the Idempotency-Key.",
            "schema": {"type": "string", "const": "true"},
        },
    });
    for (_, response) in components["responses"].as_object_mut().into_iter().flatten() {
        response["headers"]["X-Request-Id"] = json!({"$ref": "#/components/headers/RequestId"});
    }
    let refused = &mut components["responses"]["429"]["headers"];
    refused["Retry-After"] = json!({"$ref": "#/components/headers/RetryAfter"});
    for (name, component) in LIMITS {
        refused[name] = json!({"$ref": format!("#/components/headers/{component}")});
    }
    if components["responses"].get("422").is_none() {
        components["responses"]["422"] = json!({
            "description": "The Idempotency-Key was used before with another body.",
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
        });
    }
}
