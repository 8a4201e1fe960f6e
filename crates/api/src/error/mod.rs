//! Every error that a client can receive, one code each, and its conversion to a gRPC status.
//!
//! Each module or crate has its own `Error`, which a `From` implementation maps to [`ApiError`].

mod below;
mod withheld;

use std::{borrow::Cow, collections::HashMap, time::Duration};

use authority_model::validate::{Violation, Violations, json_len, shortened};
use http::StatusCode;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

pub use withheld::without_secrets;

/// `domain` of every `google.rpc.ErrorInfo`.
pub const DOMAIN: &str = "authority";

/// Metadata of the error for a role that may not call an operation: this role, and the permitted
/// roles.
pub const ROLE: &str = "role";
pub const PERMITTED_ROLES: &str = "permitted_roles";

macro_rules! codes {
    ($($name:ident $word:literal $grpc:ident $http:literal $sentence:literal;)*) => {
        /// The code of an error, which a client can switch on.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum ErrorCode { $($name),* }

        impl ErrorCode {
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The `error` member of a REST body and the `reason` of ErrorInfo.
            pub fn word(self) -> &'static str {
                match self { $(Self::$name => $word),* }
            }

            pub fn grpc(self) -> Code {
                match self { $(Self::$name => Code::$grpc),* }
            }

            pub fn http(self) -> StatusCode {
                let status: u16 = match self { $(Self::$name => $http),* };
                StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
            }

            /// The default message, for people.
            pub fn sentence(self) -> &'static str {
                match self { $(Self::$name => $sentence),* }
            }
        }
    };
}

impl ErrorCode {
    /// Returns the code for a gRPC status that a library created without a reason.
    pub fn of(code: Code) -> Self {
        match code {
            Code::InvalidArgument | Code::FailedPrecondition => Self::InvalidRequest,
            Code::OutOfRange => Self::TooLarge,
            Code::Unauthenticated => Self::Unauthenticated,
            Code::PermissionDenied => Self::Forbidden,
            Code::NotFound => Self::NotFound,
            Code::AlreadyExists => Self::AlreadyExists,
            Code::Unimplemented => Self::MethodNotAllowed,
            Code::ResourceExhausted => Self::RateLimited,
            Code::Unavailable | Code::DeadlineExceeded | Code::Cancelled => Self::Unavailable,
            Code::Ok | Code::Aborted | Code::Internal | Code::Unknown | Code::DataLoss => {
                Self::Internal
            }
        }
    }
}

