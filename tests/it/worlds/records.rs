//! The records of a world. The admin API creates, changes and deletes them, and worlds refer to
//! them by local names.

use std::collections::BTreeMap;

use chrono::Datelike as _;
use serde_json::{Map, Value};

use crate::support::{TestApp, http, nothing, only};

/// A kind of record: its name in worlds, its collection, the field of a response that contains the
/// record, and the default fields. In defaults, `@` stands for the local name, and `$` begins a
/// reference.
struct Kind {
    word: &'static str,
    collection: &'static str,
    key: &'static str,
    members: &'static str,
    /// The fields that identify a relationship. If empty, the id identifies the record.
    identity: &'static [&'static str],
}

const fn kind(
    word: &'static str,
    collection: &'static str,
    key: &'static str,
    members: &'static str,
) -> Kind {
    Kind { word, collection, key, members, identity: &[] }
}

#[rustfmt::skip]
const KINDS: [Kind; 19] = [
    kind("tenant", "tenants", "tenant", r#"{"name": "@", "slug": "$unique-@"}"#),
    kind("agent", "principals", "principal",
        r#"{"tenant_id": "$tenant", "principal_class": "agent", "name": "@", "display_name": "@"}"#),
    kind("human", "principals", "principal",
        r#"{"tenant_id": "$tenant", "principal_class": "human", "display_name": "@"}"#),
    kind("delegation", "delegations", "delegation",
        r#"{"tenant_id": "$tenant", "delegator_id": "$boss", "delegate_id": "$bot"}"#),
    Kind { identity: &["agent_id", "used_id", "used_kind"],
        ..kind("uses", "relationships/uses", "uses", r#"{"agent_id": "$bot"}"#) },
    Kind { identity: &["principal_id", "workspace_id"],
        ..kind("acts_in", "relationships/acts-in", "acts_in", r#"{"principal_id": "$bot"}"#) },
    Kind { identity: &["team_id", "principal_id"],
        ..kind("member_of", "relationships/member-of", "member_of", r#"{"principal_id": "$bot"}"#) },
    kind("access", "relationships/granted-access-to", "granted_access_to",
        r#"{"grantee_id": "$bot", "grantee_kind": "principal"}"#),
    kind("applies_to", "relationships/applies-to", "applies_to", "{}"),
    kind("workspace", "workspaces", "workspace", r#"{"tenant_id": "$tenant", "name": "@"}"#),
    kind("team", "teams", "team", r#"{"tenant_id": "$tenant", "name": "@"}"#),
    kind("project", "projects", "project", r#"{"tenant_id": "$tenant", "name": "@"}"#),
    kind("resource", "resources", "resource",
        r#"{"tenant_id": "$tenant", "kind": "ledger", "name": "@"}"#),
    kind("tool", "tools", "tool",
        r#"{"tenant_id": "$tenant", "name": "@", "function_signature": "@()"}"#),
    kind("model", "models", "model",
        r#"{"tenant_id": "$tenant", "model_provider": "p", "model_family": "@", "version": "1"}"#),
    kind("external_app", "external-apps", "external_app",
        r#"{"tenant_id": "$tenant", "vendor_name": "@", "connector_kind": "oauth"}"#),
    kind("purpose", "purposes", "purpose",
        r#"{"tenant_id": "$tenant", "slug": "@", "name": "@"}"#),
    kind("policy", "policies", "policy",
        r#"{"tenant_id": "$tenant", "name": "@", "regime": "internal"}"#),
    kind("api_key", "api-keys", "api_key", r#"{"tenant_id": "$tenant", "label": "@"}"#),
];

/// A record that a world has created.
struct Known {
    kind: &'static Kind,
    record: Value,
}

/// The records and values to which `$name` can refer.
#[derive(Default)]
pub(crate) struct Names {
    texts: BTreeMap<String, String>,
    known: BTreeMap<String, Known>,
}

impl Names {
    /// Replaces every reference in a value, and converts objects under `…_json` to texts.
    pub(crate) fn fill(&self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.fill_text(&text)),
            Value::Array(items) => items.into_iter().map(|item| self.fill(item)).collect(),
            Value::Object(members) => {
                let members = members.into_iter().map(|(name, value)| {
                    let value = self.fill(value);
                    let nested = value.is_object() || value.is_array();
                    let as_text = name.ends_with("_json") && nested;
                    (name, if as_text { Value::String(value.to_string()) } else { value })
                });
                Value::Object(members.collect())
            }
            other => other,
        }
    }

    fn fill_text(&self, text: &str) -> String {
        let mut parts = text.split('$');
        let mut filled = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let end = part.find(|c: char| !c.is_ascii_lowercase() && c != '_');
            let (name, rest) = part.split_at(end.unwrap_or(part.len()));
            let known = self.texts.get(name);
            filled += known.unwrap_or_else(|| panic!("the world has no text `${name}`"));
            filled += rest;
        }
        filled
    }

    /// Returns the secret of the API key with this name.
    pub(crate) fn secret(&self, name: &str) -> &str {
        &self.texts[&format!("{name} secret")]
    }
}

/// The admin API, called as the owner.
pub(crate) struct Records {
    client: reqwest::Client,
    base: String,
    token: String,
}

impl Records {
    pub(crate) fn new(app: &TestApp) -> Self {
        let client = http();
        let base = format!("{}/api/v1", String::from(app.base_url()));
        Self { client, base, token: String::from(app.owner_token()) }
    }

    /// Creates the tenant of a world, with a human, an agent and a purpose.
    pub(crate) async fn settle(&self, place: usize) -> Result<Names, String> {
        let mut names = Names::default();
        names.texts.insert("unique".to_owned(), format!("w{place}"));
        let day = authority_process::clock::Clock::default().now().weekday();
        let word = |day: chrono::Weekday| day.to_string().to_lowercase();
        names.texts.insert("today".to_owned(), word(day));
        names.texts.insert("yesterday".to_owned(), word(day.pred()));
        let first = [
            ("tenant tenant", nothing()),
            ("human boss", nothing()),
            ("agent bot", nothing()),
            ("purpose work", only("allowed_actions", ["*"])),
        ];
        for (act, body) in first {
            let (status, answer) = self.act(act, body, &mut names).await;
            if status != 201 {
                return Err(format!("{act}: status {status}: {answer}"));
            }
        }
        Ok(names)
    }

    /// Creates a record (`<kind> [<name>]`) or changes it (`<verb> <name>`).
    pub(crate) async fn act(&self, act: &str, body: Value, names: &mut Names) -> (u16, Value) {
        let (word, name) = act.split_once(' ').unwrap_or((act, ""));
        match KINDS.iter().find(|kind| kind.word == word) {
            Some(kind) => self.make(kind, name, body, names).await,
            None => self.change(word, name, body, names).await,
        }
    }

    async fn make(
        &self,
        kind: &'static Kind,
        name: &str,
        body: Value,
        names: &mut Names,
    ) -> (u16, Value) {
        let members = kind.members.replace('@', if name.is_empty() { "unnamed" } else { name });
        let mut whole: Map<String, Value> = serde_json::from_str(&members).unwrap();
        whole.extend(body.as_object().expect("a body").clone());
        let body = names.fill(Value::Object(whole));
        let (status, answer) = self.call("POST", kind.collection, Some(&body)).await;
        if status == 201 && !name.is_empty() {
            let record = answer[kind.key].clone();
            let id = record["id"].as_str().unwrap_or_default().to_owned();
            if kind.word == "tenant" && name == "tenant" {
                let slug = record["slug"].as_str().unwrap_or_default();
                names.texts.insert("slug".to_owned(), slug.to_owned());
            }
            if let Some(secret) = answer["secret"].as_str() {
                names.texts.insert(format!("{name} secret"), secret.to_owned());
            }
            names.texts.insert(name.to_owned(), id);
            names.known.insert(name.to_owned(), Known { kind, record });
        }
        (status, answer)
    }

    async fn change(&self, verb: &str, name: &str, body: Value, names: &Names) -> (u16, Value) {
        let Known { kind, record } =
            names.known.get(name).unwrap_or_else(|| panic!("`{verb} {name}`: no such record"));
        let text = |member: &str| record[member].as_str().unwrap_or_default();
        let item = format!("{}/{}", kind.collection, encoded(text("id")));
        match verb {
            "patch" => self.call("PATCH", &item, Some(&names.fill(body))).await,
            "delete" if kind.identity.is_empty() => self.call("DELETE", &item, None).await,
            "delete" => {
                let key: Vec<_> = kind
                    .identity
                    .iter()
                    .map(|member| format!("{member}={}", encoded(text(member))))
                    .collect();
                let item = format!("{}/-?{}", kind.collection, key.join("&"));
                self.call("DELETE", &item, None).await
            }
            _ => self.call("POST", &format!("{item}/{verb}"), Some(&names.fill(body))).await,
        }
    }

    async fn call(&self, method: &str, path: &str, body: Option<&Value>) -> (u16, Value) {
        let method = reqwest::Method::from_bytes(method.as_bytes()).unwrap();
        let request = self.client.request(method, format!("{}/{path}", self.base));
        let request = request.bearer_auth(&self.token);
        let request = match body {
            Some(body) => request.json(body),
            None => request,
        };
        let answer = request.send().await.unwrap();
        (answer.status().as_u16(), answer.json().await.unwrap_or_default())
    }
}

/// Percent-encodes a text for a path segment or a query.
fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let code = |byte| {
        if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }
    };
    text.bytes().map(code).collect()
}
