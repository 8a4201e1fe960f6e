//! The result of an operation: the current record, or values that are shown only once.

use prost_reflect::{DynamicMessage, Kind as FieldKind, ReflectMessage};

use super::shown::{Datum, Shown};
use crate::kit::{
    kinds::{Kind, Member, Operation, json, text},
    prelude::*,
};

#[derive(Template)]
#[template(path = "record_done.html")]
struct OncePage {
    frame: Frame,
    kind: &'static Kind,
    /// The completed operation.
    done: String,
    /// Values that only this response contains.
    once: Vec<Shown>,
    address: String,
}

/// The page for an answer; `known` names the record that the operation was about.
pub(super) fn page_of(
    view: &View,
    kind: &'static Kind,
    operation: &Operation,
    known: Option<&str>,
    answer: &DynamicMessage,
) -> Response {
    let id = about(kind, answer).or_else(|| known.map(str::to_owned));
    let once = once(view, kind, answer);
    let address = match &id {
        Some(id) if operation.word != "delete" => kind.address(id),
        _ => format!("/console/records/{}", kind.path),
    };
    if once.is_empty() {
        return see_done(view, &address, &operation.word);
    }
    let frame = view.frame(operation.done.clone(), Section::Records);
    let done = operation.done.clone();
    page(StatusCode::OK, &OncePage { frame, kind, done, once, address })
}

/// The id of the record in the answer, which may itself be the record.
fn about(kind: &Kind, answer: &DynamicMessage) -> Option<String> {
    let record = &kind.record;
    let of =
        |record: &DynamicMessage| (!text(record, "id").is_empty()).then(|| kind.key_of(record));
    if answer.descriptor() == *record {
        return of(answer);
    }
    let is_record = |kind: FieldKind| matches!(kind, FieldKind::Message(m) if m == *record);
    let field = answer.descriptor().fields().find(|field| is_record(field.kind()))?;
    let value = answer.get_field(&field);
    of(value.as_message()?)
}

/// The members of a response that do not belong to a record, such as a new secret.
fn once(view: &View, kind: &Kind, answer: &DynamicMessage) -> Vec<Shown> {
    if answer.descriptor() == kind.record {
        return Vec::new();
    }
    let members = json(answer);
    let fields = answer.descriptor();
    let fields = fields
        .fields()
        .filter(|field| field.name() != "id" && !matches!(field.kind(), FieldKind::Message(_)));
    let shown =
        fields.filter_map(|field| Shown::of(view, &Member::of(&field), members.get(field.name())));
    shown.collect()
}
