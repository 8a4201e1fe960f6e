//! Invalid gRPC calls: protobuf can encode their values, but the rules reject them.

use prost_reflect::{
    DescriptorPool, DynamicMessage, FieldDescriptor, Kind, MapKey, MessageDescriptor,
    MethodDescriptor, Value as Reflected, prost::Message as _,
};
use tonic::Code;

use super::{
    rest::is_member,
    routes::{Rules, is_limited, is_refused, rpc},
    values::{Place, places},
};
use crate::support::wire::{Caller, named};

/// A gRPC call that the service must refuse.
pub(super) struct Call {
    title: String,
    rpc: String,
    message: Vec<u8>,
    codes: Vec<Code>,
    member: Option<String>,
}

pub(super) fn grpc_cases(pool: &DescriptorPool, method: &MethodDescriptor) -> Vec<Call> {
    let (rpc, input) = (rpc(method), method.input());
    let mask = input.fields().find(|field| is_named(field, "google.protobuf.FieldMask"));
    let call = |why: String, message: Vec<u8>, member: Option<String>| Call {
        title: format!("{rpc} {why}"),
        rpc: rpc.clone(),
        message,
        codes: vec![Code::InvalidArgument],
        member,
    };
    let mut calls = Vec::new();
    for field in input.fields().filter(|field| Rules::of(field).required) {
        let name = field.name().to_owned();
        calls.push(call(format!("without `{name}`"), Vec::new(), Some(name)));
    }
    // Sends bytes that are not a message, and a truncated message.
    for garbage in [vec![0xff; 16], vec![0x0a, 0x7f, 1], vec![0x08]] {
        let no_bug = [Code::InvalidArgument, Code::NotFound, Code::Unimplemented, Code::Ok];
        let call = call(format!("as {garbage:?}"), garbage, None);
        calls.push(Call { codes: no_bug.to_vec(), ..call });
    }
    for place in places(input.fields().collect()) {
        let rules = Rules::of(&place.field);
        let alone = place.around.first().is_some_and(FieldDescriptor::is_list);
        for (why, value) in bad_values(&place.field, &rules) {
            let mut whole = DynamicMessage::new(input.clone());
            set(&mut whole, &place, value);
            if let (Some(mask), false) = (&mask, place.around.is_empty()) {
                let inner = place.around.get(1).unwrap_or(&place.field);
                whole.set_field(mask, mask_of(mask, inner.name()));
            }
            let name = place.name();
            let member = (!alone).then(|| name.clone());
            let call = call(format!("with `{name}` {why}"), whole.encode_to_vec(), member);
            let id = place.around.is_empty() && name == "id";
            let codes = match (alone, id) {
                (true, _) => vec![Code::InvalidArgument, Code::Ok],
                (_, true) => vec![Code::InvalidArgument, Code::NotFound, Code::Unimplemented],
                _ => call.codes.clone(),
            };
            calls.push(Call { codes, ..call });
        }
    }
    // An operation that is always refused need not check its input.
    for call in &mut calls {
        if is_refused(pool, method) {
            call.codes.push(Code::Unimplemented);
        }
        if is_limited(pool, method) {
            call.codes.push(Code::ResourceExhausted);
        }
    }
    calls
}

pub(super) fn is_named(field: &FieldDescriptor, name: &str) -> bool {
    field.kind().as_message().is_some_and(|message| message.full_name() == name)
}

pub(super) fn mask_of(field: &FieldDescriptor, path: &str) -> Reflected {
    let Kind::Message(kind) = field.kind() else { return Reflected::String(path.to_owned()) };
    let mut mask = DynamicMessage::new(kind);
    let paths = Reflected::List(vec![Reflected::String(path.to_owned())]);
    mask.set_field_by_name("paths", paths);
    Reflected::Message(mask)
}

