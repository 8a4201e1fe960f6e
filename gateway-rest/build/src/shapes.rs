//! Message tables: `static SHAPE_…`.

use std::collections::BTreeMap;

use proc_macro2::{Ident, TokenStream};
use prost_reflect::{DescriptorPool, FieldDescriptor, Kind, MessageDescriptor};
use quote::{format_ident, quote};

use crate::{Options, descriptor, source::literal};

/// The maximum number of fields of a message. The runtime has one bit for each field.
const MOST_FIELDS: usize = 256;

pub(crate) fn tables(pool: &DescriptorPool, options: &Options) -> TokenStream {
    let mut known = BTreeMap::new();
    for message in pool.all_messages().filter(|m| options.covers(m.package_name())) {
        reach(&message, &mut known);
    }
    for service in descriptor::services(pool, options) {
        for method in service.methods() {
            reach(&method.input(), &mut known);
            reach(&method.output(), &mut known);
        }
    }
    let mut names = BTreeMap::new();
    for message in known.values() {
        let name = name(message);
        if let Some(other) = names.insert(name.clone(), message.full_name()) {
            panic!("{other} and {} would both be {name}", message.full_name());
        }
    }
    let runtime = options.runtime_path();
    let shapes = known.values().map(|message| shape(message, options));
    let names = known.values().map(name);
    quote! {
        #(#shapes)*

        #[doc = " Every message, sorted by full name."]
        pub static SHAPES: &[&#runtime::Shape] = &[#(&#names),*];

        #[doc = " The shape of a message by its full protobuf name."]
        pub fn shape(name: &str) -> Option<&'static #runtime::Shape> {
            let at = SHAPES.binary_search_by(|shape| shape.name.cmp(name)).ok()?;
            SHAPES.get(at).copied()
        }
    }
}

/// Collects the message and the messages of its fields. Recursion ends at known messages.
pub(crate) fn reach(message: &MessageDescriptor, known: &mut BTreeMap<String, MessageDescriptor>) {
    if descriptor::is_special(message.full_name()) {
        return;
    }
    if known.insert(message.full_name().to_owned(), message.clone()).is_none() {
        for field in message.fields() {
            if let Kind::Message(inner) = field.kind() {
                reach(&inner, known);
            }
        }
    }
}

pub(crate) fn name(message: &MessageDescriptor) -> Ident {
    format_ident!("SHAPE_{}", message.full_name().replace('.', "_").to_uppercase())
}

fn shape(message: &MessageDescriptor, options: &Options) -> TokenStream {
    let runtime = options.runtime_path();
    let fields = descriptor::fields(message);
    let at = message.full_name();
    assert!(fields.len() <= MOST_FIELDS, "{at}: more than {MOST_FIELDS} fields");
    let order = |key: &dyn Fn(&FieldDescriptor) -> (u32, String)| {
        let mut order: Vec<usize> = (0..fields.len()).collect();
        order.sort_by_key(|place| key(&fields[*place]));
        order.into_iter().map(literal)
    };
    let by_name = order(&|field| (0, field.name().to_owned()));
    let by_number = order(&|field| (field.number(), String::new()));
    let entries = fields.iter().map(|field| entry(field, options, &runtime));
    let name = name(message);
    quote! {
        pub static #name: #runtime::Shape = #runtime::Shape {
            name: #at,
            fields: &[#(#entries),*],
            by_name: &[#(#by_name),*],
            by_number: &[#(#by_number),*],
        };
    }
}

fn entry(field: &FieldDescriptor, options: &Options, runtime: &TokenStream) -> TokenStream {
    let cardinality = if field.is_map() {
        quote!(Map)
    } else if descriptor::bounds(field, options) {
        quote!(Bound)
    } else if field.is_list() {
        quote!(Repeated)
    } else if descriptor::is_nullable(field) {
        quote!(Optional)
    } else {
        quote!(Single)
    };
    let (name, number) = (field.name(), literal(field.number()));
    let oneof = literal(descriptor::oneof(field).map_or(0, |index| index + 1));
    let kind = if descriptor::is_narrow(field, options) {
        quote!(#runtime::Kind::Int53)
    } else if descriptor::document(field, options).is_some() {
        quote!(#runtime::Kind::Json)
    } else {
        kind(&field.kind(), field.full_name(), runtime)
    };
    quote! {
        #runtime::Field {
            name: #name,
            number: #number,
            kind: #kind,
            cardinality: #runtime::Cardinality::#cardinality,
            oneof: #oneof,
        }
    }
}

fn kind(kind: &Kind, at: &str, runtime: &TokenStream) -> TokenStream {
    let word = match kind {
        Kind::Bool => quote!(Bool),
        Kind::Int32 => quote!(Int32),
        Kind::Sint32 => quote!(Sint32),
        Kind::Sfixed32 => quote!(Sfixed32),
        Kind::Uint32 => quote!(Uint32),
        Kind::Fixed32 => quote!(Fixed32),
        Kind::Int64 => quote!(Int64),
        Kind::Sint64 => quote!(Sint64),
        Kind::Sfixed64 => quote!(Sfixed64),
        Kind::Uint64 => quote!(Uint64),
        Kind::Fixed64 => quote!(Fixed64),
        Kind::Float => quote!(Float),
        Kind::Double => quote!(Double),
        Kind::String => quote!(String),
        Kind::Bytes => quote!(Bytes),
        Kind::Enum(kind) => {
            let words = descriptor::words(kind);
            let words = words.into_iter().map(|(number, word)| {
                let number = literal(number);
                quote!((#number, #word))
            });
            return quote!(#runtime::Kind::Enum(&[#(#words),*]));
        }
        Kind::Message(message) => return of_message(message, at, runtime),
    };
    quote!(#runtime::Kind::#word)
}

fn of_message(message: &MessageDescriptor, at: &str, runtime: &TokenStream) -> TokenStream {
    let full = message.full_name();
    if let Some(inner) = descriptor::wrapped(full) {
        let inner = kind(&inner, at, runtime);
        return quote!(#runtime::Kind::Wrapper(&#inner));
    }
    match full.strip_prefix("google.protobuf.") {
        Some("Any") => panic!("{at}: google.protobuf.Any has no JSON form here"),
        Some("ListValue") => quote!(#runtime::Kind::List),
        Some(word) if descriptor::is_special(full) => {
            let word = format_ident!("{word}");
            quote!(#runtime::Kind::#word)
        }
        _ => {
            let shape = name(message);
            quote!(#runtime::Kind::Message(&#shape))
        }
    }
}
