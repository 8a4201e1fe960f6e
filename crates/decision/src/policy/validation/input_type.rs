//! The types of the fields of `context.input`, as declared by tenants and tools.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::{
    agreement::Agreement,
    members::{InputType, Member, Members},
};
use crate::{
    pattern::{Pattern, prefixes},
    request::input_schema::{ARGUMENTS, InputAt},
};

/// The maximum depth of a declaration that is read.
const DEEPEST: usize = 8;

/// A tenant's declarations of actions and their input.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    declared: ContextSchema,
    tools: Vec<ToolInput>,
    /// The indices of tools: by action, by prefix of actions, and those for all actions.
    by_action: HashMap<String, Vec<usize>>,
    by_prefix: HashMap<String, Vec<usize>>,
    of_all: Vec<usize>,
}

/// The actions of a tool, and the fields of its input.
#[derive(Clone, Debug)]
pub struct ToolInput {
    pub actions: Vec<Pattern>,
    pub members: Members,
}

impl ToolInput {
    pub fn of(actions: Vec<Pattern>, schema: Option<&Value>, at: InputAt) -> Self {
        Self { actions, members: schema.map(|schema| typed(schema, at)).unwrap_or_default() }
    }

    /// Returns the input of a tool of an MCP server.
    pub fn of_mcp(actions: Vec<Pattern>, schema: Option<&Value>) -> Self {
        Self { actions, members: schema.map(typed_by_mcp).unwrap_or_default() }
    }
}

/// Returns the context fields to which this schema of a tool gives a reliable type.
///
/// `number` is not such a type: 5 is a long in policies, and 5.5 is a decimal.
pub fn typed(schema: &Value, at: InputAt) -> Members {
    let members = of_json_schema(schema, None);
    match at {
        InputAt::Context => members,
        InputAt::Arguments => arguments(members),
    }
}

/// Returns the context fields to which the input schema of an MCP server's tool gives a type. It
/// describes the arguments, and its `number` is a decimal.
pub fn typed_by_mcp(schema: &Value) -> Members {
    arguments(of_json_schema(schema, Some(&InputType::Decimal)))
}

fn arguments(members: Members) -> Members {
    if members.is_empty() {
        return members;
    }
    // Absent arguments are checked as if they were empty.
    let required = members.values().any(|member| member.required);
    let arguments = Member { kind: InputType::Record(members), required };
    Members::from([(ARGUMENTS.to_owned(), arguments)])
}

impl Surroundings {
    pub fn new(declared: ContextSchema, tools: Vec<ToolInput>) -> Self {
        let mut all = Self { declared, ..Self::default() };
        for (place, tool) in tools.iter().enumerate() {
            for pattern in &tool.actions {
                match pattern {
                    Pattern::Exact(name) => {
                        all.by_action.entry(name.clone()).or_default().push(place);
                    }
                    Pattern::Below(prefix) => {
                        all.by_prefix.entry(prefix.clone()).or_default().push(place);
                    }
                    Pattern::All => all.of_all.push(place),
                }
            }
        }
        Self { tools, ..all }
    }

    /// Returns the fields declared for an action.
    ///
    /// The tenant's declaration comes first. On other fields, the tools must agree.
    pub fn input_of(&self, action: &str) -> Members {
        let mut members = self.input_of_tools(action);
        members.extend(self.declared.input_of(action));
        members
    }

    fn input_of_tools(&self, action: &str) -> Members {
        let below = prefixes(action).filter_map(|prefix| self.by_prefix.get(prefix)).flatten();
        let exact = self.by_action.get(action).into_iter().flatten();
        let places: BTreeSet<_> = exact.chain(below).chain(&self.of_all).collect();
        let tools = places.into_iter().filter_map(|place| self.tools.get(*place));
        let each = tools.map(|tool| Agreement::of(&tool.members));
        each.reduce(Agreement::joined).unwrap_or_default().members()
    }

    fn patterns(&self) -> impl Iterator<Item = &Pattern> {
        let tools = self.tools.iter().flat_map(|tool| &tool.actions);
        tools.chain(self.declared.read().iter().map(|(pattern, _)| pattern))
    }

    /// Returns every exact action of the tools and of the tenant's declarations.
    pub fn actions(&self) -> impl Iterator<Item = &str> {
        self.patterns().filter_map(|pattern| match pattern {
            Pattern::Exact(name) => Some(name.as_str()),
            _ => None,
        })
    }

