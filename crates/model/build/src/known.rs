//! Builds tables of known request fields. Methods that decide or write refuse unknown fields.

use std::collections::BTreeMap;

use proc_macro2::{Ident, Literal, TokenStream};
use prost_reflect::{DescriptorPool, Kind, MessageDescriptor, MethodDescriptor};
use quote::{format_ident, quote};

/// Returns a table for each message that is reachable from the requests of these methods.
pub(crate) fn tables(methods: &[MethodDescriptor]) -> TokenStream {
    let mut reached = BTreeMap::new();
    methods.iter().for_each(|method| reach(&method.input(), &mut reached));
    reached.values().map(table).collect()
}

/// Returns the name of a message's table.
pub(crate) fn name(message: &MessageDescriptor) -> Ident {
    format_ident!("KNOWN_{}", message.full_name().replace('.', "_").to_uppercase())
}

/// Returns the optional fields of decision requests, such as `EvaluateRequest.approval_id`.
///
/// Includes the fields of nested messages.
pub(crate) fn features(pool: &DescriptorPool) -> Vec<String> {
    let requests = pool.services().flat_map(|service| service.methods().collect::<Vec<_>>());
    let deciding = requests.filter(decides);
    let mut reached = BTreeMap::new();
    deciding.for_each(|method| reach(&method.input(), &mut reached));
    reached.retain(|name, message| name.starts_with("authority.") && !message.is_map_entry());
    let fields = reached.values().flat_map(|message| message.fields().collect::<Vec<_>>());
    let optional = fields.filter(|field| !is_required(field));
    let mut features: Vec<_> = optional
        .map(|field| format!("{}.{}", field.parent_message().name(), field.name()))
        .collect();
    features.sort();
    features
}

/// The methods that make decisions.
const DECIDING: [&str; 4] = ["Evaluate", "Authorize", "EvaluateDecision", "BatchEvaluate"];

/// Whether the method makes decisions.
pub(crate) fn decides(method: &MethodDescriptor) -> bool {
    DECIDING.contains(&method.name())
}

fn is_required(field: &prost_reflect::FieldDescriptor) -> bool {
    let rules = crate::options::extension(&field.options(), "buf.validate.field");
    rules.is_some_and(|rules| {
        rules.as_message().is_some_and(|rules| crate::options::flag(rules, "required"))
    })
}

fn reach(message: &MessageDescriptor, reached: &mut BTreeMap<String, MessageDescriptor>) {
    if reached.insert(message.full_name().to_owned(), message.clone()).is_some() {
        return;
    }
    for field in message.fields() {
        if let Kind::Message(inner) = field.kind() {
            reach(&inner, reached);
        }
    }
}

fn table(message: &MessageDescriptor) -> TokenStream {
    let mut fields: Vec<_> = message.fields().collect();
    fields.sort_by_key(prost_reflect::FieldDescriptor::number);
    let fields = fields.iter().map(|field| {
        let (number, name) = (Literal::u32_unsuffixed(field.number()), field.name());
        let holds = match field.kind() {
            Kind::Message(inner) => {
                let inner = self::name(&inner);
                quote!(Message(&#inner))
            }
            Kind::Enum(words) => {
                let numbers = words.values().map(|word| Literal::i32_unsuffixed(word.number()));
                quote!(Words(&[#(#numbers),*]))
            }
            _ => quote!(Value),
        };
        quote!(KnownField { number: #number, name: #name, holds: Holds::#holds })
    });
    let name = name(message);
    quote!(pub(crate) static #name: Known = Known { fields: &[#(#fields),*] };)
}
