//! Suggests a repair if a text reads a field that may be absent.

use cedar_policy_core::validator::validation_errors::AttributeAccess;

use super::{
    cedar_error::presence_test,
    fault::{Fault, Severity},
    uses::Path,
};

/// Replaces Cedar's suggestion, a `has` test next to the comparison, with a test in `unless`.
///
/// In a forbid, Cedar's test would allow requests that omit the field.
pub(super) fn as_unless(fault: Fault, access: &AttributeAccess) -> Fault {
    Fault { suggestion: Some(allowed_with(&presence_test(access))), ..fault }
}

fn allowed_with(test: &str) -> String {
    format!("write the allowed case: `unless {{ {test} && … }}`")
}

pub(super) fn unguarded(
    mut fault: Fault,
    path: &Path,
    near: Option<String>,
    forbids: bool,
) -> Fault {
    let (name, of) = path.split_last().map_or((String::new(), &[][..]), |(n, of)| (n.clone(), of));
    let of = of.iter().fold(String::new(), |of, part| of + "." + part);
    fault.severity = Severity::Warning;
    fault.problem = format!(
        "`context.input{of}.{name}` is not declared and may be absent: without it this \
         cannot be evaluated and denies as rule_error"
    );
    let test = format!("context.input{of} has {name}");
    let ask = if forbids { allowed_with(&test) } else { format!("test `{test}` first") };
    fault.suggestion = Some(match near {
        Some(near) => format!("did you mean `{near}`? If not, {ask}"),
        None => ask,
    });
    fault
}
