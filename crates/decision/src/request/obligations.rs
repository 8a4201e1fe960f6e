//! The obligations that the caller of a request supports.

/// The obligations without a duty for the caller. Every caller supports them.
const WITHOUT_DUTY: [&str; 3] = ["audit.emit", "reality.overridden", "reality.warn"];
/// The maximum number of names in a request.
const MOST: usize = 100;
/// The maximum length of a name, in bytes.
const LONGEST: usize = 128;

/// Returns the problem of a list of names. `None` if the list is valid.
pub(crate) fn problem(names: &[String]) -> Option<String> {
    if names.len() > MOST {
        return Some(format!("has more than {MOST} names"));
    }
    let is_name =
        |name: &String| (1..=LONGEST).contains(&name.len()) && !name.contains(char::is_control);
    let all = names.iter().all(is_name);
    (!all).then(|| format!("must be a list of names of 1 to {LONGEST} bytes, such as `mask.pii`"))
}

/// Whether a caller that supports these obligations can meet the obligation.
pub(crate) fn is_supported(supported: &[String], obligation: &str) -> bool {
    WITHOUT_DUTY.contains(&obligation) || supported.iter().any(|name| name == obligation)
}