codes! {
    InvalidRequest "invalid_request" InvalidArgument 400 "the request is invalid; `details` lists each invalid field and its problem";
    SignatureInvalid "signature_invalid" InvalidArgument 400 "no key of the anchor made this signature over the snapshot; sign the canonical JSON (RFC 8785) of the fields listed in docs/reference/reality.md";
    MalformedJson "malformed_json" InvalidArgument 400 "the body is not valid JSON in UTF-8";
    Unauthenticated "unauthenticated" Unauthenticated 401 "send `Authorization: Bearer` with a valid token or API key";
    InsufficientUserAuthentication "insufficient_user_authentication" Unauthenticated 401 "sign in again: the tenant requires a recent sign-in for approvals";
    Forbidden "forbidden" PermissionDenied 403 "this credential may not do this";
    PermissionScopeExceeded "permission_scope_exceeded" PermissionDenied 403 "the API key lacks the scope that this operation needs";
    SubjectNotPermitted "subject_not_permitted" PermissionDenied 403 "the API key is bound to other principals than the subject";
    FeederNotPermitted "feeder_not_permitted" PermissionDenied 403 "the anchor does not name this API key among its feeders";
    NotFound "not_found" NotFound 404 "not found, or not visible to this caller";
    NotFoundOrAlreadyRevoked "not_found_or_already_revoked" NotFound 404 "no key has this `kid`, or it is already revoked";
    MethodNotAllowed "method_not_allowed" Unimplemented 405 "this path does not support this method; see the Allow header";
    BillingAccountsCannotBeDeleted "billing_accounts_cannot_be_deleted" Unimplemented 405 "close a billing account with PATCH state=closed";
    PoliciesAreImmutable "policies_are_immutable" Unimplemented 405 "retire a policy with PATCH state=retired";
    AuditStreamsAreImmutable "audit_streams_are_immutable" Unimplemented 405 "seal an audit stream with PATCH state=sealed";
    StateEventsAreImmutable "state_events_are_immutable" Unimplemented 405 "correct a state event with a compensating transition";
    DecisionNotSealed "decision_not_sealed" FailedPrecondition 409 "seal the decision first: POST /v1/evidence/seal";
    AlreadyExists "already_exists" AlreadyExists 409 "another record already has this name or key";
    RecordIsFinal "record_is_final" Aborted 409 "the record is in a final state and cannot change";
    LimitReached "limit_reached" Aborted 409 "tenant limit reached; delete one first";
    LimitExceeded "limit_exceeded" Aborted 409 "tenant limit of active records reached; end one first";
    SnapshotExists "snapshot_exists" AlreadyExists 409 "the anchor already has a snapshot with this time and content";
    CheckNotRun "check_not_run" Aborted 409 "the check has no result of a run; run it before deciding on it";
    OverrideNotPermitted "override_not_permitted" Aborted 409 "this person may not override this check";
    StillDecoupled "still_decoupled" Aborted 409 "the check, run again, still finds drift";
    InUse "in_use" Aborted 409 "other records still refer to this record; end them first";
    NotLinked "not_linked" Aborted 409 "the brand needs a tenant to which its consultant has an active link";
    BrandActiveExists "brand_active_exists" Aborted 409 "another brand of the tenant is active; archive it first";
    DomainNotVerified "domain_not_verified" Aborted 409 "the domain is not verified: publish its `verification_token` as a TXT record of `_svc-challenge.<fqdn>`, then call `POST /domains/{id}/verify`";
    DelegationExceedsParent "delegation_exceeds_parent" Aborted 409 "a delegation may not grant more than its parent, and a change may only narrow it";
    TransitionNotAllowed "transition_not_allowed" Aborted 409 "the record's state does not allow this move";
    ApproverNotEligible "approver_not_eligible" Aborted 409 "this person may not decide this approval";
    PresentationDiffers "presentation_differs" Aborted 409 "people see this approval differently now; fetch it again";
    RequestDigestDiffers "request_digest_differs" Aborted 409 "`request_digest` does not match this approval; fetch it again";
    RealityNotReviewed "reality_not_reviewed" Aborted 409 "new findings require review; fetch the approval and list them in `reviewed`";
    RequestErased "request_erased" Aborted 409 "the request of this approval was erased; it can't be shown or approved";
    DecisionErased "decision_erased" Aborted 409 "the decision's context or facts were erased; its record, its pack and their signatures still exist and verify";
    LegalHold "legal_hold" Aborted 409 "a legal hold keeps this data; it can be erased when the hold is lifted";
    SequenceExpired "sequence_expired" Aborted 409 "events after this sequence were deleted; continue from `oldest`";
    SequenceAhead "sequence_ahead" Aborted 409 "the tenant has no event with this sequence yet";
    PushNotConfigured "push_not_configured" Aborted 409 "this installation sends no Web Push; its operator can set `push.subject`";
    MailNotConfigured "mail_not_configured" Aborted 409 "this installation sends no e-mail; its operator can set `smtp.host` and `smtp.from`";
    DecisionStopped "decision_stopped" Aborted 409 "the permission under this key has ended: a stop condition fired, its valid_until passed, or the request is not permitted now; send a new request with a new Idempotency-Key";
    IdempotencyInProgress "idempotency_in_progress" Aborted 409 "the first request with this key is still running; retry later";
    ReadOnlyProvider "read_only_provider" Aborted 409 "keys of this custody provider are read-only here";
    PreconditionFailed "precondition_failed" FailedPrecondition 412 "the record's version differs from If-Match; read it again";
    SecondApproverMissing "second_approver_missing" FailedPrecondition 412 "this needs two people: someone else must make the same request";
    TooLarge "too_large" OutOfRange 413 "the body is larger than this service reads";
    UnsupportedMediaType "unsupported_media_type" InvalidArgument 415 "send the body as application/json";
    IdempotencyAnswerErased "idempotency_answer_erased" Aborted 409 "the first response to this key contained a secret and can't be repeated";
    IdempotencyKeyReused "idempotency_key_reused" InvalidArgument 422 "this Idempotency-Key was used before with another body; use a new one";
    RateLimited "rate_limited" ResourceExhausted 429 "too many requests; wait for the time in Retry-After";
    Internal "internal" Internal 500 "internal error; the request id identifies it in the log";
    Unavailable "unavailable" Unavailable 503 "the service cannot answer safely now; retry";
}

