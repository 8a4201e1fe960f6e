//! Checks that the OpenAPI document contains every operation, parameter, field, value and status of
//! the specification.

use std::collections::BTreeMap;

use serde_json::Value;

use super::document;
use crate::support::TestApp;

/// The specification as tables. The head of the file describes their format.
const TABLES: &str = include_str!("specification.txt");

/// The parsed tables.
#[derive(Default)]
struct Specification {
    enums: BTreeMap<String, Vec<String>>,
    records: BTreeMap<String, Vec<Member>>,
    operations: Vec<Operation>,
}

#[derive(Default)]
struct Operation {
    method: String,
    path: String,
    statuses: Vec<String>,
    query: Vec<Member>,
    body: Vec<Member>,
    answer: Vec<Member>,
}

/// A field of a query, a body or a response.
#[derive(Clone)]
struct Member {
    name: String,
    kind: String,
    values: Vec<String>,
    record: Option<String>,
    is_required: bool,
}

impl Specification {
    fn read(text: &str) -> Self {
        let mut all = Self::default();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let mut words = line.split_whitespace();
            let first = words.next().unwrap();
            match first {
                "enum" => {
                    let name = words.next().unwrap().to_owned();
                    all.enums.insert(name, words.map(str::to_owned).collect());
                }
                "record" => {
                    let name = words.next().unwrap().to_owned();
                    let members = words.map(|word| all.member(word)).collect();
                    all.records.insert(name, members);
                }
                "query" | "body" | "answer" => {
                    let members = words.map(|word| all.member(word)).collect();
                    let last = all.operations.last_mut().unwrap();
                    *match first {
                        "query" => &mut last.query,
                        "body" => &mut last.body,
                        _ => &mut last.answer,
                    } = members;
                }
                method => {
                    let path = words.next().unwrap().to_owned();
                    assert_eq!(words.next(), Some("->"), "{line}");
                    let statuses = words.map(str::to_owned).collect();
                    let method = method.to_lowercase();
                    all.operations.push(Operation {
                        method,
                        path,
                        statuses,
                        ..Operation::default()
                    });
                }
            }
        }
        all
    }

    fn member(&self, word: &str) -> Member {
        let (word, is_required) = word.strip_suffix('!').map_or((word, false), |word| (word, true));
        let (word, domain) = word.split_once('=').unwrap_or((word, ""));
        let (name, kind) = word.split_once(':').unwrap_or((word, ""));
        let record = domain.strip_prefix("record.").map(str::to_owned);
        let values = match domain.strip_prefix('@') {
            Some(name) => self.enums[name].clone(),
            None if domain.is_empty() || record.is_some() => Vec::new(),
            None => domain.split('|').map(str::to_owned).collect(),
        };
        let kind = match kind {
            "" if record.is_some() => "object",
            "" => "string",
            kind => kind,
        };
        Member { name: name.to_owned(), kind: kind.to_owned(), values, record, is_required }
    }

    /// Returns the parts of the specification that the document lacks.
    fn missing(&self, document: &Value) -> Vec<String> {
        let paths = document["paths"].as_object().unwrap().iter();
        let paths = paths.map(|(path, operations)| (unnamed(path), operations)).collect();
        let mut found = Missing { specification: self, document, paths, lines: Vec::new() };
        for operation in &self.operations {
            found.operation(operation);
        }
        found.lines
    }
}

/// Returns a path without the names of its parameters.
fn unnamed(path: &str) -> String {
    regex::Regex::new("[{][^}]+[}]").unwrap().replace_all(path, "{}").into_owned()
}

struct Missing<'a> {
    specification: &'a Specification,
    document: &'a Value,
    /// Each path without its parameters' names, with its operations.
    paths: Vec<(String, &'a Value)>,
    lines: Vec<String>,
}

impl<'a> Missing<'a> {
    fn operation(&mut self, specified: &Operation) {
        let at = format!("{} {}", specified.method.to_uppercase(), specified.path);
        let path = unnamed(&specified.path);
        let mut same = self.paths.iter().filter(|(known, _)| *known == path);
        let Some(operation) = same.find_map(|(_, all)| all.get(&specified.method)) else {
            return self.lines.push(format!("{at}: no such operation"));
        };
        for status in &specified.statuses {
            if operation["responses"][status].is_null() {
                self.lines.push(format!("{at}: no status {status}"));
            }
        }
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        let parameters: Vec<&Value> = parameters.map(|one| self.resolved(one)).collect();
        for member in &specified.query {
            let at = format!("{at}, query `{}`", member.name);
            let parameter = parameters.iter().find(|one| one["name"] == member.name.as_str());
            match parameter {
                None => self.lines.push(format!("{at}: no such parameter")),
                Some(one) if member.is_required && one["required"] != true => {
                    self.lines.push(format!("{at}: not required"));
                }
                Some(one) => self.value(&at, &one["schema"], member),
            }
        }
        let json = |part: &'a Value| &part["content"]["application/json"]["schema"];
        let body = json(self.resolved(&operation["requestBody"]));
        self.members(&format!("{at}, body"), body, &specified.body);
        let answer = json(self.resolved(&operation["responses"][&specified.statuses[0]]));
        self.members(&format!("{at}, answer"), answer, &specified.answer);
    }

