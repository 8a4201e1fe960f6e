//! The identity in a token.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use crate::{
    outcome::CommandOutput,
    text::{self, plain},
    view::View,
};

/// Describes the person and the role in a token without verifying it; the service verifies it.
pub(crate) fn caller_of(token: &str) -> String {
    let Some(claims) = claims(token) else { return "a credential without a person".to_owned() };
    let role = claims["public_metadata"]["role"].as_str().unwrap_or("no role");
    let of = tenant(&claims).map(|tenant| format!(" of {tenant}")).unwrap_or_default();
    plain(&format!("{}, {role}{of}", who(&claims)))
}

/// Reads the identity in a token without verifying it; the service verifies it.
pub(crate) fn identity_of(token: &str, url: &str, view: View) -> CommandOutput {
    let caller = caller_of(token);
    let Some(claims) = claims(token) else {
        let json = json!({"url": url, "api_key": true}).to_string();
        let text = format!("{caller}, on {url}");
        return CommandOutput { text, json: Some(json), ..CommandOutput::default() };
    };
    let ends = claims["exp"].as_i64().and_then(|end| DateTime::<Utc>::from_timestamp(end, 0));
    let ends = ends.map(|end| end.to_rfc3339());
    let until = ends.as_ref().map(|end| format!(", until {}", view.until(end)));
    let text = plain(&format!("{caller}, on {url}{}", until.unwrap_or_default()));
    let role = &claims["public_metadata"]["role"];
    let json = json!({"url": url, "who": who(&claims), "role": role, "tenant_id": tenant(&claims),
                      "issuer": claims["iss"], "expires_at": ends});
    CommandOutput { text, json: Some(json.to_string()), ..CommandOutput::default() }
}

/// Returns the claims of a JWT; `None` for another credential.
fn claims(token: &str) -> Option<Value> {
    let payload = token.split('.').nth(1).and_then(|part| URL_SAFE_NO_PAD.decode(part).ok());
    payload.and_then(|bytes| serde_json::from_slice(&bytes).ok())
}

fn who(claims: &Value) -> &str {
    let names = ["email", "name", "sub"].map(|claim| text::of(claims, claim));
    names.into_iter().find(|name| !name.is_empty()).unwrap_or(text::NOTHING)
}

fn tenant(claims: &Value) -> Option<&str> {
    let about = &claims["public_metadata"];
    let tenant = ["tenant_id", "org_id"].iter().find_map(|member| about[*member].as_str());
    tenant.or(claims["org_id"].as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_says_whose_it_is() {
        let url = "https://a.example/";
        let view = View { utc: true, json: false };
        let claims = json!({"sub": "1", "email": "a@b.example\u{1b}", "exp": 4102444800i64,
            "public_metadata": {"role": "approver", "tenant_id": "svc:tenant:acme"}});
        let token = format!("e30.{}.x", URL_SAFE_NO_PAD.encode(claims.to_string()));
        let shown = identity_of(&token, url, view);
        let start = r"a@b.example\u{1b}, approver of svc:tenant:acme, on https://a.example/, until 2100-01-01T";
        assert!(shown.text.starts_with(start), "{}", shown.text);
        assert_eq!(caller_of(&token), r"a@b.example\u{1b}, approver of svc:tenant:acme");
        let key = identity_of("svc_sandbox_1_2", url, view).text;
        assert_eq!(key, "a credential without a person, on https://a.example/");
    }
}
