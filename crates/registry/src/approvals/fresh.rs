//! Fresh authentication: a tenant may require a recent sign-in for approvals. Declines and
//! withdrawals never require a recent sign-in, because they permit no action.

use authority_api::{
    error::{ApiError, ErrorCode},
    identity::Caller,
};
use authority_graph::TenantHandle;
use chrono::{DateTime, TimeDelta, Utc};

use crate::flow::prelude::*;

/// How far the identity provider's clock may be ahead of this node's clock.
const SKEW: TimeDelta = TimeDelta::seconds(30);

/// Refuses a caller without a recent sign-in. A credential without a sign-in time, such as an API
/// key, is also refused. The tenant must be known, because its settings determine the limit.
///
/// # Errors
/// 401 with a remedy, as a step-up challenge (RFC 9470).
pub(crate) fn require(
    handle: &TenantHandle,
    caller: &Caller,
    now: DateTime<Utc>,
) -> Result<(), Error> {
    let longest = handle.read().profile.approval_max_auth_age;
    match longest.and_then(|longest| missing(longest, caller.authenticated_at, now)) {
        Some(problem) => Err(problem.into()),
        None => Ok(()),
    }
}

/// Returns the error for a sign-in time, or `None` if the time is accepted.
fn missing(longest: TimeDelta, at: Option<DateTime<Utc>>, now: DateTime<Utc>) -> Option<ApiError> {
    let seconds = longest.num_seconds();
    let found = match at {
        None => "your access token has no sign-in time (`auth_time`); the operator of the identity provider \
                 can add that claim to its access tokens"
            .to_owned(),
        Some(at) if at > now + SKEW => "your token's sign-in time is in the future".to_owned(),
        Some(at) if now - at > longest => {
            format!("you signed in {} seconds ago", (now - at).num_seconds())
        }
        Some(_) => return None,
    };
    let text = format!(
        "sign in again (`max_age={seconds}`): this tenant accepts approvals only within {seconds} seconds of a \
         sign-in; {found}"
    );
    let challenge =
        format!("Bearer error=\"insufficient_user_authentication\", max_age=\"{seconds}\"");
    Some(
        ApiError::new(ErrorCode::InsufficientUserAuthentication, text)
            .with("max_age", seconds.to_string())
            .with("www_authenticate", challenge),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_counts_only_within_the_age_that_the_tenant_sets() {
        let now = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
        let ago = |seconds| Some(now - TimeDelta::seconds(seconds));
        for (at, does) in [
            (ago(0), true),
            (ago(300), true),
            (ago(301), false),
            (ago(-30), true),
            (ago(-31), false),
            (DateTime::from_timestamp(0, 0), false),
            (None, false),
        ] {
            let found = missing(TimeDelta::seconds(300), at, now);
            assert_eq!(found.is_none(), does, "{at:?}");
            assert!(found.is_none_or(|error| error.message.contains("sign in again")));
        }
    }
}
