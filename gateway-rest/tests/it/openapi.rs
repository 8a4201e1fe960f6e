//! The `OpenAPI` document: it is valid and describes the library.

use std::process::Command;

use gateway_rest_tests::OPENAPI;
use serde_json::{Value, json};

fn document() -> Value {
    serde_json::from_str(OPENAPI).unwrap()
}

fn schema(name: &str) -> Value {
    document()["components"]["schemas"][name].clone()
}

#[test]
fn it_is_valid() {
    let file = concat!(env!("CARGO_TARGET_TMPDIR"), "/openapi.json");
    std::fs::write(file, OPENAPI).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/validate-openapi");
    match Command::new(script).arg(file).status().unwrap().code() {
        Some(3) => eprintln!("skipped: Python's openapi-spec-validator is not installed"),
        code => assert_eq!(code, Some(0)),
    }
}

#[test]
fn each_binding_is_an_operation() {
    let document = document();
    let paths = document["paths"].as_object().unwrap();
    let methods = |path: &str| paths[path].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(methods("/v1/books"), ["get", "post", "x-purge"]);
    assert_eq!(methods("/v1/books/{id}"), ["delete", "get", "patch"], "{{book.id}} is {{id}}");
    assert!(paths.contains_key("/v1/books/{id}:lend"));
    assert!(paths.contains_key("/v1/catalogue/{id}/book"));
    let list = &paths["/v1/books"]["get"];
    assert_eq!(list["operationId"], "BookService_ListBooks");
    assert_eq!(list["summary"], "Lists books");
    assert_eq!(list["description"], "Lists books. Newest first.");
    assert_eq!(list["tags"], json!(["Book"]));
    assert_eq!(document["tags"][0]["description"], "Books, and the operations on them.");
    let again = &paths["/v1/catalogue/{id}/book"]["get"];
    assert_eq!(again["operationId"], "BookService_GetBook_2");
    assert_eq!(again["summary"], "Get book");
}

