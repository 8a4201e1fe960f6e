//! Shows refusals of the service in the terms of the command line.

use serde::Deserialize;

use super::text::plain;

/// Returns the flag for a member of a request.
pub(super) fn flag(member: &str) -> String {
    // The index in `scopes[1]` is dropped: a flag is repeated for each scope.
    let named = match member.split(['.', '[']).next() {
        Some("tenant_id") => "--tenant",
        Some("scopes") => "--scope",
        Some("principal_ids") => "--principal",
        Some("anchor_id") => "--anchor",
        Some("actor_id" | "subject_id") => "the principal",
        Some("delegation_id") => "--delegation",
        Some("candidate_policies") => "--policy",
        Some("without_policies") => "--without",
        Some("request_digest") => "--digest",
        Some("valid_until") => "--valid-for",
        Some("content_hash") => "--from",
        Some("observations") => "--observe",
        Some("tags") => "--tag",
        Some("event_types") => "--event-type",
        Some("signature") => "--sign",
        _ => return format!("--{}", member.replace(['_', '.'], "-")),
    };
    named.to_owned()
}

/// The advice for an error if its code alone is not enough.
fn remedy(code: &str) -> &'static str {
    match code {
        "feeder_not_permitted" => "\nadd the key's id to `feeder_key_ids` of the anchor's source",
        "signature_invalid" => {
            "\ngive the key with --sign, and its public half to `jwks` of the anchor's source: \
             --dry-run prints it"
        }
        "snapshot_exists" => {
            "\nthe snapshot is already stored; for a new observation, set another --sampled-at"
        }
        _ => "",
    }
}

/// The body of every error.
#[derive(Deserialize)]
pub(in crate::cli) struct ApiError {
    error: String,
    message: String,
    #[serde(default)]
    details: Vec<Detail>,
    request_id: Option<String>,
}

#[derive(Deserialize)]
struct Detail {
    field: String,
    problem: String,
}

impl ApiError {
    /// The advice for the error if its code alone is not enough.
    pub(super) fn remedy(&self) -> &'static str {
        remedy(&self.error)
    }

    /// Whether the caller may not call the operation at all, with any request.
    pub(super) fn is_of_rules(&self) -> bool {
        self.error == "forbidden" && self.message.starts_with("this operation is")
    }

    /// Whether the sign-in was too long ago (RFC 9470).
    pub(super) fn asks_for_a_sign_in(&self) -> bool {
        self.error == "insufficient_user_authentication"
    }

    /// The error as text, with the names of flags for invalid parameters. A challenge's details are
    /// about the sign-in, not about the request.
    pub(in crate::cli) fn text(&self) -> String {
        let details = self
            .details
            .iter()
            .map(|Detail { field, problem }| format!("{} {problem}", flag(field)));
        let details = details.collect::<Vec<_>>().join("; ");
        let has_own_words = details.is_empty() || self.asks_for_a_sign_in();
        let why = if has_own_words { &self.message } else { &details };
        let request = self.request_id.as_ref().map(|id| format!(" (request {id})"));
        plain(&format!("{}: {why}{}", self.error, request.unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_has_the_name_of_its_flag() {
        for (member, named) in [
            ("page_token", "--page-token"),
            ("anchor_id", "--anchor"),
            ("observations[3].value", "--observe"),
            ("signature.kid", "--sign"),
            ("filter.types", "--filter-types"),
        ] {
            assert_eq!(flag(member), named);
        }
    }

    #[test]
    fn a_refusal_names_flags_and_carries_no_control_characters() {
        let body = r#"{"ok": false, "error": "invalid_request", "message": "the request is",
            "details": [{"field": "page_token", "problem": "is \u001b[31mnot ours"},
                        {"field": "tenant_id", "problem": "is unknown"}], "request_id": "7f"}"#;
        let refusal: ApiError = serde_json::from_str(body).unwrap();
        assert_eq!(
            refusal.text(),
            "invalid_request: --page-token is \\u{1b}[31mnot ours; --tenant is unknown (request 7f)"
        );
    }
}
