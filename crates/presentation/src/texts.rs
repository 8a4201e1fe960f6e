//! The texts of messages and of requests without a declaration. The console has its own in
//! `crates/console/src/texts`.

// Requests.
pub(crate) const AMOUNT: &str = "Amount";
pub(crate) const COMMAND: &str = "Command";
pub(crate) const OTHER_FIELDS: &str = "Other fields";

pub(crate) fn wants_to_run(agent: &str, action: &str) -> String {
    format!("{agent} wants to run {action}")
}

pub(crate) fn in_arguments(field: &str) -> String {
    format!("{field} in arguments")
}

// Headings and links of messages.
pub(crate) const REQUEST_WAITS: &str = "A request waits for approval";
pub(crate) const REQUEST_EXPIRED: &str = "A request expired without a decision";
pub(crate) const OPEN_REQUEST: &str = "Open the request";
pub(crate) const TEST_MESSAGE: &str = "Test message";
pub(crate) const MESSAGES_ARRIVE: &str = "Messages about approvals arrive here.";
pub(crate) const OPEN_CHANNELS: &str = "Open the channels";

// Labels of the lines of messages.
pub(crate) const REQUEST: &str = "Request";
pub(crate) const ACTION: &str = "Action";
pub(crate) const AGENT: &str = "Agent";
pub(crate) const FURTHER_FACTS: &str = "Further facts";
pub(crate) const ASKED: &str = "Asked";
pub(crate) const EXPIRES: &str = "Expires";
pub(crate) const EXPIRED: &str = "Expired";
pub(crate) const WHO_DECIDES: &str = "Who decides";
pub(crate) const CHANNEL: &str = "Channel";

// The people who decide.
pub(crate) const AN_APPROVER: &str = "of an approver";
pub(crate) const AND: &str = " and ";

pub(crate) fn deciders(count: i32, roles: &str) -> String {
    match count {
        1 => format!("one person in the role {roles}"),
        _ => format!("{count} people in the role {roles}"),
    }
}

pub(crate) fn deciders_with(deciders: &str, required_roles: &str) -> String {
    format!("{deciders}; among them {required_roles}")
}

pub(crate) fn any_of(roles: &str, last: &str) -> String {
    format!("{roles} or {last}")
}

pub(crate) fn with_mixed_letters(value: &str, letters: &str) -> String {
    format!("{value} (letters of another script: {letters})")
}
