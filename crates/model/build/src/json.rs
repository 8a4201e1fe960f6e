//! serde for the messages whose JSON is stored or digested: the proto's names, every member, null for what
//! is absent, unless it came later.
//!
//! Rows and digests outlive any version of the REST API. So their form is serde's, and no rule of the
//! transcoder can change it.

use std::collections::BTreeMap;

use prost_reflect::{DescriptorPool, Kind, MessageDescriptor};
use quote::quote;
use tonic_prost_build::Builder;

use crate::{names, options};

/// Messages that code stores or digests as JSON, besides those that are stored whole in a column.
const BY_CODE: [&str; 3] = [
    "authority.delegation.v1.Delegation",
    "authority.states.v1.LibraryMachine",
    "authority.states.v1.StateEvent",
];

/// Members that came when there were rows without them. They are left out where they are absent: the release before
/// reads such a row too, and no digest of one changes.
const LATER: [&str; 1] = ["authority.registry.v1.Retention.decisions_days"];

/// Those messages and all that they hold.
pub(crate) fn messages(pool: &DescriptorPool) -> impl Iterator<Item = MessageDescriptor> {
    let mut found = BTreeMap::new();
    let by_code = BY_CODE.map(|name| pool.get_message_by_name(name).expect(name));
    let events = pool.all_messages().filter(is_event_data);
    for message in pool.all_messages().filter(options::is_stored_whole).chain(by_code).chain(events)
    {
        reach(message, &mut found);
    }
    found.into_values()
}

/// What is particular to a type of event. The envelope around it is not written from its message.
fn is_event_data(message: &MessageDescriptor) -> bool {
    message.package_name() == "authority.event.v1" && message.name() != "Event"
}

fn reach(message: MessageDescriptor, found: &mut BTreeMap<String, MessageDescriptor>) {
    if names::is_own_type(&message) || found.contains_key(message.full_name()) {
        return;
    }
    for field in message.fields() {
        if let Kind::Message(inner) = field.kind() {
            reach(inner, found);
        }
    }
    found.insert(message.full_name().to_owned(), message);
}

pub(crate) fn derive(message: &MessageDescriptor, mut builder: Builder) -> Builder {
    let name = message.full_name();
    for field in message.fields() {
        // The form of others in JSON would have to be decided first. Of doubles, rules keep what JSON cannot
        // say: NaN and the infinities.
        let plain = matches!(
            field.kind(),
            Kind::Bool | Kind::Int32 | Kind::Double | Kind::String | Kind::Message(_)
        );
        assert!(plain && !field.is_map(), "{}: has no stored form", field.full_name());
        let oneof = field.containing_oneof().filter(|_| !options::is_nullable(&field));
        assert!(oneof.is_none(), "{}: a oneof has no stored form", field.full_name());
        // What Rust keeps for itself even as a raw name, prost writes with an underscore.
        if matches!(field.name(), "self" | "super" | "crate") {
            let member = field.name();
            let attribute = quote!(#[serde(rename = #member)]);
            builder = builder.field_attribute(format!("{name}.{member}"), attribute.to_string());
        }
        if LATER.contains(&field.full_name()) {
            let attribute = quote!(#[serde(skip_serializing_if = "Option::is_none")]);
            builder = builder.field_attribute(field.full_name(), attribute.to_string());
        }
    }
    let derives = quote! {
        #[derive(serde::Serialize, serde::Deserialize)]
        #[serde(default, deny_unknown_fields)]
    };
    builder.message_attribute(name, derives.to_string())
}
