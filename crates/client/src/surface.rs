//! The paths that a credential gives access to. Some operations have one path each for the owner,
//! people of a tenant and API keys.

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::Value;

/// The first characters of every API key.
const API_KEY: &str = "svc_";
/// The role in the token of the installation's owner.
const OWNER: &str = "owner";

/// The segment of a path that the segments of a surface replace.
pub const SURFACE: &str = "{surface}";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Surface {
    Owner,
    Tenant,
    ApiKeys,
}

impl Surface {
    pub const ALL: [Self; 3] = [Self::Owner, Self::Tenant, Self::ApiKeys];

    /// Returns the surface of a token. The token is not verified here: the service does that, and
    /// refuses an invalid token. An unreadable token counts as the owner's.
    pub fn of(token: &str) -> Self {
        if token.starts_with(API_KEY) {
            return Self::ApiKeys;
        }
        let payload = token.split('.').nth(1).and_then(|part| URL_SAFE_NO_PAD.decode(part).ok());
        let claims = payload.and_then(|bytes| serde_json::from_slice::<Value>(&bytes).ok());
        match claims {
            Some(claims) if claims["public_metadata"]["role"] != OWNER => Self::Tenant,
            _ => Self::Owner,
        }
    }

    /// Returns the path with the segments of this surface in place of [`SURFACE`].
    pub fn path<'a>(self, path: &[&'a str]) -> Vec<&'a str> {
        let segments: &[&str] = match self {
            Self::Owner => &["api", "v1"],
            Self::Tenant => &["api", "v1", "app"],
            Self::ApiKeys => &["v1"],
        };
        match path {
            [SURFACE, rest @ ..] => [segments, rest].concat(),
            path => path.to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_credential_has_a_surface() {
        let token = |claims: Value| format!("e30.{}.x", URL_SAFE_NO_PAD.encode(claims.to_string()));
        let with_role = |role| token(json!({"public_metadata": {"role": role}}));
        for (credential, path) in [
            ("svc_sandbox_1_2_3".to_owned(), "v1/x"),
            (with_role("owner"), "api/v1/x"),
            (with_role("admin"), "api/v1/app/x"),
            (with_role("Owner"), "api/v1/app/x"),
            (token(json!({"org_id": "org_acme"})), "api/v1/app/x"),
            ("hush".to_owned(), "api/v1/x"),
            ("a.b.c".to_owned(), "api/v1/x"),
        ] {
            assert_eq!(Surface::of(&credential).path(&[SURFACE, "x"]).join("/"), path);
        }
        // Only the first segment is a surface.
        assert_eq!(Surface::ApiKeys.path(&["v1", "decisions", SURFACE])[2], SURFACE);
    }
}