/// An error response: a code, a message for people, the invalid fields.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    pub code: ErrorCode,
    pub message: String,
    pub violations: Vec<Violation>,
    /// Metadata for ErrorInfo: `allow`, `retry_after`, ….
    pub about: Vec<(&'static str, String)>,
}

impl ApiError {
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { code, message, violations: Vec::new(), about: Vec::new() }
    }

    /// Returns an error with the code's default message.
    pub fn plain(code: ErrorCode) -> Self {
        Self::new(code, code.sentence())
    }

    /// Returns an error 400 for all invalid fields. Its message lists a few of them, its details as
    /// many as fit.
    pub fn invalid(violations: Vec<Violation>) -> Self {
        let (listed, counted): (Vec<_>, Vec<_>) =
            violations.iter().partition(|violation| violation.as_more().is_none());
        let shown = listed.iter().take(SHOWN).map(|v| format!("`{}` {}", v.field, v.problem));
        let mut texts: Vec<_> = shown.collect();
        let counted: usize = counted.into_iter().filter_map(Violation::as_more).sum();
        let unsaid = listed.len().saturating_sub(SHOWN) + counted;
        if unsaid > 0 {
            texts.push(format!("and {unsaid} more"));
        }
        let message = format!("the request is invalid: {}", texts.join("; "));
        Self { violations, ..Self::new(ErrorCode::InvalidRequest, message) }
    }

    /// Returns an error 400 about one field.
    pub fn field(field: &str, problem: impl Into<String>) -> Self {
        Self::invalid(vec![Violation::new(field, problem)])
    }

    pub fn not_found(kind: &str, id: &str) -> Self {
        Self::new(ErrorCode::NotFound, format!("no {kind} `{id}`"))
    }

    #[must_use]
    pub fn with(mut self, key: &'static str, value: impl Into<String>) -> Self {
        self.about.push((key, value.into()));
        self
    }

    /// Fails if there are violations.
    pub fn unless_clean(found: Violations) -> Result<(), Self> {
        if found.list.is_empty() { Ok(()) } else { Err(Self::invalid(found.list)) }
    }
}

impl From<ApiError> for Status {
    fn from(refusal: ApiError) -> Self {
        let pause = refusal.about.iter().find(|(key, _)| *key == "retry_after");
        let pause = pause.and_then(|(_, seconds)| seconds.parse().ok()).map(Duration::from_secs);
        let (limits, about): (Vec<_>, Vec<_>) =
            refusal.about.into_iter().partition(|(key, _)| LIMIT_HEADERS.contains(key));
        let about = about.into_iter();
        let shown = |value| shortened(&without_secrets(value), 200).into_owned();
        let about = about.map(|(key, value)| (key.to_owned(), shown(value)));
        let about: HashMap<_, _> = about.collect();
        let mut details = ErrorDetails::with_error_info(refusal.code.word(), DOMAIN, about);
        if pause.is_some() {
            // gRPC client libraries wait for this time before they retry.
            details.set_retry_info(pause);
        }
        let withheld = refusal.violations.into_iter().map(|mut violation| {
            violation.field = without_secrets(violation.field);
            violation.problem = without_secrets(violation.problem);
            violation
        });
        for violation in bounded(withheld.collect()) {
            details.add_bad_request_violation(violation.field, violation.problem);
        }
        let message = without_secrets(refusal.message);
        let message = fitted(&message);
        let mut status = Self::with_error_details(refusal.code.grpc(), message, details);
        for (name, value) in limits {
            if let Ok(value) = value.parse() {
                status.metadata_mut().insert(name, value);
            }
        }
        status
    }
}

