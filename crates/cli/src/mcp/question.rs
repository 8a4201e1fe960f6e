//! The decision request for a call.

use authority_crypto::{hex, hmac_sha256};
use serde_json::{Map, Number, Value, json};

use crate::mcp::record::{AmountPointer, ContextMap, ToolRecord};

/// The longest `external_id` of a resource, in characters.
const LONGEST_NAME: usize = 300;

/// The largest arguments that are asked about, in bytes of canonical JSON.
const LARGEST: usize = 64 * 1024;

/// The resource that a call names, in the terms of its own system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResourceName {
    pub(crate) kind: String,
    pub(crate) external_id: String,
}

/// The parts of a decision request that are the same for every call.
#[derive(Clone, Debug)]
pub(crate) struct Asker {
    /// The server's slug.
    pub(crate) server: String,
    /// The acting agent.
    pub(crate) agent: String,
    pub(crate) purpose: Option<String>,
    /// The key of the digests that replace redacted arguments.
    pub(crate) redaction_key: Option<[u8; 32]>,
}

impl Asker {
    /// Returns the decision request for a call of a tool. `input` is the client's later input.
    ///
    /// # Errors
    /// The sentence with which the call is denied.
    pub(crate) fn tool(
        &self,
        tool: &ToolRecord,
        digest: &str,
        arguments: &Map<String, Value>,
        input: Option<&Value>,
    ) -> Result<Value, String> {
        let name = &tool.mcp.name;
        let action = tool.action().ok_or(format!("Denied: the tool `{name}` has no action."))?;
        let mut context = match &tool.mcp.context_map {
            Some(map) => mapped(map, arguments)?,
            None => Map::new(),
        };
        let arguments = self.redacted(arguments, &tool.mcp.redact)?;
        context.insert("arguments".to_owned(), sized(arguments)?);
        context.insert("mcp".to_owned(), json!({"server": self.server, "tool": name}));
        if let Some(input) = input {
            context.insert("input_responses".to_owned(), sized(input.clone())?);
        }
        let mut question = self.question(action, &context);
        question["tool_id"] = json!(tool.id);
        question["tool_definition_digest"] = json!(digest);
        Ok(question)
    }

    /// Returns the decision request for a method other than `tools/call`.
    ///
    /// # Errors
    /// The sentence with which the request is denied.
    pub(crate) fn method(
        &self,
        method: &str,
        params: &Map<String, Value>,
    ) -> Result<Value, String> {
        let mut arguments = params.clone();
        arguments.remove("_meta");
        let mut context = Map::new();
        context.insert("arguments".to_owned(), sized(Value::Object(arguments))?);
        context.insert("mcp".to_owned(), json!({"server": self.server, "method": method}));
        let action = format!("mcp.{}.{}", self.server, in_action(&method.replace('/', ".")));
        Ok(self.question(&action, &context))
    }

    fn question(&self, action: &str, context: &Map<String, Value>) -> Value {
        let mut question = json!({
            "subject": self.agent, "action": action, "context": context,
            "supported_obligations": [], "include_record": true, "explain": true,
        });
        if let Some(purpose) = &self.purpose {
            question["purpose"] = json!(purpose);
        }
        question
    }

    fn redacted(
        &self,
        arguments: &Map<String, Value>,
        pointers: &[String],
    ) -> Result<Value, String> {
        let mut arguments = Value::Object(arguments.clone());
        for pointer in pointers {
            let Some(value) = arguments.pointer_mut(pointer) else { continue };
            let key = self.redaction_key.as_ref().ok_or(
                "Denied: the tool has redacted arguments, and this gateway has no key for them.",
            )?;
            let bytes = serde_json_canonicalizer::to_vec(value).map_err(|why| why.to_string())?;
            *value = json!({"hmac": hex(&hmac_sha256(key, &bytes))});
        }
        Ok(arguments)
    }
}