/// Sets a value at a path, within the enclosing messages.
pub(super) fn set(whole: &mut DynamicMessage, place: &Place, value: Reflected) {
    let mut value = if place.field.is_list() { Reflected::List(vec![value]) } else { value };
    let mut field = place.field.clone();
    for outer in place.around.iter().rev() {
        let Kind::Message(kind) = outer.kind() else { return };
        let mut message = DynamicMessage::new(kind);
        message.set_field(&field, value);
        let message = Reflected::Message(message);
        value = if outer.is_list() { Reflected::List(vec![message]) } else { message };
        field = outer.clone();
    }
    whole.set_field(&field, value);
}

/// Returns values that protobuf can encode and the field's rules reject.
pub(super) fn bad_values(field: &FieldDescriptor, rules: &Rules) -> Vec<(String, Reflected)> {
    let items = rules.items.as_deref();
    let rules = if field.is_list() { items.unwrap_or(rules) } else { rules };
    let mut found = Vec::new();
    let mut bad = |why: &str, value: Reflected| found.push((why.to_owned(), value));
    match field.kind() {
        Kind::String => {
            bad("U+0000", Reflected::String("a\0b".to_owned()));
            if let Some(most) = rules.max_len {
                bad("too long", Reflected::String("a".repeat(most + 1)));
            }
            if !rules.one_of.is_empty() {
                bad("unknown value", Reflected::String("no_such_word".to_owned()));
            }
            if rules.refuse_empty(field) {
                bad("empty", Reflected::String(String::new()));
            }
            if rules.pattern.is_some() || rules.email {
                bad("wrong shape", Reflected::String("!! no".to_owned()));
            }
        }
        Kind::Int32 => {
            for (limit, by) in [(rules.most, 1), (rules.least, -1)] {
                let number = limit.and_then(|limit| i32::try_from(limit + by).ok());
                if let Some(number) = number {
                    bad("out of bounds", Reflected::I32(number));
                }
            }
        }
        Kind::Message(kind) if kind.full_name() == "google.protobuf.Timestamp" => {
            for (seconds, nanos) in [(i64::MAX, 0), (0, -1), (0, i32::MAX)] {
                let mut time = DynamicMessage::new(kind.clone());
                time.set_field_by_name("seconds", Reflected::I64(seconds));
                time.set_field_by_name("nanos", Reflected::I32(nanos));
                bad("beyond the calendar", Reflected::Message(time));
            }
        }
        Kind::Message(kind) if kind.full_name() == "google.protobuf.Struct" => {
            let zero = Reflected::String("b\0c".to_owned());
            for (why, name, kind_of_value, value) in [
                ("not a number", "a", "number_value", Reflected::F64(f64::NAN)),
                ("infinite", "a", "number_value", Reflected::F64(f64::INFINITY)),
                ("U+0000", "a", "string_value", zero),
                ("U+0000 in a name", "a\0", "bool_value", Reflected::Bool(true)),
            ] {
                bad(why, object(&kind, name, kind_of_value, value));
            }
        }
        _ => {}
    }
    found
}

/// Returns a `google.protobuf.Struct` with one field.
fn object(of: &MessageDescriptor, name: &str, kind: &str, value: Reflected) -> Reflected {
    let wire = of.parent_pool().get_message_by_name("google.protobuf.Value").unwrap();
    let mut inner = DynamicMessage::new(wire);
    inner.set_field_by_name(kind, value);
    let entry = (MapKey::String(name.to_owned()), Reflected::Message(inner));
    let mut whole = DynamicMessage::new(of.clone());
    whole.set_field_by_name("fields", Reflected::Map([entry].into()));
    Reflected::Message(whole)
}

pub(super) async fn try_grpc(caller: &Caller, call: Call) -> Option<String> {
    let (code, message, fields) = match caller.grpc(&call.rpc, call.message).await {
        Ok(_) => (Code::Ok, String::new(), Vec::new()),
        Err(status) => (status.code(), status.message().to_owned(), named(&status)),
    };
    if !call.codes.contains(&code) {
        return Some(format!("{}: {code:?}, not {:?}: {message}", call.title, call.codes));
    }
    let member = call.member.filter(|_| code == Code::InvalidArgument)?;
    let found = fields.iter().any(|field| is_member(field, &member));
    (!found).then(|| format!("{}: {fields:?} do not name `{member}`: {message}", call.title))
}
