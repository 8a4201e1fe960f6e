//! Shows refusals of the service in the terms of the command line.

use authority_client::ApiError;

use crate::text::plain;

/// Returns the flag for a member of a request.
pub fn flag(member: &str) -> String {
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
pub(crate) fn remedy(code: &str) -> &'static str {
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

/// The error as text, with the names of flags for invalid parameters.
pub(crate) fn text(error: &ApiError) -> String {
    let faults = error.details.iter().filter(|detail| detail.value.is_none());
    let faults = faults.map(|fault| format!("{} {}", flag(&fault.field), fault.problem));
    let faults = faults.collect::<Vec<_>>().join("; ");
    let why = if faults.is_empty() { &error.message } else { &faults };
    let request = error.request_id.as_ref().map(|id| format!(" (request {id})"));
    plain(&format!("{}: {why}{}", error.error, request.unwrap_or_default()))
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
            text(&refusal),
            "invalid_request: --page-token is \\u{1b}[31mnot ours; --tenant is unknown (request 7f)"
        );
    }

    #[test]
    fn values_of_an_error_are_no_faults_of_the_request() {
        let refused = |field: &str| -> ApiError {
            let detail =
                serde_json::json!({"field": field, "problem": "is admin", "value": "admin"});
            let body = serde_json::json!({"error": "forbidden", "message": "not open to the role",
                "details": [detail], "request_id": null});
            serde_json::from_value(body).unwrap()
        };
        let by_role = refused("permitted_roles");
        assert!(by_role.is_of_rules());
        assert_eq!(text(&by_role), "forbidden: not open to the role");
        assert!(!refused("max_age").is_of_rules());
    }
}
