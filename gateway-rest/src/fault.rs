//! A failed call, independent of its form on the wire. The failure comes from the gateway or the
//! service.

use std::borrow::Cow;

use http::{HeaderMap, StatusCode};
use tonic::{Code, Status};
use tonic_types::StatusExt;

/// The reasons of the gateway's own errors.
pub mod reason {
    /// Members of the body, parameters of the query or variables of the path are invalid.
    pub const INVALID_REQUEST: &str = "invalid_request";
    /// The body is not one JSON value.
    pub const MALFORMED_JSON: &str = "malformed_json";
    /// No route has this path.
    pub const NOT_FOUND: &str = "not_found";
    /// The path supports only other methods. The metadata `allow` and the header Allow list them.
    pub const METHOD_NOT_ALLOWED: &str = "method_not_allowed";
    /// The body is over the host's limit.
    pub const TOO_LARGE: &str = "too_large";
    /// The Content-Type is not JSON.
    pub const UNSUPPORTED_MEDIA_TYPE: &str = "unsupported_media_type";
    /// The service's response could not be read.
    pub const INTERNAL: &str = "internal";
    /// The service does not accept calls.
    pub const UNAVAILABLE: &str = "unavailable";
}

/// The number of problems in the message; the details list them all.
const SHOWN: usize = 3;

/// A call that failed in the gateway or in the service.
#[derive(Clone, Debug)]
pub struct Fault {
    pub code: Code,
    /// `ErrorInfo`'s reason, or a constant of [`reason`]; empty if the service gave no reason.
    pub reason: Cow<'static, str>,
    /// For people.
    pub message: Cow<'static, str>,
    /// Each invalid member, parameter or variable.
    pub problems: Vec<Problem>,
    /// `ErrorInfo`'s metadata.
    pub metadata: Vec<(String, String)>,
    /// The HTTP status, if the gateway knows a better status than the code's. Otherwise the host
    /// chooses the status.
    pub status: Option<StatusCode>,
    /// Response headers: Allow, Retry-After, ….
    pub headers: Option<Box<HeaderMap>>,
}

/// An extension of the response to a failed call, for the host's layers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// As in [`Fault`].
    pub reason: Cow<'static, str>,
    /// As in [`Fault`].
    pub message: Cow<'static, str>,
}

/// One problem of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The path as the client wrote it: `tool.tags[1]`; empty for the body as a whole.
    pub field: String,
    /// The problem, to be read after the field's name: `must be a string, not a number`.
    pub problem: String,
}

impl Fault {
    pub fn new(code: Code, reason: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code,
            reason: Cow::Borrowed(reason),
            message: message.into(),
            problems: Vec::new(),
            metadata: Vec::new(),
            status: None,
            headers: None,
        }
    }

    /// Returns a 400 with every problem in its details. The message quotes a few and counts the
    /// others. `more` is the number of problems that are not in the list.
    pub fn invalid(mut problems: Vec<Problem>, more: usize) -> Self {
        let mut message = format!("the request is invalid: {}", quoted(&problems));
        let unsaid = problems.len().saturating_sub(SHOWN) + more;
        if unsaid > 0 {
            let rest = format!("; and {unsaid} more");
            message.push_str(&rest);
        }
        if more > 0 {
            problems.push(Problem { field: String::new(), problem: format!("and {more} more") });
        }
        let fault = Self::new(Code::InvalidArgument, reason::INVALID_REQUEST, message);
        Self { problems, status: Some(StatusCode::BAD_REQUEST), ..fault }
    }

    /// Returns the status that google.rpc.Code documents for the code.
    pub fn default_status(&self) -> StatusCode {
        self.status.unwrap_or(match self.code {
            Code::Ok => StatusCode::OK,
            Code::InvalidArgument | Code::FailedPrecondition | Code::OutOfRange => {
                StatusCode::BAD_REQUEST
            }
            Code::Unauthenticated => StatusCode::UNAUTHORIZED,
            Code::PermissionDenied => StatusCode::FORBIDDEN,
            Code::NotFound => StatusCode::NOT_FOUND,
            Code::AlreadyExists | Code::Aborted => StatusCode::CONFLICT,
            Code::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
            Code::Unimplemented => StatusCode::NOT_IMPLEMENTED,
            Code::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            Code::DeadlineExceeded => StatusCode::GATEWAY_TIMEOUT,
            Code::Cancelled => StatusCode::from_u16(499).unwrap_or(StatusCode::BAD_REQUEST),
            Code::Unknown | Code::Internal | Code::DataLoss => StatusCode::INTERNAL_SERVER_ERROR,
        })
    }

    /// Returns one value of `ErrorInfo`'s metadata.
    pub fn about(&self, key: &str) -> Option<&str> {
        self.metadata.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }

    /// Renames the members as the client wrote them: `tool.name` is `name` if the body is `tool`.
    ///
    /// Where the message quotes the problems, it quotes the renamed problems instead. Any other
    /// message stays as it is.
    pub(crate) fn below(mut self, body: &str) -> Self {
        let before = quoted(&self.problems);
        for problem in &mut self.problems {
            let inner = problem.field.strip_prefix(body).and_then(|rest| rest.strip_prefix('.'));
            if let Some(inner) = inner.map(str::to_owned) {
                problem.field = inner;
            }
        }
        if !before.is_empty() {
            self.message = self.message.replacen(&before, &quoted(&self.problems), 1).into();
        }
        self
    }
}

/// Returns the first problems as a message quotes them.
fn quoted(problems: &[Problem]) -> String {
    let mut message = String::new();
    for (place, Problem { field, problem }) in problems.iter().take(SHOWN).enumerate() {
        if place > 0 {
            message.push_str("; ");
        }
        if field.is_empty() {
            message.push_str(problem);
        } else {
            message.push('`');
            message.push_str(field);
            message.push_str("` ");
            message.push_str(problem);
        }
    }
    message
}

impl From<Status> for Fault {
    fn from(status: Status) -> Self {
        let details = status.get_error_details();
        let mut fault = Self::new(status.code(), "", status.message().to_owned());
        if let Some(info) = details.error_info() {
            fault.reason = Cow::Owned(info.reason.clone());
            fault.metadata =
                info.metadata.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
            fault.metadata.sort();
        }
        if let Some(bad) = details.bad_request() {
            let problems = bad.field_violations.iter();
            fault.problems = problems
                .map(|v| Problem { field: v.field.clone(), problem: v.description.clone() })
                .collect();
        }
        fault
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_that_quotes_problems_has_the_clients_names() {
        let problem = |field: &str| Problem { field: field.to_owned(), problem: "is wrong".into() };
        let fields = ["tool.name", "tool.tags[1]", "tools", "tool.notes"];
        let fault = Fault::invalid(fields.map(problem).into(), 2).below("tool");
        let renamed: Vec<&str> = fault.problems.iter().map(|one| one.field.as_str()).collect();
        assert_eq!(renamed, ["name", "tags[1]", "tools", "notes", ""]);
        assert_eq!(
            fault.message,
            "the request is invalid: `name` is wrong; `tags[1]` is wrong; `tools` is wrong; and 3 more"
        );
        // Another message is not changed, even if it has a member's path.
        let mut other = Fault::new(Code::Aborted, "in_use", "use `tool.name` elsewhere");
        other.problems = vec![problem("tool.name")];
        let other = other.below("tool");
        assert_eq!(other.message, "use `tool.name` elsewhere");
        assert_eq!(other.problems, [problem("name")]);
    }
}
