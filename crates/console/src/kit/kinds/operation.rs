//! An operation on records of a kind, classified by the shape of its request.

use prost_reflect::{FieldDescriptor, Kind as FieldKind, MessageDescriptor, MethodDescriptor};

use super::{
    describe::{below, described, extension, past, words},
    states,
};
use crate::texts as t;

/// The class of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    List,
    Get,
    Create,
    /// Changes members of a record. A mask lists these members.
    Edit,
    /// Does something to one record.
    Verb,
    /// Creates a record in another way than from its members.
    Other,
}

/// An operation of a service.
pub(crate) struct Operation {
    /// `/package.Service/Method`.
    pub(crate) rpc: String,
    pub(crate) shape: Shape,
    /// Its part of an address: `rotate-secret`.
    pub(crate) word: String,
    /// `Rotate secret`.
    pub(crate) label: String,
    /// `Secret rotated`.
    pub(crate) done: String,
    /// The description.
    pub(crate) about: String,
    pub(crate) input: MessageDescriptor,
    pub(crate) output: MessageDescriptor,
    /// The member of the request with a record, or with its changes.
    pub(crate) body: Option<FieldDescriptor>,
    /// The states in which it can change a record. Empty: all states that are not final.
    pub(super) states: Vec<String>,
}

/// Words of operations that end something.
const ENDS: [&str; 8] =
    ["delete", "revoke", "suspend", "deprecate", "quarantine", "withdraw", "pause", "release"];

/// Words of operations that end a record permanently.
const FOR_GOOD: [&str; 2] = ["delete", "revoke"];

impl Operation {
    /// Returns the operation if it concerns a single record of this kind or lists such records.
    pub(super) fn of(method: &MethodDescriptor, record: &MessageDescriptor) -> Option<Self> {
        if method.is_server_streaming() || is_always_refused(method) {
            return None;
        }
        let (input, output) = (method.input(), method.output());
        let shape = shape(method.name(), &input, &output, record)?;
        let body = input.fields().find(|field| is_body(field) && shape != Shape::Verb);
        let word = word(method.name(), record.name());
        Some(Self {
            rpc: format!("/{}/{}", method.parent_service().full_name(), method.name()),
            label: words(&word, true),
            done: past(&word),
            about: described(
                extension(&method.options(), "authority.rest.v1.rest").as_ref(),
                &method.parent_file(),
                method.path(),
            ),
            shape,
            word,
            input,
            output,
            body,
            states: states::changed_by(method),
        })
    }

    /// The message that the operation's form fills.
    pub(crate) fn form(&self) -> MessageDescriptor {
        let of_body = self.body.as_ref().and_then(|body| match body.kind() {
            FieldKind::Message(message) => Some(message),
            _ => None,
        });
        of_body.unwrap_or_else(|| self.input.clone())
    }

    /// The heading after a failure: `Secret not rotated`.
    pub(crate) fn undone(&self) -> String {
        match self.done.rsplit_once(' ') {
            _ if self.shape == Shape::Edit => t::NOT_SAVED.to_owned(),
            Some((what, done)) => t::kit::part_not_done(what, done),
            None => t::kit::not_done(self.done.to_lowercase()),
        }
    }

    /// Whether it ends a record permanently.
    pub(crate) fn ends_for_good(&self) -> bool {
        self.shape == Shape::Verb && FOR_GOOD.iter().any(|word| self.word.starts_with(word))
    }

    /// Whether it ends something.
    pub(crate) fn ends(&self) -> bool {
        ENDS.iter().any(|word| self.word.starts_with(word))
    }
}

fn shape(
    name: &str,
    input: &MessageDescriptor,
    output: &MessageDescriptor,
    record: &MessageDescriptor,
) -> Option<Shape> {
    let takes = |member: &str| input.get_field_by_name(member).is_some();
    let is_record =
        |field: &FieldDescriptor| matches!(field.kind(), FieldKind::Message(m) if m == *record);
    let has_list = output.fields().any(|field| field.is_list() && is_record(&field));
    if name.starts_with("List") {
        return (has_list && takes("page_token")).then_some(Shape::List);
    }
    if name.starts_with("Get") {
        return (output == record).then_some(Shape::Get);
    }
    let answers = output == record || output.fields().any(|field| is_record(&field));
    if !answers && !name.starts_with("Delete") {
        return None;
    }
    let creates = name.starts_with("Create") && input.fields().any(|field| is_record(&field));
    Some(match (takes("id"), takes("update_mask")) {
        (true, true) => Shape::Edit,
        (true, false) => Shape::Verb,
        (false, _) if creates => Shape::Create,
        (false, _) if has_list => return None,
        (false, _) => Shape::Other,
    })
}

/// Whether a member of a request is the record, or the changes of a record.
fn is_body(field: &FieldDescriptor) -> bool {
    let ours = |message: &MessageDescriptor| message.package_name().starts_with("authority.");
    !field.is_list() && matches!(field.kind(), FieldKind::Message(message) if ours(&message))
}

/// The name of a method without its record's name: `rotate-secret` for
/// `RotateWebhookEndpointSecret`.
fn word(method: &str, record: &str) -> String {
    let rest = method.replacen(record, "", 1);
    let mut word = String::new();
    for letter in rest.chars() {
        if letter.is_ascii_uppercase() && !word.is_empty() {
            word.push('-');
        }
        word.push(letter.to_ascii_lowercase());
    }
    word
}

/// Whether the contract refuses it for all callers: 405.
fn is_always_refused(method: &MethodDescriptor) -> bool {
    let rest = extension(&method.options(), "authority.rest.v1.rest");
    let refusals = rest.and_then(|rest| below(rest.as_message()?, &["refusals"]));
    let refusals = refusals.as_ref().and_then(|refusals| refusals.as_list()).unwrap_or_default();
    refusals.iter().any(|status| status.as_i32() == Some(405))
}
