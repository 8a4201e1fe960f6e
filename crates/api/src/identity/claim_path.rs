//! The place of a value in the claims of a token.
//!
//! Names of claims may contain dots, colons and slashes (`https://acme.example/role`). A path is
//! therefore the name of a claim, or a JSON Pointer (RFC 6901) if it begins with `/`.

use serde_json::{Map, Value};

/// The place of a value in a token's claims.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimPath(Vec<String>);

impl ClaimPath {
    /// Parses the name of a claim, or a JSON Pointer to a member of a claim.
    ///
    /// # Errors
    /// The text is empty, or is a pointer with an empty name or an invalid escape. The error is
    /// the remedy.
    pub fn parse(text: &str) -> Result<Self, &'static str> {
        if text.is_empty() {
            return Err("name a claim (`groups`) or a place in it (`/realm_access/roles`)");
        }
        let Some(pointer) = text.strip_prefix('/') else {
            return Ok(Self(vec![text.to_owned()]));
        };
        pointer.split('/').map(unescaped).collect::<Option<_>>().map(Self).ok_or(
            "each name after a `/` must not be empty; write `~1` for a `/` and `~0` for a `~` in a name, or the name \
             of the claim alone without a `/` before it",
        )
    }

    /// The name of the claim that contains the place.
    pub(super) fn claim(&self) -> &str {
        self.0.first().map_or("", String::as_str)
    }

    /// Whether the name of the value shows that it is a list of groups: `groups`, `cognito:groups`,
    /// `https://acme.example/groups`, `memberOf`.
    pub fn names_groups(&self) -> bool {
        let last = self.0.last().map_or("", String::as_str).to_ascii_lowercase();
        last.ends_with("groups") || last.ends_with("memberof")
    }

    /// Returns the value, if the claims have one there. Items of lists have no path.
    pub(super) fn find<'c>(&self, claims: &'c Map<String, Value>) -> Option<&'c Value> {
        let (first, rest) = self.0.split_first()?;
        rest.iter().try_fold(claims.get(first)?, |value, name| value.as_object()?.get(name))
    }
}

/// Resolves the escapes of RFC 6901, 4. Returns `None` for an empty name or another escape.
fn unescaped(name: &str) -> Option<String> {
    let mut after = name.split('~').skip(1);
    let is_valid = !name.is_empty() && after.all(|rest| rest.starts_with(['0', '1']));
    is_valid.then(|| name.replace("~1", "/").replace("~0", "~"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn found(path: &str, claims: &Value) -> Option<Value> {
        ClaimPath::parse(path).unwrap().find(claims.as_object().unwrap()).cloned()
    }

    #[test]
    fn a_path_is_a_name_or_a_pointer() {
        let claims = json!({
            "groups": ["a"],
            "a.b": 1,
            "a": {"b": 2, "c/d": 3, "e~f": 4, "~1": 5, "": 6},
            "https://acme.example/role": "admin",
            "https://acme.example/app": {"role": "viewer"},
            "urn:zitadel:iam:org:project:roles": {"admin": {}},
        });
        for (path, value) in [
            ("groups", json!(["a"])),
            // A dot is a part of the name.
            ("a.b", json!(1)),
            ("/a.b", json!(1)),
            ("/a/b", json!(2)),
            ("/a/c~1d", json!(3)),
            ("/a/e~0f", json!(4)),
            ("/a/~01", json!(5)),
            ("https://acme.example/role", json!("admin")),
            ("/https:~1~1acme.example~1app/role", json!("viewer")),
            ("urn:zitadel:iam:org:project:roles", json!({"admin": {}})),
        ] {
            assert_eq!(found(path, &claims), Some(value), "{path}");
        }
        for path in ["a/b", "/groups/0", "/a/b/c", "/nothing", "Groups", "a~1b"] {
            assert_eq!(found(path, &claims), None, "{path}");
        }
    }

    #[test]
    fn common_names_of_groups_are_known() {
        for (path, expected) in [
            ("groups", true),
            ("/groups", true),
            ("Groups", true),
            ("cognito:groups", true),
            ("https://acme.example/groups", true),
            ("/https:~1~1acme.example~1groups", true),
            ("/realm_access/user_groups", true),
            ("memberOf", true),
            ("memberof", true),
            ("/groups/role", false),
            ("roles", false),
            ("/resource_access/authority/roles", false),
        ] {
            assert_eq!(ClaimPath::parse(path).unwrap().names_groups(), expected, "{path}");
        }
    }

    #[test]
    fn a_pointer_with_an_empty_name_or_another_escape_is_refused() {
        for path in ["", "/", "//", "/a/", "/a//b", "/a~", "/a~2", "/~"] {
            assert!(ClaimPath::parse(path).is_err(), "{path}");
        }
    }
}