    /// Returns one action for each pattern of the tools and of the tenant's declarations.
    pub fn examples(&self) -> impl Iterator<Item = String> {
        self.patterns().filter_map(|pattern| match pattern {
            Pattern::Exact(name) => Some(name.clone()),
            Pattern::Below(prefix) => Some(format!("{prefix}.any")),
            Pattern::All => None,
        })
    }
}

/// Returns the fields of a JSON Schema object with types that policies can rely on. `number` is the
/// type of numbers with a fraction; `None` if policies can't rely on it.
fn of_json_schema(schema: &Value, number: Option<&InputType>) -> Members {
    match of_schema(schema, number, 0) {
        Some(InputType::Record(members)) => members,
        _ => Members::new(),
    }
}

fn of_schema(schema: &Value, number: Option<&InputType>, depth: usize) -> Option<InputType> {
    if depth > DEEPEST {
        return None;
    }
    match schema.get("type").and_then(Value::as_str)? {
        "boolean" => Some(InputType::Boolean),
        "integer" => Some(InputType::Integer),
        "number" => number.cloned(),
        "string" => Some(InputType::String),
        "array" => {
            let items = of_schema(schema.get("items")?, number, depth + 1)?;
            Some(InputType::Set(Box::new(items)))
        }
        "object" => {
            let properties = schema.get("properties").and_then(Value::as_object);
            let required = schema.get("required").and_then(Value::as_array);
            let is_required =
                |name: &str| required.is_some_and(|all| all.iter().any(|one| one == name));
            let members = properties.into_iter().flatten().filter_map(|(name, schema)| {
                let kind = of_schema(schema, number, depth + 1)?;
                Some((name.clone(), Member { kind, required: is_required(name) }))
            });
            Some(InputType::Record(members.collect()))
        }
        _ => None,
    }
}

/// A type as a tenant writes it: a word, `set<word>`, or an object of fields.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
enum Written {
    Word(String),
    Full {
        #[serde(rename = "type")]
        kind: Box<Written>,
        #[serde(default)]
        required: bool,
    },
    Record(BTreeMap<String, Written>),
}

/// A tenant's `context_schema`, as written and as parsed.
#[derive(Clone, Debug, Default)]
pub struct ContextSchema {
    written: Value,
    /// Sorted with the more specific pattern last. `None` if the schema can't be read.
    read: Option<Vec<(Pattern, Members)>>,
}

impl ContextSchema {
    /// # Errors
    /// The field at fault, and its problem.
    pub fn of(written: Value) -> Result<Self, (String, String)> {
        let mut read = context_schema(&written)?;
        read.sort_by_key(|(pattern, _)| pattern.to_string().len());
        Ok(Self { read: Some(read), written })
    }

    /// Reads a stored schema. If it can't be read, no context satisfies it.
    pub fn stored(written: Value) -> Self {
        Self::of(written.clone()).unwrap_or(Self { written, read: None })
    }

    pub fn is_readable(&self) -> bool {
        self.read.is_some()
    }

    fn read(&self) -> &[(Pattern, Members)] {
        self.read.as_deref().unwrap_or_default()
    }

    /// Returns the fields declared for an action.
    pub fn input_of(&self, action: &str) -> Members {
        self.declared(action).map(|(name, member)| (name.clone(), member.clone())).collect()
    }

    /// Returns the fields declared for an action, without copying them.
    pub fn declared<'a>(
        &'a self,
        action: &'a str,
    ) -> impl Iterator<Item = (&'a String, &'a Member)> {
        let all = self.read().iter().flat_map(move |(pattern, members)| {
            members.iter().filter(move |_| pattern.covers(action))
        });
        let counts = move |(name, member): &(&'a String, &'a Member)| {
            self.member(action, name).is_some_and(|own| std::ptr::eq(own, *member))
        };
        all.filter(counts)
    }

    /// Returns a field as declared for an action. The more specific of two patterns counts.
    pub fn member(&self, action: &str, name: &str) -> Option<&Member> {
        let covering = self.read().iter().rev().filter(|(pattern, _)| pattern.covers(action));
        covering.into_iter().find_map(|(_, members)| members.get(name))
    }
}

impl PartialEq for ContextSchema {
    fn eq(&self, other: &Self) -> bool {
        self.written == other.written
    }
}

impl Serialize for ContextSchema {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.written.serialize(to)
    }
}

impl<'de> Deserialize<'de> for ContextSchema {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Value::deserialize(from).map(Self::stored)
    }
}