/// Returns the resource that a call names; `None` if the tool has no argument for it.
///
/// # Errors
/// The sentence with which the call is denied.
pub(crate) fn resource_name(
    tool: &ToolRecord,
    arguments: &Map<String, Value>,
) -> Result<Option<ResourceName>, String> {
    let map = tool.mcp.context_map.as_ref();
    let Some(pointed) = map.and_then(|map| map.resource.as_ref()) else { return Ok(None) };
    let arguments = Value::Object(arguments.clone());
    let named = arguments.pointer(&pointed.pointer).and_then(Value::as_str);
    let named = named.filter(|name| (1..=LONGEST_NAME).contains(&name.chars().count()));
    let expected = format!("a text of 1 to {LONGEST_NAME} characters");
    let named = named.ok_or_else(|| absent("resource", &pointed.pointer, &expected))?;
    Ok(Some(ResourceName { kind: pointed.kind.clone(), external_id: named.to_owned() }))
}

/// Returns a name in the grammar of actions: lower-case, other characters become `-`.
pub(crate) fn in_action(name: &str) -> String {
    let plain = |c: char| match c.to_ascii_lowercase() {
        c @ ('a'..='z' | '0'..='9' | '_' | '-' | '.') => c,
        _ => '-',
    };
    name.chars().map(plain).collect()
}

fn sized(value: Value) -> Result<Value, String> {
    let size = serde_json_canonicalizer::to_vec(&value).map_err(|why| why.to_string())?.len();
    if size > LARGEST {
        return Err(format!("Denied: the arguments have {size} bytes, {LARGEST} at most."));
    }
    Ok(value)
}

/// Returns the facts of the mapped arguments. Each is required.
fn mapped(map: &ContextMap, arguments: &Map<String, Value>) -> Result<Map<String, Value>, String> {
    let arguments = Value::Object(arguments.clone());
    let mut facts = Map::new();
    if let Some(pointed) = &map.amount {
        let amount = arguments.pointer(&pointed.pointer).and_then(|value| amount(value, pointed));
        let missing = || absent("amount", &pointed.pointer, "a plain number");
        facts.insert("amount".to_owned(), Value::Number(amount.ok_or_else(missing)?));
    }
    for (fact, pointer) in [("currency", &map.currency), ("jurisdiction", &map.jurisdiction)] {
        let Some(pointer) = pointer else { continue };
        let text = arguments.pointer(pointer).and_then(Value::as_str);
        let text = text.ok_or_else(|| absent(fact, pointer, "a text"))?;
        facts.insert(fact.to_owned(), json!(text));
    }
    Ok(facts)
}

fn absent(fact: &str, pointer: &str, expected: &str) -> String {
    format!("Denied: the argument {pointer}, which is the {fact} of the call, is not {expected}.")
}