    fn members(&mut self, at: &str, schema: &'a Value, members: &[Member]) {
        let alternatives = self.alternatives(schema);
        for member in members {
            let at = format!("{at} `{}`", member.name);
            let with = |one: &&&'a Value| !one["properties"][&member.name].is_null();
            let Some(one) = alternatives.iter().find(with) else {
                self.lines.push(format!("{at}: no such member"));
                continue;
            };
            let mut required =
                alternatives.iter().filter_map(|one| one["required"].as_array()).flatten();
            if member.is_required && !required.any(|name| name == member.name.as_str()) {
                self.lines.push(format!("{at}: not required"));
            }
            self.value(&at, &one["properties"][&member.name], member);
        }
    }

    fn value(&mut self, at: &str, schema: &'a Value, member: &Member) {
        let alternatives = self.alternatives(schema);
        let has_kind = |one: &&&Value| match &one["type"] {
            Value::Array(kinds) => kinds.contains(&member.kind.as_str().into()),
            kind => *kind == member.kind.as_str(),
        };
        let Some(one) = alternatives.iter().find(has_kind) else {
            return self.lines.push(format!("{at}: no {}", member.kind));
        };
        for value in &member.values {
            let known =
                one["enum"].as_array().is_some_and(|all| all.contains(&value.as_str().into()));
            if !known {
                self.lines.push(format!("{at}: no value `{value}`"));
            }
        }
        if let Some(record) = &member.record {
            let inner = if member.kind == "array" { &one["items"] } else { schema };
            let specification = self.specification;
            self.members(at, inner, &specification.records[record]);
        }
    }

    /// Returns the target of the value's `$ref`, without the fields next to the `$ref`. A value
    /// without a `$ref` is returned unchanged.
    fn resolved(&self, value: &'a Value) -> &'a Value {
        match value["$ref"].as_str() {
            Some(place) => self.document.pointer(place.strip_prefix('#').unwrap()).unwrap(),
            None => value,
        }
    }

    /// Returns the schemas that a value may match, with references resolved.
    fn alternatives(&self, schema: &'a Value) -> Vec<&'a Value> {
        let beside = schema["$ref"].is_string().then_some(schema);
        let resolved = self.resolved(schema);
        let inner = resolved["oneOf"].as_array().or_else(|| resolved["anyOf"].as_array());
        let inner = match inner {
            Some(all) => all.iter().flat_map(|one| self.alternatives(one)).collect(),
            None => vec![resolved],
        };
        inner.into_iter().chain(beside).collect()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_document_lacks_nothing_that_is_specified() {
    let document = document(TestApp::shared().await).await;
    let specification = Specification::read(TABLES);
    assert_eq!(specification.operations.len(), 183);
    let missing = specification.missing(&document);
    assert!(missing.is_empty(), "{missing:#?}");
}

/// Checks that parts that are removed from the document are reported as missing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_taken_out_of_the_document_is_found_missing() {
    let document = document(TestApp::shared().await).await;
    let specification = Specification::read(TABLES);
    for (parent, name, missing) in [
        ("/paths", "/api/v1/tenants/{id}", "GET /api/v1/tenants/{id}: no such operation"),
        (
            "/paths/~1api~1v1~1policies~1{id}",
            "delete",
            "DELETE /api/v1/policies/{id}: no such operation",
        ),
        (
            "/paths/~1api~1v1~1consultants/post/responses",
            "409",
            "POST /api/v1/consultants: no status 409",
        ),
        (
            "/paths/~1api~1v1~1tools/get",
            "parameters",
            "GET /api/v1/tools, query `workspace_id`: no such parameter",
        ),
        (
            "/components/schemas/LegalEntityInput/properties",
            "form",
            "POST /api/v1/legal-entities, body `form`: no such member",
        ),
        (
            "/components/schemas/LegalEntityInput",
            "required",
            "POST /api/v1/legal-entities, body `form`: not required",
        ),
        (
            "/components/schemas/AnchorType",
            "enum",
            "GET /api/v1/reality-anchors, answer `reality_anchors` `anchor_type`: no value `vendor_context`",
        ),
        (
            "/components/schemas/LeadInput/properties/consent_marketing",
            "type",
            "POST /api/v1/consultant-leads, body `consent_marketing`: no boolean",
        ),
    ] {
        let mut less = document.clone();
        let taken = less.pointer_mut(parent).unwrap().as_object_mut().unwrap().remove(name);
        assert!(taken.is_some(), "{parent} has no {name}");
        let found = specification.missing(&less);
        assert!(found.iter().any(|line| line == missing), "{parent} {name}: {found:#?}");
    }
}
