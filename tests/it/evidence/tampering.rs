//! The offline verifier refuses every file that was tampered with.

use authority_crypto::sha256;
use authority_evidence::verify::{Trust, verify};
use serde_json::{Value, json};

use super::{asking, bundle, decided, published, sealing};
use crate::support::only;

/// Collects every leaf of a JSON value, as JSON pointers.
fn leaves(value: &Value, at: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            let each = members.iter();
            each.for_each(|(name, inner)| leaves(inner, &format!("{at}/{name}"), found));
        }
        Value::Array(items) if !items.is_empty() => {
            let each = items.iter().enumerate();
            each.for_each(|(place, inner)| leaves(inner, &format!("{at}/{place}"), found));
        }
        _ => found.push(at.to_owned()),
    }
}

/// No field of a bundle can be changed, removed or added without detection, even if the bundle's
/// own digest is recomputed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_member_of_a_bundle_can_be_altered() {
    let (_app, client) = sealing().await;
    let id = decided(&client, asking(1200.0, "DE")).await;
    super::sealed(&client, &id).await;
    let whole: Value = serde_json::from_str(&bundle(&client, &id).await).unwrap();
    let keys = published(&client).await;
    let trust = Trust { keys: Some(keys), log_key: None };
    let valid = |file: &Value| verify(file.to_string().as_bytes(), &trust).is_ok();
    assert!(valid(&whole));
    let mut paths = Vec::new();
    leaves(&whole, "", &mut paths);
    assert!(paths.len() > 100, "{}", paths.len());
    for path in paths {
        let mut file = whole.clone();
        let place = file.pointer_mut(&path).unwrap();
        *place = match &*place {
            Value::String(text) if text.is_empty() => json!("x"),
            Value::String(text) => {
                let mut letters: Vec<char> = text.chars().collect();
                let middle = letters.len() / 2;
                letters[middle] = if letters[middle] == 'a' { 'b' } else { 'a' };
                json!(letters.into_iter().collect::<String>())
            }
            Value::Bool(flag) => json!(!flag),
            Value::Number(number) => json!(number.as_i64().unwrap_or_default() + 1),
            Value::Null => json!("x"),
            Value::Array(_) => json!(["x"]),
            Value::Object(_) => only("x", 1),
        };
        if path != "/bundle_digest" {
            redigest(&mut file);
        }
        assert!(!valid(&file), "{path}");
    }
    for pointer in [
        "",
        "/pack",
        "/pack/log",
        "/pack/signature",
        "/pack/record",
        "/context",
        "/facts/value",
        "/blobs/0",
    ] {
        let mut file = whole.clone();
        file.pointer_mut(pointer).unwrap()["more"] = 1.into();
        redigest(&mut file);
        assert!(!valid(&file), "{pointer}");
    }
}

#[track_caller]
fn redigest(file: &mut Value) {
    file.as_object_mut().unwrap().remove("bundle_digest");
    let digest = sha256(&serde_json_canonicalizer::to_vec(file).unwrap());
    file["bundle_digest"] = json!(format!("sha256:{}", hex::encode(digest)));
}