#[test]
fn parameters_are_those_of_the_runtime() {
    let document = document();
    let names = |path: &str, method: &str| {
        let operation = &document["paths"][path][method];
        let parameters = operation["parameters"].as_array().cloned().unwrap_or_default();
        parameters.iter().map(|p| p["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let list = ["filter.genre", "filter.since", "filter.subject", "filter.any", "tags", "limit"];
    assert_eq!(names("/v1/books", "get")[..6], list);
    assert_eq!(names("/v1/books/{id}", "patch"), ["id", "force"]);
    assert_eq!(names("/v1/books/{id}:lend", "post"), ["id"]);
    assert!(names("/v1/echo", "post").is_empty());
}

/// The example of a record's path has the id of the record in the list's example.
#[test]
fn required_parameters_have_the_values_of_other_examples() {
    let document = document();
    let content = |path: &str, media: &str| {
        document["paths"][path]["get"]["responses"]["200"]["content"][media].clone()
    };
    let id = content("/v1/books", "application/json")["example"]["books"][0]["id"].clone();
    assert!(id.is_string(), "{id}");
    for (path, method) in
        [("/v1/books/{id}", "get"), ("/v1/books/{id}", "patch"), ("/v1/books/{id}:lend", "post")]
    {
        let parameter = &document["paths"][path][method]["parameters"][0];
        assert_eq!((&parameter["name"], &parameter["example"]), (&json!("id"), &id), "{path}");
    }
    let export = content("/v1/books:export", "application/x-ndjson");
    assert_eq!(export["example"]["title"], "The Moonstone");
    assert_eq!(export["example"]["ok"], Value::Null, "no message of a stream has it");
}

#[test]
fn schemas_differ_by_use() {
    let (output, input, patch) = (schema("Book"), schema("BookInput"), schema("BookPatch"));
    assert_eq!(output["properties"]["id"]["readOnly"], true);
    assert_eq!(output["required"].as_array().unwrap().len(), 14);
    assert_eq!(output["properties"]["subject"]["type"], json!(["string", "null"]));
    assert_eq!(input["required"], json!(["title", "currency"]));
    assert_eq!(input["properties"]["id"], Value::Null);
    assert_eq!(input["additionalProperties"], false);
    for schema in [&output, &input, &patch] {
        let readers = &schema["properties"]["readers"];
        assert_eq!(readers["type"], json!(["array", "null"]), "null without a bound");
        assert_eq!((&readers["minItems"], &readers["maxItems"]), (&json!(1), &json!(5)));
    }
    assert_eq!(patch["required"], Value::Null);
    assert_eq!(patch["properties"]["owner"], Value::Null, "immutable");
}

#[test]
fn rules_and_comments_become_keywords() {
    let book = schema("BookInput");
    let of = |name: &str| book["properties"][name].clone();
    let title = json!({
        "type": "string", "minLength": 1, "maxLength": 200, "description": "Its title.",
        "examples": ["The Moonstone"],
    });
    assert_eq!(of("title"), title);
    assert_eq!(of("contact")["format"], "email");
    assert_eq!(of("currency")["pattern"], "^[A-Z]{3}$");
    let binding = json!([{"$ref": "#/components/schemas/BookBinding"}, {"type": "null"}]);
    assert_eq!(of("binding")["anyOf"], binding);
    assert_eq!(schema("BookBinding")["enum"], json!(["paper", "cloth"]));
    assert_eq!((&of("pages")["minimum"], &of("pages")["maximum"]), (&json!(1), &json!(20000)));
    assert_eq!(of("tags")["items"], json!({"type": "string", "minLength": 1}));
    assert_eq!((&of("tags")["maxItems"], &of("tags")["uniqueItems"]), (&json!(10), &json!(true)));
    assert_eq!(schema("Genre")["enum"], json!(["crime", "science_fiction"]));
    let unset = &schema("Book")["properties"]["binding"]["$ref"];
    assert_eq!(unset, "#/components/schemas/BookBindingOrEmpty", "as a response shows it");
    assert_eq!(schema("BookBindingOrEmpty")["enum"], json!(["paper", "cloth", ""]));
}

#[test]
fn responses_have_their_status_and_form() {
    let document = document();
    let operation = |path: &str, method: &str| document["paths"][path][method].clone();
    let create = operation("/v1/books", "post");
    let created = &create["responses"]["201"]["content"]["application/json"];
    assert_eq!(created["schema"], json!({"$ref": "#/components/schemas/BookAnswer"}));
    assert_eq!(schema("BookAnswer")["required"], json!(["ok", "book"]));
    assert!(schema("BookAnswer")["properties"]["ok"]["const"].is_null());
    assert_eq!(created["example"]["book"]["title"], "The Moonstone");
    let catalogue = operation("/v1/catalogue/{id}/book", "get");
    let catalogue = &catalogue["responses"]["200"]["content"]["application/json"];
    assert_eq!(catalogue["schema"], json!({"$ref": "#/components/schemas/BookEnvelope"}));
    assert_eq!(schema("BookEnvelope")["required"], json!(["book"]));
    assert!(catalogue["example"]["ok"].is_null());
    let statuses = |operation: &Value| {
        operation["responses"].as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(statuses(&create), "201 400 401 403 409 413 415 422 429 500 503");
    // Either requirement is enough, with all of its scopes.
    let alternatives = json!([{"reader": ["books"]}, {"reader": ["all", "most"]}]);
    assert_eq!(create["security"], alternatives);
    let cover = operation("/v1/cover", "get");
    assert_eq!(statuses(&cover), "200 400 429 500 503");
    assert_eq!(cover["security"], json!([]));
    assert!(cover["responses"]["200"]["content"]["text/html; charset=utf-8"].is_object());
    let beside_ok = operation("/v1/books:schema", "get");
    let beside_ok = &beside_ok["responses"]["200"]["content"]["application/json"]["schema"];
    assert_eq!(beside_ok, &json!({"$ref": "#/components/schemas/GetSchemaResponseAnswer"}));
    assert_eq!(schema("GetSchemaResponseAnswer")["required"], json!(["ok", "schema"]));
    let gone = operation("/v1/books/{id}", "delete");
    assert_eq!(gone["responses"]["204"], json!({"description": "Success."}));
    let export = operation("/v1/books:export", "get");
    assert!(export["responses"]["200"]["content"]["application/x-ndjson"].is_object());
    // Generators of clients take the first media type.
    let path = OPENAPI.find(r#""/v1/books:export":"#).unwrap();
    let first = |kind: &str| OPENAPI[path..].find(kind).unwrap();
    assert!(first("text/event-stream") < first("application/x-ndjson"));
    let titles = operation("/v1/titles", "get");
    let titles = &titles["responses"]["200"]["content"]["application/json"]["schema"];
    assert_eq!(titles, &json!({"type": "array", "items": {"type": "string"}}));
}
