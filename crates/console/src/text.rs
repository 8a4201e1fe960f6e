//! Words that several pages share.

/// States of approval requests, and their words in the filter.
pub(crate) const STATES: [(&str, &str); 6] = [
    ("pending", "Waiting"),
    ("approved", "Approved, not used yet"),
    ("used", "Approved and used"),
    ("declined", "Declined"),
    ("expired", "Expired"),
    ("void", "Void"),
];

/// The words for a state of an approval request.
pub(crate) fn state(state: &str) -> &'static str {
    STATES.iter().find(|(known, _)| *known == state).map_or("Unknown", |(_, words)| words)
}

/// What an act did, for its person.
pub(crate) fn done(verb: &str, state: &str) -> Option<&'static str> {
    Some(match (verb, state) {
        ("approve", "approved") => {
            "You approved this. The agent may do it once, when it asks again and cites this approval."
        }
        ("approve", "pending") => "You approved this. It still needs somebody else.",
        ("approve", "used") => "You approved this, and the agent has used it.",
        ("approve", "void") => {
            "You approved this, but present authority no longer permits it: the request is void."
        }
        ("decline", "declined") => "You declined this. The agent will not do it.",
        ("withdraw", "void") => "You withdrew this approval. The agent can no longer use it.",
        _ => return None,
    })
}