/// The headers for a limit's remaining calls and for the limit itself; over gRPC they are metadata.
pub const LIMIT_HEADERS: [&str; 2] = ["ratelimit", "ratelimit-policy"];
/// The most violations in the message.
const SHOWN: usize = 3;
/// The maximum size of the percent-encoded message, in bytes; `DETAILS` is the maximum size of the
/// details. One block of headers contains the message twice: percent-encoded, and within the
/// details in base64. Clients accept 8 KiB of headers; the rest is for the other headers.
const MESSAGE: usize = 1200;
const DETAILS: usize = 2800;
/// The minimum overhead of a violation in bytes: tags and lengths in protobuf, or names and quotes
/// in JSON.
const FRAME: usize = 32;

/// Returns as many violations as fit, followed by the number of the other violations.
fn bounded(violations: Vec<Violation>) -> Vec<Violation> {
    let mut kept = Violations::default();
    let mut bytes = 0;
    for violation in violations {
        bytes += json_len(&violation.field) + json_len(&violation.problem) + FRAME;
        let is_too_much = bytes > DETAILS && !kept.list.is_empty();
        if is_too_much && violation.as_more().is_none() {
            kept.put(&Violation::more(1));
        } else {
            kept.put(&violation);
        }
    }
    kept.list
}

/// The message, shortened so that its percent-encoded form, as in grpc-message, fits.
fn fitted(text: &str) -> Cow<'_, str> {
    let encoded = |text: &str| -> usize {
        text.bytes()
            .map(|byte| if matches!(byte, b' '..=b'~') && byte != b'%' { 1 } else { 3 })
            .sum()
    };
    let mut most = MESSAGE;
    loop {
        let short = shortened(text, most);
        if encoded(&short) <= MESSAGE {
            return short;
        }
        most = most * 3 / 4;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The size of a status in a block of headers, as HTTP/2 counts it (RFC 9113, section 6.5.2).
    fn size(status: Status) -> usize {
        let headers = status.into_http::<()>().into_parts().0.headers;
        headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 32).sum()
    }

    #[test]
    fn a_refusal_leaves_room_in_a_block_of_8_kib() {
        for (field, problem, count) in [
            ("actions", "`!` does not match ^([*]|[a-z0-9_-]+([.][a-z0-9_-]+)*([.][*])?)$", 256),
            ("é", "ß", 20_000),
            ("\u{1}\u{2}", "\u{1f600}", 50),
            (&"x".repeat(100_000), &"\u{1f600}".repeat(100_000), 3),
        ] {
            let violation = Violation::new(field, problem);
            let refusal = ApiError::invalid(vec![violation; count]);
            assert!(refusal.message.starts_with("the request is invalid: `"));
            assert!(size(refusal.into()) < 6500, "{count} of {field:.10}");
        }
        assert!(size(ApiError::not_found("tool", &"%".repeat(1 << 20)).into()) < 6500);
    }

    #[test]
    fn what_is_left_out_is_counted() {
        let fault = |n| Violation::new(format!("a[{n}]"), "is wrong");
        let refusal = ApiError::invalid((0..256).map(fault).collect());
        assert!(refusal.message.ends_with("`a[2]` is wrong; and 253 more"), "{}", refusal.message);
        let details = Status::from(refusal).get_error_details();
        let listed = &details.bad_request().unwrap().field_violations;
        let last = listed.last().unwrap();
        let unsaid = 256 - (listed.len() - 1);
        assert_eq!(
            (last.field.as_str(), last.description.clone()),
            ("", format!("and {unsaid} more"))
        );
        assert!(listed.len() > 20);
        let few = ApiError::invalid(vec![fault(1), fault(2)]);
        assert!(!few.message.contains("more"), "{}", few.message);
    }
}
