//! The times of signatures.

use crate::{error::VerifyError, options::Options};

/// Fails if a signature that was made at `made` is too old or from the future.
pub(crate) fn check_time(made: u64, options: &Options<'_>, now: u64) -> Result<(), VerifyError> {
    if made.abs_diff(now) <= options.tolerance { Ok(()) } else { Err(VerifyError::Time) }
}

/// Parses seconds since 1970 from decimal digits.
pub(crate) fn seconds(text: &str) -> Option<u64> {
    let plain = !text.is_empty() && text.len() <= 15 && text.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| text.parse().ok())?
}
