//! The first request of a new agent, ready to be pasted into a terminal.

use std::collections::BTreeSet;

use authority_decision::Pattern;
use authority_model::proto::registry::ListPurposesRequest;
use serde_json::json;

use crate::kit::{known_actions::known_actions, prelude::*};

/// Commands that send a request for a decision.
pub(super) struct FirstRequest {
    /// The action of the request.
    pub(super) action: String,
    pub(super) curl: String,
    pub(super) grpc: String,
}

/// The amount of the request, unless the delegation permits less.
const AMOUNT: f64 = 100.0;

impl FirstRequest {
    /// The request of an agent under a delegation with these values.
    pub(super) async fn of(
        view: &View,
        tenant: &str,
        agent: &str,
        values: &Map<String, Value>,
        secret: &str,
    ) -> Self {
        let first = |member: &str| values.get(member)?.as_array()?.first()?.as_str();
        let known = known_actions(view, tenant).await;
        let action = concrete(first("actions").unwrap_or_default(), &known);
        let purpose = match first("purposes") {
            Some(slug) => Some(slug.to_owned()),
            None => purpose(view, tenant, &action).await,
        };
        let mut context = Map::new();
        if let Some(currency) = values.get("currency") {
            let limit = values.get("max_amount").and_then(Value::as_str);
            let limit = limit.and_then(|limit| limit.parse().ok()).unwrap_or(AMOUNT);
            context.insert("amount".to_owned(), json!(AMOUNT.min(limit)));
            context.insert("currency".to_owned(), currency.clone());
        }
        if let Some(place) = first("jurisdictions") {
            context.insert("jurisdiction".to_owned(), Value::from(place));
        }
        let mut request = json!({"subject": agent, "action": action});
        let more = [
            ("purpose", purpose),
            ("resource_id", first("resource_ids").map(str::to_owned)),
            ("workspace_id", first("workspace_ids").map(str::to_owned)),
        ];
        for (name, value) in more {
            if let Some(value) = value {
                request[name] = Value::from(value);
            }
        }
        if !context.is_empty() {
            request["context"] = Value::Object(context);
        }
        let body = request.to_string().replace('\'', "'\\''");
        let url = view.console.0.public_url.trim_end_matches('/');
        Self { curl: curl(url, secret, &body), grpc: grpc(url, secret, &body), action }
    }
}

fn curl(url: &str, secret: &str, body: &str) -> String {
    format!(
        "curl -sS {url}/api/v1/runtime/evaluate \\\n  -H 'authorization: Bearer {secret}' \\\n  -H 'content-type: \
         application/json' \\\n  -d '{body}'"
    )
}

fn grpc(url: &str, secret: &str, body: &str) -> String {
    let (scheme, host) = url.split_once("://").unwrap_or(("http", url));
    let host = host.split('/').next().unwrap_or(host);
    let (plain, port) = if scheme == "https" { ("", ":443") } else { ("-plaintext ", ":80") };
    let has_port = host.rsplit(':').next().is_some_and(|end| end.parse::<u16>().is_ok());
    let port = if has_port { "" } else { port };
    format!(
        "grpcurl {plain}-H 'authorization: Bearer {secret}' \\\n  -d '{body}' \\\n  {host}{port} \
         authority.runtime.v1.RuntimeService/Evaluate"
    )
}

/// An action that the pattern covers: a known one if there is one.
fn concrete(pattern: &str, known: &BTreeSet<String>) -> String {
    if !pattern.ends_with('*') {
        return pattern.to_owned();
    }
    let covers = |name: &&String| {
        let (name, pattern) = (name.parse::<Pattern>(), pattern.parse::<Pattern>());
        matches!((name, pattern), (Ok(name), Ok(pattern)) if name.is_within(&pattern))
    };
    let found = known.iter().filter(|name| !name.contains('*')).find(covers);
    found.cloned().unwrap_or_else(|| pattern.replace('*', "example"))
}

/// A purpose of the tenant that admits the action.
async fn purpose(view: &View, tenant: &str, action: &str) -> Option<String> {
    let asked: Pattern = action.parse().ok()?;
    let request = ListPurposesRequest {
        tenant_id: Some(tenant.to_owned()),
        limit: Some(100),
        ..ListPurposesRequest::default()
    };
    let listed = view.calls.call(&request).await.ok()?;
    let admits =
        |pattern: &String| pattern.parse::<Pattern>().is_ok_and(|known| asked.is_within(&known));
    let mut purposes = listed.purposes.into_iter().filter(|purpose| purpose.state == "active");
    purposes.find(|purpose| purpose.allowed_actions.iter().any(admits)).map(|purpose| purpose.slug)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_becomes_an_action_that_it_covers() {
        let known = ["payment.*", "payment.execute", "report.read"].map(str::to_owned).into();
        for (pattern, action) in [
            ("payment.refund", "payment.refund"),
            ("payment.*", "payment.execute"),
            ("calendar.*", "calendar.example"),
            ("*", "payment.execute"),
        ] {
            assert_eq!(concrete(pattern, &known), action);
        }
        assert_eq!(concrete("*", &BTreeSet::new()), "example");
    }

    #[test]
    fn a_command_has_the_host_and_its_port() {
        for (url, ends) in [
            ("https://authority.example.org", "authority.example.org:443"),
            ("https://authority.example.org/base", "authority.example.org:443"),
        ] {
            let command = grpc(url, "svc_x", "{}");
            assert!(command.contains(&format!("\n  {ends} authority.")), "{command}");
            assert!(!command.contains("-plaintext"), "{command}");
        }
        assert!(grpc("http://127.0.0.1:8080", "k", "{}").contains("-plaintext -H"));
        assert!(
            curl("http://a", "k", "{}")
                .starts_with("curl -sS http://a/api/v1/runtime/evaluate \\\n")
        );
    }
}
