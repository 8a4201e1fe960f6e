//! Derives serde for messages that are stored or digested as JSON.
//!
//! The JSON has the proto's names and every field, with null for an absent field. Fields in
//! [`LATER`] are left out when absent.
//!
//! Rows and digests outlive each version of the REST API. Their form is therefore serde's, and
//! independent of the transcoder.

use std::collections::BTreeMap;

use prost_reflect::{DescriptorPool, Kind, MessageDescriptor};
use quote::quote;
use tonic_prost_build::Builder;

use crate::{names, options};

/// Messages that the service's code stores or digests as JSON. Messages that are stored whole in a
/// column are not listed here.
const BY_CODE: [&str; 3] = [
    "authority.delegation.v1.Delegation",
    "authority.states.v1.LibraryMachine",
    "authority.states.v1.StateEvent",
];

/// Fields that were added when rows without them already existed. They are left out when absent:
/// the preceding release can then read the row, and digests of existing rows do not change.
const LATER: [&str; 2] =
    ["authority.delegation.v1.Hours.time_zone", "authority.registry.v1.Retention.decisions_days"];

/// Returns the messages to derive serde for, including all nested messages.
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

/// Whether the message is the data of an event type. The envelope `Event` is serialized separately.
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
        // The JSON form of other types is not defined yet. JSON cannot represent NaN and
        // infinities; the rules for doubles exclude them.
        let plain = matches!(
            field.kind(),
            Kind::Bool | Kind::Int32 | Kind::Double | Kind::String | Kind::Message(_)
        );
        assert!(plain && !field.is_map(), "{}: has no stored form", field.full_name());
        let oneof = field.containing_oneof().filter(|_| !options::is_nullable(&field));
        assert!(oneof.is_none(), "{}: a oneof has no stored form", field.full_name());
        // For names that cannot be raw identifiers in Rust, prost appends an underscore.
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
