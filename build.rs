//! Writes the OpenAPI document from the descriptors that the model crate compiled.

use std::{env, fs, path::PathBuf};

use gateway_rest_build::{Access, Info, Options, bearer, openapi};
use prost_reflect::{DescriptorPool, MethodDescriptor, Value};
use serde_json::json;

const DESCRIPTION: &str = "Decides whether an AI agent's action is permitted, says why, records it \
     so that anyone can verify and replay it, and lets people hold, approve and stop it.\n\n\
     Every error body is `{ok: false, error, message, details, request_id}`. Lists take `limit` \
     (1 to 500) and `page_token`. Times are RFC 3339 in UTC.";

#[expect(clippy::disallowed_methods, reason = "cargo speaks to a build script by the environment")]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    let descriptors = env::var("DEP_AUTHORITY_MODEL_DESCRIPTORS")?;
    println!("cargo::rerun-if-changed={descriptors}");
    let pool = DescriptorPool::decode(fs::read(descriptors)?.as_slice())?;
    let options = Options {
        rest: "authority.rest.v1.rest".to_owned(),
        packages: vec!["authority".to_owned()],
        ..Options::default()
    };
    let info = Info {
        description: DESCRIPTION.to_owned(),
        servers: vec!["http://127.0.0.1:8080".to_owned()],
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
                bearer("svc_<env>_<id>_<secret>_<checksum>", "An API key with the scope named."),
            ),
        ],
        access: &access,
        error: error(),
        ..Info::new("Agent Authority", env!("CARGO_PKG_VERSION"))
    };
    let document = serde_json::to_string(&openapi(&pool, &options, &info))?;
    Ok(fs::write(PathBuf::from(env::var("OUT_DIR")?).join("openapi.json"), document)?)
}

/// Which security schemes open a method, from `authority.auth.v1.access`.
fn access(method: &MethodDescriptor) -> Access {
    let pool = method.parent_pool();
    let Some(extension) = pool.get_extension_by_name("authority.auth.v1.access") else {
        return Access::default();
    };
    let options = method.options();
    let value = options.get_extension(&extension);
    let Some(rule) = value.as_message() else { return Access::default() };
    let flag = |name| rule.get_field_by_name(name).and_then(|v| v.as_bool()).unwrap_or_default();
    let scope = rule.get_field_by_name("scope");
    let scope = scope.as_ref().and_then(|v| v.as_str()).unwrap_or_default();
    let roles = rule.get_field_by_name("roles");
    let roles: Vec<_> = roles
        .iter()
        .filter_map(|v| v.as_list())
        .flatten()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect();
    let mut access = Access::default();
    for (scheme, opens) in [
        ("owner", flag("owner")),
        ("member", flag("member") || !roles.is_empty()),
        ("api_key", !scope.is_empty()),
    ] {
        if opens {
            access.schemes.push(scheme.to_owned());
        }
    }
    access.scopes.extend(roles);
    if !scope.is_empty() {
        access.scopes.push(scope.to_owned());
    }
    access
}

/// JSON Schema of every refusal's body.
fn error() -> serde_json::Value {
    json!({
        "type": "object",
        "description": "Why there is no success.",
        "required": ["ok", "error", "message", "details", "request_id"],
        "properties": {
            "ok": {"const": false},
            "error": {"type": "string", "description": "One word a client can switch on.",
                "examples": ["invalid_request"]},
            "message": {"type": "string", "description": "For people."},
            "details": {"type": "array", "description": "Each member at fault.", "items": {
                "type": "object",
                "required": ["field", "problem"],
                "properties": {"field": {"type": "string"}, "problem": {"type": "string"}},
            }},
            "request_id": {"type": ["string", "null"], "description": "Finds it in the log."},
        },
    })
}
