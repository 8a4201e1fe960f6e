//! The fields that a patch changes, and the bounding lists that it clears.

use authority_model::{
    record::{Record, RecordRequest},
    validate::{Validate, Violations},
    wire::FieldMask,
};

/// Reports the violations in fields that a patch names. The patch does not change other fields.
pub(crate) fn named_faults<C: RecordRequest>(
    patch: &C::Record,
    mask: &FieldMask,
    faults: &mut Violations,
) {
    let mut all = Violations::default();
    patch.validate(&mut all);
    for fault in all.list {
        let member = fault.field.split(['.', '[']).next().unwrap_or_default();
        if fault.as_more().is_some() {
            // Further violations are only counted. Some may be in a named field.
            faults.put(&fault);
        } else if mask.paths.iter().any(|path| path == member) {
            faults.add(&format!("{}.{}", C::FIELD, fault.field), fault.problem);
        }
    }
}

/// Adds to the mask the lists that `clear` names.
///
/// An empty list never clears a bound, because its author may mean to forbid everything.
pub(crate) fn with_cleared<C: RecordRequest>(
    patch: &C::Record,
    mut mask: FieldMask,
    cleared: FieldMask,
    faults: &mut Violations,
) -> FieldMask {
    for path in mask.distinct().filter(|path| patch.unbounded(path) == Some(true)) {
        let problem = "is empty and sets no bound; to remove the bound, name it in `clear`";
        faults.add(&format!("{}.{path}", C::FIELD), problem);
    }
    for path in cleared.distinct() {
        match patch.unbounded(path) {
            Some(true) => {}
            Some(false) => {
                let problem = "must not be both set and named in `clear`";
                faults.add(&format!("{}.{path}", C::FIELD), problem);
            }
            None => {
                let known = C::Record::BOUNDS.join(", ");
                faults.add("clear", format!("`{path}` can't be cleared; expected any of {known}"));
            }
        }
    }
    mask.paths.extend(cleared.paths);
    mask
}

#[cfg(test)]
mod tests {
    use authority_model::proto::keys::{ApiKey, UpdateApiKeyRequest};

    use super::*;

    fn mask(paths: &[&str]) -> FieldMask {
        FieldMask { paths: paths.iter().map(ToString::to_string).collect() }
    }

    /// Returns the fields with violations, and the mask.
    fn patched(patch: &ApiKey, named: &[&str], cleared: &[&str]) -> (Vec<String>, Vec<String>) {
        let mut faults = Violations::default();
        let (named, cleared) = (mask(named), mask(cleared));
        let all = with_cleared::<UpdateApiKeyRequest>(patch, named, cleared, &mut faults);
        (faults.list.into_iter().map(|fault| fault.field).collect(), all.paths)
    }

    #[test]
    fn a_bound_is_taken_away_by_its_name_alone() {
        let (none, one) =
            (ApiKey::default(), ApiKey { ip_allowlist: vec!["::1".into()], ..ApiKey::default() });
        let (faults, all) = patched(&none, &["label"], &["principal_ids", "ip_allowlist"]);
        assert!(faults.is_empty(), "{faults:?}");
        assert_eq!(all, ["label", "principal_ids", "ip_allowlist"]);
        for (patch, named, cleared, fault) in [
            (&none, &["ip_allowlist"][..], &[][..], "api_key.ip_allowlist"),
            (&none, &["principal_ids", "principal_ids"], &[], "api_key.principal_ids"),
            (&none, &["ip_allowlist"], &["ip_allowlist"], "api_key.ip_allowlist"),
            (&one, &["ip_allowlist"], &["ip_allowlist"], "api_key.ip_allowlist"),
            (&one, &[], &["ip_allowlist"], "api_key.ip_allowlist"),
            (&none, &[], &["scopes"], "clear"),
            (&none, &[], &["expires_at"], "clear"),
            (&none, &[], &[""], "clear"),
        ] {
            assert_eq!(patched(patch, named, cleared).0, [fault], "{named:?} {cleared:?}");
        }
    }
}