/// Returns the amount in whole units, if its digits are kept exactly.
fn amount(value: &Value, pointed: &AmountPointer) -> Option<Number> {
    let text = match value {
        Value::Number(number) => number.to_string(),
        Value::String(text) => text.clone(),
        _ => return None,
    };
    let (sign, digits) = text.strip_prefix('-').map_or(("", text.as_str()), |rest| ("-", rest));
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    let plain = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !plain(whole) || !plain(fraction) || digits.len() > 40 {
        return None;
    }
    let scale = usize::from(pointed.scale.unwrap_or(0));
    let whole = format!("{}{whole}", "0".repeat(scale));
    let (units, part) = whole.split_at(whole.len() - scale);
    let units =
        Some(units.trim_start_matches('0')).filter(|units| !units.is_empty()).unwrap_or("0");
    let part = format!("{part}{fraction}");
    let part = part.trim_end_matches('0');
    let point = if part.is_empty() { "" } else { "." };
    let number = gateway_rest::strict(format!("{sign}{units}{point}{part}").as_bytes(), 1);
    match number {
        Ok(Value::Number(number)) => Some(number),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asker() -> Asker {
        Asker {
            server: "bank".to_owned(),
            agent: "svc:agent:acme:dev".to_owned(),
            purpose: Some("settlement".to_owned()),
            redaction_key: Some([7; 32]),
        }
    }

    fn tool(mcp: &Value) -> ToolRecord {
        let mut record = json!({"id": "svc:ent:acme:tool:1", "actions": ["mcp.bank.pay"],
            "mcp": {"name": "Pay", "pin": "pinned", "definition_digest": "sha256:1"}});
        for (name, value) in mcp.as_object().unwrap() {
            record["mcp"][name] = value.clone();
        }
        serde_json::from_value(record).unwrap()
    }

    fn ask(mcp: &Value, arguments: Value) -> Result<Value, String> {
        let Value::Object(arguments) = arguments else { panic!() };
        asker().tool(&tool(mcp), "sha256:1", &arguments, None)
    }

    #[test]
    fn a_question_has_the_arguments_and_nothing_that_varies() {
        let question = ask(&json!({}), json!({"to": "x", "amount": 12.5})).unwrap();
        let expected = json!({"subject": "svc:agent:acme:dev", "action": "mcp.bank.pay", "purpose": "settlement",
            "tool_id": "svc:ent:acme:tool:1", "tool_definition_digest": "sha256:1",
            "context": {"arguments": {"to": "x", "amount": 12.5}, "mcp": {"server": "bank", "tool": "Pay"}},
            "supported_obligations": [], "include_record": true, "explain": true});
        assert_eq!(question, expected);
        let params = json!({"uri": "file:///a", "_meta": {"progressToken": 1}});
        let question =
            asker().method("resources/templates/list", params.as_object().unwrap()).unwrap();
        assert_eq!(question["action"], "mcp.bank.resources.templates.list");
        assert_eq!(question["context"]["arguments"], json!({"uri": "file:///a"}));
    }

    #[test]
    fn mapped_arguments_are_required_and_exact() {
        let map = json!({"context_map": {"amount": {"pointer": "/amount", "scale": 2}, "currency": "/c"}});
        let asked = |amount: Value| ask(&map, json!({"amount": amount, "c": "EUR"}));
        for (given, meant) in [
            (json!(1250), json!(12.5)),
            (json!("1250"), json!(12.5)),
            (json!(5), json!(0.05)),
            (json!(0), json!(0)),
            (json!("-7"), json!(-0.07)),
            (json!("100.5"), json!(1.005)),
        ] {
            let context = asked(given).unwrap()["context"].clone();
            assert_eq!(context["amount"].as_f64(), meant.as_f64(), "{meant}");
            assert_eq!(context["currency"], "EUR");
        }
        for given in [
            json!(null),
            json!("1e3"),
            json!("1,000"),
            json!("+1"),
            json!(" 1"),
            json!(true),
            json!({"value": 1}),
            json!("123456789012345678901234567890"),
            json!(1e21),
        ] {
            assert!(asked(given.clone()).unwrap_err().starts_with("Denied"), "{given}");
        }
        assert!(ask(&map, json!({"amount": 1})).is_err());
    }

    #[test]
    fn the_resource_of_a_call_is_named_by_a_text() {
        let pointed = json!({"context_map": {"resource": {"kind": "mailbox", "pointer": "/to"}}});
        let named = |mcp: &Value, arguments: Value| {
            resource_name(&tool(mcp), arguments.as_object().unwrap())
        };
        let expected = ResourceName { kind: "mailbox".to_owned(), external_id: "é@x".to_owned() };
        assert_eq!(named(&pointed, json!({"to": "é@x"})), Ok(Some(expected)));
        assert_eq!(named(&json!({}), json!({"to": "x"})), Ok(None));
        for to in [json!(null), json!(""), json!(7), json!(["x"]), json!("x".repeat(301))] {
            assert!(named(&pointed, json!({ "to": to })).unwrap_err().starts_with("Denied"));
        }
        assert!(named(&pointed, json!({})).unwrap_err().starts_with("Denied"));
    }

    #[test]
    fn redacted_arguments_are_keyed_hashes() {
        let mcp = json!({"redact": ["/card/number", "/absent"]});
        let question = ask(&mcp, json!({"card": {"number": "4111", "name": "A"}})).unwrap();
        let card = &question["context"]["arguments"]["card"];
        assert_eq!(card["name"], "A");
        assert_eq!(card["number"]["hmac"].as_str().map(str::len), Some(64));
        let keyless = Asker { redaction_key: None, ..asker() };
        let arguments = json!({"card": {"number": "4111"}});
        let arguments = arguments.as_object().unwrap();
        assert!(keyless.tool(&tool(&mcp), "sha256:1", arguments, None).is_err());
    }

    #[test]
    fn large_arguments_are_denied() {
        let fits = "x".repeat(LARGEST - 20);
        assert!(ask(&json!({}), json!({ "text": fits })).is_ok());
        let large = "x".repeat(LARGEST);
        assert!(ask(&json!({}), json!({ "text": large })).unwrap_err().contains("bytes"));
    }

    #[test]
    fn names_become_actions() {
        assert_eq!(in_action("Create Issue/v2.é"), "create-issue-v2.-");
    }
}
