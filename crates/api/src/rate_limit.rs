//! Limits on how often an operation may be called and on open calls, and the headers that show them
//! (draft-ietf-httpapi-ratelimit-headers-10). Each limit is a constant in the code that enforces
//! it, or a member of a record; `GET /rate-limits` lists the limits with a window.

use authority_process::compute;
use chrono::TimeDelta;
use http::{HeaderMap, HeaderValue};
use tonic::Response;

use crate::error::{ApiError, ErrorCode, LIMIT_HEADERS};

/// The number of calls permitted in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RateLimit {
    /// The limited operation, and the party to which the limit applies.
    pub name: &'static str,
    pub limit: u32,
    pub window_seconds: u32,
}

impl RateLimit {
    pub const fn window(self) -> TimeDelta {
        TimeDelta::seconds(self.window_seconds as i64)
    }

    /// Returns the refusal of a call above the limit. `text` has the limit and the window.
    pub fn refusal(self, text: impl Into<String>, wait_seconds: u64) -> ApiError {
        let left = Remaining::Calls { limit: self, calls: 0, seconds: wait_seconds };
        refusal(text.into(), wait_seconds, left)
    }
}

/// The number of calls of a kind that may be open at the same time on a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OpenLimit {
    pub name: &'static str,
    pub limit: usize,
}

impl OpenLimit {
    /// Returns the refusal of a call above the limit. `text` has the limit.
    pub fn refusal(self, text: impl Into<String>, wait_seconds: u64) -> ApiError {
        refusal(text.into(), wait_seconds, Remaining::Open { limit: self, calls: 0 })
    }
}

fn refusal(text: String, wait_seconds: u64, left: Remaining) -> ApiError {
    let refused = ApiError::new(ErrorCode::RateLimited, text);
    let refused = refused.with("retry_after", wait_seconds.to_string());
    let values = [left.value(), left.policy()];
    LIMIT_HEADERS.into_iter().zip(values).fold(refused, |all, (name, value)| all.with(name, value))
}

/// The remaining part of a limit. Two parts of the same limit are ordered by their calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Remaining {
    /// The calls that are left now, as far as this node knows, and the seconds until the whole limit
    /// is available again.
    Calls { limit: RateLimit, calls: u32, seconds: u64 },
    /// The calls that may still be opened.
    Open { limit: OpenLimit, calls: usize },
}

impl Remaining {
    fn value(&self) -> String {
        match self {
            Self::Calls { limit, calls, seconds } => {
                format!(r#""{}";r={calls};t={seconds}"#, limit.name)
            }
            Self::Open { limit, calls } => format!(r#""{}";r={calls}"#, limit.name),
        }
    }

    fn policy(&self) -> String {
        match self {
            Self::Calls { limit, .. } => {
                format!(r#""{}";q={};w={}"#, limit.name, limit.limit, limit.window_seconds)
            }
            Self::Open { limit, .. } => {
                format!(r#""{}";q={};qu="concurrent-requests""#, limit.name, limit.limit)
            }
        }
    }
}

/// The limits that a call counts towards: the caller's, and those of the caller's tenant.
#[derive(Clone, Copy, Debug, Default)]
pub struct AppliedLimits([Option<Remaining>; 2]);

impl AppliedLimits {
    pub fn new(of_caller: Option<Remaining>, of_tenant: Option<Remaining>) -> Self {
        Self([of_caller, of_tenant])
    }

    /// Adds the limits to the headers of an answer.
    pub fn show(&self, headers: &mut HeaderMap) {
        let all = || self.0.iter().flatten();
        if all().next().is_none() {
            return;
        }
        let left: Vec<_> = all().map(Remaining::value).collect();
        let policies: Vec<_> = all().map(Remaining::policy).collect();
        for (name, values) in LIMIT_HEADERS.into_iter().zip([left, policies]) {
            if let Ok(value) = HeaderValue::try_from(values.join(", ")) {
                headers.insert(name, value);
            }
        }
    }

    /// Returns the response with the limits in its metadata, which are headers over REST.
    pub fn shown_in<M>(&self, mut response: Response<M>) -> Response<M> {
        self.show(response.metadata_mut().as_mut());
        response
    }
}

impl From<Remaining> for AppliedLimits {
    fn from(left: Remaining) -> Self {
        Self([Some(left), None])
    }
}

impl From<compute::Error> for ApiError {
    fn from(error: compute::Error) -> Self {
        match error {
            compute::Error::TenantFull(limit) => {
                let limit = OpenLimit { name: "waiting_computations_per_tenant", limit };
                limit.refusal(error.to_string(), 1)
            }
            // This is not a limit of the caller.
            compute::Error::Full => {
                Self::new(ErrorCode::RateLimited, error.to_string()).with("retry_after", "1")
            }
            compute::Error::TooLong => Self::new(ErrorCode::Unavailable, error.to_string()),
            compute::Error::Failed => Self::plain(ErrorCode::Internal),
        }
    }
}

#[cfg(test)]
mod tests {
    use tonic::Status;

    use std::time::Duration;

    use super::*;

    const TESTS: RateLimit = RateLimit { name: "tests", limit: 10, window_seconds: 60 };
    const EXPORTS: OpenLimit = OpenLimit { name: "exports", limit: 3 };

    #[test]
    fn the_headers_have_the_form_of_the_draft() {
        let of_key = Remaining::Calls { limit: TESTS, calls: 4, seconds: 7 };
        let all = RateLimit { name: "all", ..TESTS };
        let of_all = Remaining::Calls { limit: all, calls: 0, seconds: 60 };
        let response = AppliedLimits::new(Some(of_key), Some(of_all)).shown_in(Response::new(()));
        let shown =
            |name: &str| response.metadata().get(name).unwrap().to_str().unwrap().to_owned();
        assert_eq!(shown("ratelimit"), r#""tests";r=4;t=7, "all";r=0;t=60"#);
        assert_eq!(shown("ratelimit-policy"), r#""tests";q=10;w=60, "all";q=10;w=60"#);
        let response = AppliedLimits::default().shown_in(Response::new(()));
        assert!(response.metadata().is_empty());
        let open = Remaining::Open { limit: EXPORTS, calls: 2 };
        let response = AppliedLimits::from(open).shown_in(Response::new(()));
        let shown =
            LIMIT_HEADERS.map(|name| response.metadata().get(name).unwrap().to_str().unwrap());
        assert_eq!(shown, [r#""exports";r=2"#, r#""exports";q=3;qu="concurrent-requests""#]);
    }

    #[test]
    fn a_refusal_shows_its_limit_in_the_metadata_and_not_in_the_details() {
        for (refused, wait, left, policy) in [
            (TESTS.refusal("x", 3), 3, r#""tests";r=0;t=3"#, r#""tests";q=10;w=60"#),
            (
                EXPORTS.refusal("x", 1),
                1,
                r#""exports";r=0"#,
                r#""exports";q=3;qu="concurrent-requests""#,
            ),
        ] {
            let status = Status::from(refused);
            let shown = |name: &str| status.metadata().get(name).unwrap().to_str().unwrap();
            assert_eq!((shown("ratelimit"), shown("ratelimit-policy")), (left, policy));
            let details = tonic_types::StatusExt::get_details_error_info(&status).unwrap();
            assert_eq!(details.metadata.keys().collect::<Vec<_>>(), ["retry_after"]);
            let retry = tonic_types::StatusExt::get_details_retry_info(&status).unwrap();
            assert_eq!(retry.retry_delay, Some(Duration::from_secs(wait)));
        }
    }
}
