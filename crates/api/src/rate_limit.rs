//! Limits on how often an operation may be called, and the headers that show them
//! (draft-ietf-httpapi-ratelimit-headers-10). Each limit is a constant in the code that enforces
//! it, or a member of a record; `GET /rate-limits` lists them.

use chrono::TimeDelta;
use tonic::Response;

use crate::error::{ApiError, ErrorCode, LIMIT_HEADERS};

/// The number of calls permitted in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
        let left = format!(r#""{}";r=0;t={wait_seconds}"#, self.name);
        let policy = self.policy();
        refusal(text.into(), wait_seconds, [left, policy])
    }

    fn policy(self) -> String {
        format!(r#""{}";q={};w={}"#, self.name, self.limit, self.window_seconds)
    }
}

/// Returns the refusal of a caller that has `most` calls of a kind open at the same time. `text` has
/// the limit.
pub fn too_many_open(name: &str, most: usize, text: String, wait_seconds: u64) -> ApiError {
    let policy = format!(r#""{name}";q={most};qu="concurrent-requests""#);
    refusal(text, wait_seconds, [format!(r#""{name}";r=0"#), policy])
}

fn refusal(text: String, wait_seconds: u64, values: [String; 2]) -> ApiError {
    let refused = ApiError::new(ErrorCode::RateLimited, text);
    let refused = refused.with("retry_after", wait_seconds.to_string());
    LIMIT_HEADERS.into_iter().zip(values).fold(refused, |all, (name, value)| all.with(name, value))
}

/// The remaining part of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remaining {
    pub limit: RateLimit,
    /// The calls that are left now, as far as this node knows.
    pub calls: u32,
    /// The seconds until the whole limit is available again.
    pub seconds: u64,
}

/// The limits of a call's API key and of its tenant.
#[derive(Clone, Copy, Debug, Default)]
pub struct AppliedLimits([Option<Remaining>; 2]);

impl AppliedLimits {
    pub fn new(of_key: Option<Remaining>, of_tenant: Option<Remaining>) -> Self {
        Self([of_key, of_tenant])
    }

    /// Returns the response with the limits in its metadata, which are headers over REST.
    pub fn shown_in<M>(&self, mut response: Response<M>) -> Response<M> {
        let all = || self.0.iter().flatten();
        if all().next().is_none() {
            return response;
        }
        let left =
            |one: &Remaining| format!(r#""{}";r={};t={}"#, one.limit.name, one.calls, one.seconds);
        let left: Vec<_> = all().map(left).collect();
        let policies: Vec<_> = all().map(|one| one.limit.policy()).collect();
        for (name, values) in LIMIT_HEADERS.into_iter().zip([left, policies]) {
            if let Ok(value) = values.join(", ").parse() {
                response.metadata_mut().insert(name, value);
            }
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use tonic::Status;

    use super::*;

    const TESTS: RateLimit = RateLimit { name: "tests", limit: 10, window_seconds: 60 };

    #[test]
    fn the_headers_have_the_form_of_the_draft() {
        let of_key = Remaining { limit: TESTS, calls: 4, seconds: 7 };
        let of_all = Remaining { limit: RateLimit { name: "all", ..TESTS }, calls: 0, seconds: 60 };
        let response = AppliedLimits::new(Some(of_key), Some(of_all)).shown_in(Response::new(()));
        let shown =
            |name: &str| response.metadata().get(name).unwrap().to_str().unwrap().to_owned();
        assert_eq!(shown("ratelimit"), r#""tests";r=4;t=7, "all";r=0;t=60"#);
        assert_eq!(shown("ratelimit-policy"), r#""tests";q=10;w=60, "all";q=10;w=60"#);
        let response = AppliedLimits::default().shown_in(Response::new(()));
        assert!(response.metadata().is_empty());
    }

    #[test]
    fn a_refusal_shows_its_limit_in_the_metadata_and_not_in_the_details() {
        for (refused, left, policy) in [
            (TESTS.refusal("x", 3), r#""tests";r=0;t=3"#, r#""tests";q=10;w=60"#),
            (
                too_many_open("exports", 1, "x".to_owned(), 1),
                r#""exports";r=0"#,
                r#""exports";q=1;qu="concurrent-requests""#,
            ),
        ] {
            let status = Status::from(refused);
            let shown = |name: &str| status.metadata().get(name).unwrap().to_str().unwrap();
            assert_eq!((shown("ratelimit"), shown("ratelimit-policy")), (left, policy));
            let details = tonic_types::StatusExt::get_details_error_info(&status).unwrap();
            assert_eq!(details.metadata.keys().collect::<Vec<_>>(), ["retry_after"]);
        }
    }
}