/// Parses a tenant's `context_schema`: {action pattern: {field: type}}.
///
/// A type is `string`, `integer`, `decimal`, `boolean`, `set<…>`, an object of fields, or {type,
/// required}.
///
/// # Errors
/// The field at fault, and its problem.
fn context_schema(json: &Value) -> Result<Vec<(Pattern, Members)>, (String, String)> {
    let Some(patterns) = json.as_object() else {
        return Err((String::new(), "must be an object of action patterns".to_owned()));
    };
    let mut read = Vec::new();
    for (text, members) in patterns {
        let pattern = text.parse::<Pattern>();
        let pattern = pattern.map_err(|problem| (text.clone(), problem.to_string()))?;
        let written: BTreeMap<String, Written> = serde_json::from_value(members.clone())
            .map_err(|_| (text.clone(), "must be an object of members and their types".into()))?;
        read.push((pattern, members_of(&written, text, 0)?));
    }
    Ok(read)
}

fn members_of(
    written: &BTreeMap<String, Written>,
    path: &str,
    depth: usize,
) -> Result<Members, (String, String)> {
    let member = |(name, written): (&String, &Written)| {
        let path = format!("{path}.{name}");
        let (kind, required) = match written {
            Written::Full { kind, required } => (kind.as_ref(), *required),
            other => (other, false),
        };
        Ok((name.clone(), Member { kind: type_of(kind, &path, depth + 1)?, required }))
    };
    written.iter().map(member).collect()
}

fn type_of(written: &Written, path: &str, depth: usize) -> Result<InputType, (String, String)> {
    let fault = |problem: &str| Err((path.to_owned(), problem.to_owned()));
    if depth > DEEPEST {
        return fault("nests too deep");
    }
    match written {
        Written::Full { .. } => fault("must be a type"),
        Written::Record(members) => Ok(InputType::Record(members_of(members, path, depth)?)),
        Written::Word(word) => of_word(word).map_or_else(
            || fault("must be string, integer, decimal, boolean, set<…>, or an object"),
            Ok,
        ),
    }
}

fn of_word(word: &str) -> Option<InputType> {
    match word {
        "string" => Some(InputType::String),
        "integer" => Some(InputType::Integer),
        "decimal" => Some(InputType::Decimal),
        "boolean" => Some(InputType::Boolean),
        _ => {
            let of = word.strip_prefix("set<")?.strip_suffix('>')?;
            Some(InputType::Set(Box::new(of_word(of).filter(|_| !of.starts_with("set<"))?)))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(actions: &[&str], schema: &Value) -> ToolInput {
        let actions = actions.iter().map(|text| text.parse().unwrap()).collect();
        ToolInput::of(actions, Some(schema), InputAt::Context)
    }

    #[test]
    fn tools_declare_what_they_agree_on() {
        let one = json!({"type": "object", "required": ["iban", "note"], "properties": {
            "iban": {"type": "string"}, "note": {"type": "string"}, "rate": {"type": "number"},
            "count": {"type": "integer"}, "lines": {"type": "array", "items": {"type": "string"}}}});
        let other = json!({"type": "object", "required": ["iban"], "properties": {
            "iban": {"type": "string"}, "count": {"type": "string"}}});
        let tools = vec![tool(&["payment.execute"], &one), tool(&["payment.*"], &other)];
        let surroundings = Surroundings::new(ContextSchema::default(), tools);
        let input = surroundings.input_of("payment.execute");
        let names: Vec<_> = input.iter().map(|(name, one)| (name.as_str(), one.required)).collect();
        assert_eq!(names, [("iban", true), ("lines", false), ("note", false)]);
        assert!(surroundings.input_of("report.read").is_empty());
    }

    #[test]
    fn a_tenants_own_declaration_counts_before_its_tools() {
        let declared = json!({"*": {"iban": "integer", "rate": "decimal"},
            "payment.*": {"iban": {"type": "string", "required": true}, "lines": "set<integer>",
                "payee": {"name": "string"}}});
        let declared = ContextSchema::of(declared).unwrap();
        let surroundings = Surroundings::new(declared, Vec::new());
        let input = surroundings.input_of("payment.execute");
        assert_eq!(input["iban"], Member { kind: InputType::String, required: true });
        assert_eq!(input["rate"].kind, InputType::Decimal);
        assert_eq!(surroundings.input_of("a.b")["iban"].kind, InputType::Integer);
        for (bad, path) in [
            (json!([]), ""),
            (json!({"Payment": {}}), "Payment"),
            (json!({"*": {"a": "number"}}), "*.a"),
            (json!({"*": {"a": {"b": "set<set<string>>"}}}), "*.a.b"),
            (json!({"*": 1}), "*"),
        ] {
            assert_eq!(context_schema(&bad).unwrap_err().0, path, "{bad}");
        }
    }
}
