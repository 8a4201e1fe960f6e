//! The page of each operation shows its members, bounds and errors, and an example.

use std::collections::BTreeSet;

use serde_json::Value;

use super::document;
use crate::support::{TestApp, http};

/// The page of an operation as text, with its elements.
async fn page(app: &TestApp, id: &str) -> String {
    let answer = http().get(format!("{}/docs/{id}", app.base_url())).send().await.unwrap();
    assert_eq!(answer.status(), 200, "{id}");
    let text = answer.text().await.unwrap();
    let characters =
        [("&#34;", "\""), ("&#39;", "'"), ("&#60;", "<"), ("&#62;", ">"), ("&#38;", "&")];
    characters.iter().fold(text, |text, (written, character)| text.replace(written, character))
}

struct Schemas<'a> {
    document: &'a Value,
    /// The names of members, and the bounds of their texts.
    names: BTreeSet<&'a str>,
    longest: BTreeSet<u64>,
    within: Vec<&'a str>,
}

impl<'a> Schemas<'a> {
    fn new(document: &'a Value) -> Self {
        Self { document, names: BTreeSet::new(), longest: BTreeSet::new(), within: Vec::new() }
    }

    /// Collects the members of a schema and of the objects in it, up to six levels. The members of
    /// a union of many types are on the union's own page.
    fn collect(&mut self, schema: &'a Value) {
        if let Some(reference) = schema["$ref"].as_str() {
            if !self.within.contains(&reference) {
                self.within.push(reference);
                self.collect(self.document.pointer(&reference[1..]).unwrap());
                self.within.pop();
            }
            return;
        }
        self.longest.extend(schema["maxLength"].as_u64());
        for (name, member) in schema["properties"].as_object().into_iter().flatten() {
            self.names.insert(name);
            if self.within.len() < 7 {
                self.collect(member);
            }
        }
        for inner in ["items", "additionalProperties"].iter().filter_map(|of| schema.get(of)) {
            self.collect(inner);
        }
        for of in ["anyOf", "oneOf"] {
            let any = schema[of].as_array().into_iter().flatten();
            let any: Vec<_> = any.filter(|one| one["type"] != "null").collect();
            if any.len() <= 2 {
                any.into_iter().for_each(|one| self.collect(one));
            }
        }
    }
}

fn resolved<'a>(document: &'a Value, part: &'a Value) -> &'a Value {
    part["$ref"].as_str().map_or(part, |to| document.pointer(&to[1..]).unwrap())
}

fn contents(holder: &Value) -> impl Iterator<Item = &Value> {
    holder["content"].as_object().into_iter().flatten().map(|(_, content)| content)
}

/// An example as it is sent.
fn sent(example: &Value) -> String {
    let pretty = || serde_json::to_string_pretty(example).unwrap();
    example.as_str().map_or_else(pretty, str::to_owned)
}

/// Returns the expected texts that the page of an operation lacks.
fn missing(document: &Value, operation: &Value, page: &str) -> Vec<String> {
    let mut missing = Vec::new();
    let mut expect = |text: String| {
        if !page.contains(&text) {
            missing.push(text);
        }
    };
    let mut schemas = Schemas::new(document);
    for parameter in operation["parameters"].as_array().into_iter().flatten() {
        let parameter = resolved(document, parameter);
        expect(format!("<code>{}</code>", parameter["name"].as_str().unwrap()));
        schemas.longest.extend(parameter["schema"]["maxLength"].as_u64());
    }
    let body = &operation["requestBody"];
    let responses = operation["responses"].as_object().unwrap();
    let (successes, errors): (Vec<_>, Vec<_>) =
        responses.iter().partition(|(status, _)| status.starts_with('2'));
    let successes: Vec<_> = successes.into_iter().map(|(_, one)| resolved(document, one)).collect();
    for content in contents(body).chain(successes.iter().flat_map(|one| contents(one))) {
        schemas.collect(&content["schema"]);
    }
    for name in schemas.names {
        expect(format!("<code>{name}</code>"));
    }
    for longest in schemas.longest {
        expect(format!("at most {longest} characters"));
    }
    for (status, _) in errors {
        expect(format!("<th scope=\"row\"><code>{status}</code></th>"));
    }
    let refused = responses.contains_key("405");
    let given = contents(body).find_map(|content| content.get("example"));
    if let Some(example) = given {
        expect(sent(example).replace('\'', "'\\''"));
    }
    let mut shown = successes.iter().flat_map(|one| contents(one));
    match shown.find_map(|content| content.get("example")) {
        _ if refused => {}
        Some(example) => expect(format!("<pre tabindex=\"0\">{}</pre>", sent(example))),
        None => expect("an example in the document".to_owned()),
    }
    let public = operation["security"].as_array().unwrap().is_empty();
    for (text, wanted) in [
        ("-H \"Authorization: Bearer $", !public),
        ("-H 'Content-Type: application/json'", given.is_some()),
    ] {
        if page.contains(text) != wanted {
            missing.push(format!("{text}: {wanted} expected"));
        }
    }
    missing
}

/// The address in the example of the request.
fn address<'a>(page: &'a str, base: &str) -> &'a str {
    let (_, rest) = page.split_once("<pre tabindex=\"0\">curl").unwrap();
    let (_, rest) = rest.split_once(&format!("'{base}")).unwrap();
    rest.split_once('\'').unwrap().0
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_operation_shows_its_members_and_an_example() {
    let app = TestApp::shared().await;
    let document = document(app).await;
    let (mut count, mut faults) = (0, Vec::new());
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let id = operation["operationId"].as_str().unwrap();
            let page = page(app, id).await;
            let missing = missing(&document, operation, &page);
            if !missing.is_empty() {
                faults.push(format!("{id}: {missing:?}"));
            }
            let is_usual = matches!(method.as_str(), "get" | "post");
            let has_method = page.contains(&format!(" -X {} '", method.to_uppercase()));
            let address = address(&page, app.base_url());
            let length = path.split('{').next().unwrap().len();
            if !(is_usual || has_method)
                || address.contains(['{', ' ', '"'])
                || address[..length] != path[..length]
            {
                faults.push(format!("{id}: {address}"));
            }
            let (_, body) = page.split_once("<main>").unwrap();
            for row in body.split("<tr>").skip(1) {
                let row = row.split("</tr>").next().unwrap();
                if ["\"><code></code>", "<td></td>\n  <td></td>"]
                    .iter()
                    .any(|empty| row.contains(empty))
                {
                    faults.push(format!("{id}: an empty row: {row}"));
                }
            }
            count += 1;
        }
    }
    assert!(count > 290, "{count}");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Sends the request of each example that needs no credential and no record.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_example_of_a_public_operation_succeeds() {
    let app = TestApp::shared().await;
    let document = document(app).await;
    let mut called = Vec::new();
    for item in document["paths"].as_object().unwrap().values() {
        let operation = &item["get"];
        if operation["security"].as_array().is_none_or(|needed| !needed.is_empty()) {
            continue;
        }
        let page = page(app, operation["operationId"].as_str().unwrap()).await;
        let address = address(&page, app.base_url());
        if address.contains("c0ffee") {
            continue;
        }
        let url = format!("{}{address}", app.base_url());
        let answer = http().get(url).send().await.unwrap();
        assert!(answer.status().is_success(), "{address}: {}", answer.status());
        called.push(address.to_owned());
    }
    assert!(called.len() > 7, "{called:?}");
}
