//! The rules for a snapshot's fields, and the fields computed before it is stored.

use authority_api::identity::caller;
use authority_decision::reality::CLOCK_SKEW;
use authority_model::{
    proto::reality::{FeedRealitySnapshotsRequest, RealityAnchor, RealitySnapshot},
    validate::Validate,
};
use chrono::{DateTime, Utc};
use serde::Serialize;
use serde_json::Value;

use super::{
    freshness::moment,
    jwks::{self, Signature},
    objects::check,
    signed_snapshot,
};
use crate::flow::prelude::*;

const ALGORITHMS: [&str; 4] = ["EdDSA", "ES256", "ES384", "RS256"];
/// The maximum length of a path and of a signature in base64, in characters.
const LONGEST: usize = 2048;

/// Checks the nested objects.
pub(super) fn objects(snapshot: &RealitySnapshot, found: &mut Violations) {
    check("content_summary", snapshot.content_summary.as_ref(), found, |_| {});
    check("freshness", snapshot.freshness.as_ref(), found, |_| {});
    check("signature", snapshot.signature.as_ref(), found, |object| {
        for name in ["alg", "kid", "value_b64"] {
            if object.members.get(name).is_none_or(Value::is_null) {
                object.found.add(name, "is required");
            }
        }
        object.word("alg", &ALGORITHMS);
        object.text("kid", LONGEST);
        object.text("value_b64", LONGEST);
    });
    for (index, observation) in snapshot.observations.iter().enumerate() {
        check(&format!("observations[{index}]"), Some(observation), found, |object| {
            match object.members.get("path") {
                None => object.found.add("path", "is required"),
                Some(path) if !path.as_str().is_some_and(is_pointer) => {
                    object.found.add("path", "must be a JSON Pointer (RFC 6901), such as `/a/b`");
                }
                Some(_) => {}
            }
            if !object.members.contains_key("value") {
                object.found.add("value", "is required");
            }
        });
    }
}

/// Whether the text is a JSON Pointer (RFC 6901). It is empty, or has parts after `/` in which `~`
/// is escaped.
pub(super) fn is_pointer(text: &str) -> bool {
    let escaped = |(at, _): (usize, &str)| matches!(text.as_bytes().get(at + 1), Some(b'0' | b'1'));
    (text.is_empty() || text.starts_with('/'))
        && text.chars().count() <= LONGEST
        && text.match_indices('~').all(escaped)
}

/// Checks the rules for a snapshot fed by an API key, beyond its proto's rules.
pub(super) fn fed(snapshot: &RealitySnapshot, found: &mut Violations) {
    snapshot.reject_output_only(found);
    objects(snapshot, found);
}

/// Checks a batch. The batch as a whole is refused only for its length.
pub(super) fn batch(
    call: Request<FeedRealitySnapshotsRequest>,
) -> Result<(Caller, FeedRealitySnapshotsRequest), Error> {
    let caller = caller(&call)?;
    let request = call.into_inner();
    let mut found = Violations::default();
    let bare = FeedRealitySnapshotsRequest {
        reality_snapshots: vec![acceptable(); request.reality_snapshots.len()],
    };
    bare.validate(&mut found);
    Error::unless_clean(found)?;
    Ok((caller, request))
}

/// A placeholder that satisfies the proto's rules. Each snapshot of a batch is validated on its
/// own.
fn acceptable() -> RealitySnapshot {
    RealitySnapshot {
        anchor_id: "-".to_owned(),
        sampled_at: Some(DateTime::UNIX_EPOCH.into()),
        content_hash: "-".to_owned(),
        ..RealitySnapshot::default()
    }
}

/// Sets the fields that follow from the anchor. Refuses values that contradict the anchor, the
/// clock or each other.
pub(super) fn complete(
    snapshot: &mut RealitySnapshot,
    anchor: &RealityAnchor,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    let mut found = Violations::default();
    let given = snapshot.anchor_type.get_or_insert_with(|| anchor.anchor_type.clone());
    if *given != anchor.anchor_type {
        found.add("anchor_type", format!("must be the anchor's type, `{}`", anchor.anchor_type));
    }
    let sampled_at = snapshot.sampled_at.map(moment).unwrap_or_default();
    if sampled_at - now > CLOCK_SKEW {
        found.add("sampled_at", "is more than 60 seconds ahead of the service's clock");
    }
    if snapshot.valid_until.is_some_and(|until| moment(until) <= sampled_at) {
        found.add("valid_until", "must be after `sampled_at`");
    }
    if let Some(summary) = &snapshot.content_summary
        && digest(&summary.0)? != snapshot.content_hash
    {
        let problem = "is not `sha256:` and the hex SHA-256 of `content_summary` in RFC 8785 form";
        found.add("content_hash", problem);
    }
    let mut all = Violations::default();
    all.within(RealitySnapshot::KIND, |all| all.append(found));
    Error::unless_clean(all)?;
    let has_observed = !snapshot.observations.is_empty();
    snapshot.observations_hash =
        has_observed.then(|| digest(&snapshot.observations)).transpose()?;
    let keys = jwks::keys(anchor);
    if keys.is_empty() {
        return Ok(());
    }
    match Signature::of(snapshot, keys) {
        Signature::Valid(print) => snapshot.signed_by = Some(print),
        _ => return Err(Error::Refused(ErrorCode::SignatureInvalid)),
    }
    Ok(())
}

/// Like [`signed_snapshot::digest`].
pub(super) fn digest(value: &impl Serialize) -> Result<String, Error> {
    signed_snapshot::digest(value)
        .map_err(|error| Error::Store(authority_store::Error::Internal(error.to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_is_one_of_rfc_6901() {
        for text in ["", "/", "/a/b", "/a~1b/~0", "/é"] {
            assert!(is_pointer(text), "{text}");
        }
        for text in ["a", "a/b", "/~", "/~2", "/a~"] {
            assert!(!is_pointer(text), "{text}");
        }
    }

    #[test]
    fn the_stand_in_of_a_batch_breaks_no_rule() {
        let mut found = Violations::default();
        acceptable().validate(&mut found);
        assert!(found.is_empty());
    }
}
