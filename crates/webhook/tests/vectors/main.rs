//! `sdk/vectors/webhooks.json`: valid and invalid deliveries, which every receiver library must
//! judge alike.
//!
//! This test generates the deliveries with the service's own signing code, with fixed keys and
//! times.
//!
//! To update the file, run `AUTHORITY_UPDATE=1 cargo test -p authority-webhook --test vectors`.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod cases;
mod delivery;
mod libraries;

use std::{fs, path::Path};

use authority_verify_webhook::{Options, Suite, verify_webhook};
use serde_json::Value;

fn sdk(path: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../sdk").join(path)
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a test's switch is not a service setting")]
fn the_table_is_what_is_signed_today() {
    let path = sdk("vectors/webhooks.json");
    let made = written(&cases::table());
    if std::env::var_os("AUTHORITY_UPDATE").is_some() {
        fs::write(&path, &made).unwrap();
    }
    assert!(
        fs::read_to_string(&path).unwrap() == made,
        "run AUTHORITY_UPDATE=1 cargo test -p authority-webhook --test vectors"
    );
}

/// Writes members in the order of their names, one case per line.
fn written(table: &Value) -> String {
    let line = |value: &Value| serde_json_canonicalizer::to_string(value).unwrap();
    let cases: Vec<_> = table["cases"].as_array().unwrap().iter().map(line).collect();
    let (about, options) = (line(&table["about"]), line(&table["options"]));
    let cases = cases.join(",\n");
    format!("{{\"about\": {about},\n\"options\": {options},\n\"cases\": [\n{cases}\n]}}\n")
}

#[test]
fn the_rust_library_judges_each_as_the_table_says() {
    let table = cases::table();
    let cases = table["cases"].as_array().unwrap();
    for case in cases {
        assert_eq!(
            judged(&table["options"], case),
            case["expect"].as_str().unwrap(),
            "{}",
            case["name"]
        );
    }
    let valid = cases.iter().filter(|case| case["expect"] == "valid").count();
    assert!(valid >= 15 && cases.len() - valid >= 50, "{valid} of {}", cases.len());
}

/// Returns `valid`, or the code of the error.
fn judged(common: &Value, case: &Value) -> String {
    let option = |name: &str| case["options"].get(name).unwrap_or(&common[name]);
    let texts = |name: &str| -> Vec<&str> {
        option(name).as_array().into_iter().flatten().map(|text| text.as_str().unwrap()).collect()
    };
    let suite = |name: &str| Suite::ALL.into_iter().find(|suite| suite.as_str() == name).unwrap();
    let accept: Vec<_> = texts("accept").into_iter().map(suite).collect();
    let secrets = texts("secrets");
    let options = Options {
        jwks: Some(option("jwks")).filter(|jwks| !jwks.is_null()),
        secrets: &secrets,
        accept: &accept,
        tolerance: option("tolerance").as_u64().unwrap_or(300),
        ..Options::new(option("url").as_str().unwrap(), option("tenant_id").as_str().unwrap())
    };
    let headers = case["headers"].as_array().unwrap().iter();
    let headers: Vec<_> =
        headers.map(|pair| (pair[0].as_str().unwrap(), pair[1].as_str().unwrap())).collect();
    let body = case["body"].as_str().unwrap();
    match verify_webhook(body.as_bytes(), &headers, &options, case["now"].as_u64().unwrap()) {
        Ok(event) => {
            assert_eq!(Value::Object(event), serde_json::from_str::<Value>(body).unwrap());
            "valid".to_owned()
        }
        Err(why) => {
            for word in case["mentions"].as_array().into_iter().flatten() {
                assert!(
                    why.to_string().contains(word.as_str().unwrap()),
                    "{why}: {}",
                    case["name"]
                );
            }
            why.code().to_owned()
        }
    }
}
