//! Implements the traits of the model's src/record.rs for messages of the matching shape.

use proc_macro2::TokenStream;
use prost_reflect::{DescriptorPool, FieldDescriptor, Kind, MessageDescriptor, MethodDescriptor};
use quote::{format_ident, quote};

use crate::{
    listing, names,
    options::{self, Behaviour, Resource},
    packages::is_ours,
    states,
};

/// Implements `RpcRequest`, which links a request to its method.
pub(crate) fn methods(pool: &DescriptorPool) -> TokenStream {
    let services = pool.services().filter(|service| is_ours(service.package_name()));
    let methods = services.flat_map(|service| service.methods().collect::<Vec<_>>());
    methods
        .map(|method| {
            let path = names::path(&method.input());
            let response = names::path(&method.output());
            let name = format!("{}/{}", method.parent_service().full_name(), method.name());
            let states = changed_states(&method);
            let states = (!states.is_empty())
                .then(|| quote!(const STATES: &'static [&'static str] = &[#(#states),*];));
            quote! {
                impl RpcRequest for #path {
                    const METHOD: &'static str = #name;
                    type Response = #response;
                    #states
                }
            }
        })
        .collect()
}

/// Returns the states in which the method can change its record; empty if the option is not set.
fn changed_states(method: &MethodDescriptor) -> Vec<String> {
    let rest = options::extension(&method.options(), "authority.rest.v1.rest");
    let rest = rest.as_ref().and_then(|rest| rest.as_message());
    let given = rest.map(|rest| options::texts(rest, "states")).unwrap_or_default();
    let output = method.output();
    let record = [output.clone()].into_iter().chain(carried(&output).map(|(_, kind)| kind));
    let known =
        record.filter_map(|record| states::field(&record)).flat_map(|field| states::words(&field));
    let known: Vec<_> = known.collect();
    let unknown = given.iter().find(|state| !known.contains(state));
    assert!(unknown.is_none(), "{}: its record has no state {unknown:?}", method.full_name());
    given
}

pub(crate) fn of(message: &MessageDescriptor) -> TokenStream {
    let path = names::path(message);
    let request = message.name().ends_with("Request").then(|| request(message, &path));
    let response = if message.name().starts_with("Export") {
        Some(export(message, &path))
    } else if message.name().ends_with("Response") {
        Some(response(message, &path))
    } else {
        None
    };
    let record = options::resource(message).map(|resource| record(message, &path, &resource));
    quote!(#request #response #record)
}

fn request(message: &MessageDescriptor, path: &TokenStream) -> TokenStream {
    let by_id = is_text(message, "id").then(|| {
        let deleted = message.get_field_by_name("deleted").map(|_| {
            quote!(
                fn deleted(&self) -> bool {
                    self.deleted
                }
            )
        });
        let validate_only = message.get_field_by_name("validate_only").map(|_| {
            quote!(
                fn validate_only(&self) -> bool {
                    self.validate_only
                }
            )
        });
        quote! {
            impl ByIdRequest for #path {
                fn id(&self) -> &str { &self.id }
                #deleted
                #validate_only
            }
        }
    });
    let is_list = is_text(message, "page_token") && message.get_field_by_name("limit").is_some();
    let listing = is_list.then(|| listing::of(message, path));
    let with_record = carried(message).map(|(field, record)| {
        let (name, rust) = (field.name(), names::field(&field));
        let record = names::path(&record);
        let cleared = message.get_field_by_name("clear").map(|_| {
            quote!(
                fn cleared(&mut self) -> FieldMask {
                    self.clear.take().unwrap_or_default()
                }
            )
        });
        let mask = if message.get_field_by_name("update_mask").is_some() {
            quote!(self.update_mask.unwrap_or_default())
        } else {
            quote!(FieldMask::default())
        };
        quote! {
            impl RecordRequest for #path {
                type Record = #record;
                const FIELD: &'static str = #name;
                #cleared
                fn open(self) -> (Self::Record, FieldMask) {
                    (self.#rust.unwrap_or_default(), #mask)
                }
            }
        }
    });
    quote!(#by_id #listing #with_record)
}

/// Implements an export: a request with the filters of a list, and a stream of the list's records.
fn export(message: &MessageDescriptor, path: &TokenStream) -> TokenStream {
    if let Some((field, record)) = carried(message) {
        let (field, record) = (names::field(&field), names::path(&record));
        return quote! {
            impl Exported for #path {
                type Record = #record;
                fn of(record: Option<#record>, page_token: String) -> Self {
                    Self { end: record.is_none(), #field: record, page_token }
                }
            }
        };
    }
    let list = message.full_name().replace(".Export", ".List");
    let list = message.parent_pool().get_message_by_name(&list);
    let Some(of_list) = list.filter(|list| list.name().ends_with("Request")) else {
        return TokenStream::new();
    };
    let list = names::path(&of_list);
    // An export may have fields of its own. A list's page size does not apply to it.
    let shared = message.fields().filter(|field| of_list.get_field_by_name(field.name()).is_some());
    let fields = shared.map(|field| names::field(&field)).map(|name| quote!(#name: from.#name,));
    quote! {
        impl From<#path> for #list {
            fn from(from: #path) -> Self { Self { #(#fields)* ..Self::default() } }
        }
    }
}

fn response(message: &MessageDescriptor, path: &TokenStream) -> TokenStream {
    let list = message.fields().find_map(|field| match field.kind() {
        Kind::Message(kind) if field.is_list() && options::resource(&kind).is_some() => {
            Some((names::field(&field), names::path(&kind)))
        }
        _ => None,
    });
    let page = list.filter(|_| is_text(message, "next_page_token")).map(|(field, record)| {
        let (parameter, total) = match message.get_field_by_name("total") {
            Some(_) => (quote!(total), quote!(total,)),
            None => (quote!(_), TokenStream::new()),
        };
        quote! {
            impl ListResponse for #path {
                type Record = #record;
                fn of(
                    records: Vec<#record>,
                    #parameter: Option<i32>,
                    next_page_token: Option<String>,
                ) -> Self {
                    Self { #field: records, #total next_page_token }
                }
            }
        }
    });
    let deleted = carried(message).filter(|_| is_text(message, "id")).map(|(field, record)| {
        let (field, record) = (names::field(&field), names::path(&record));
        quote! {
            impl Deleted for #path {
                type Record = #record;
                fn of(id: String, record: Option<#record>) -> Self { Self { id, #field: record } }
            }
        }
    });
    quote!(#page #deleted)
}

fn is_text(message: &MessageDescriptor, name: &str) -> bool {
    message
        .get_field_by_name(name)
        .is_some_and(|field| matches!(field.kind(), Kind::String) && !field.is_list())
}

/// Returns the single record inside a request or response.
fn carried(message: &MessageDescriptor) -> Option<(FieldDescriptor, MessageDescriptor)> {
    message.fields().find_map(|field| match field.kind() {
        Kind::Message(kind) if options::resource(&kind).is_some() && !field.is_list() => {
            Some((field, kind))
        }
        _ => None,
    })
}

fn record(message: &MessageDescriptor, path: &TokenStream, resource: &Resource) -> TokenStream {
    let kind = &resource.kind;
    let tenant_id = match message.get_field_by_name("tenant_id") {
        Some(field) if options::is_nullable(&field) => {
            quote!(self.tenant_id.as_deref().unwrap_or_default())
        }
        Some(_) => quote!(&self.tenant_id),
        None if kind == "tenant" => quote!(&self.id),
        // The record belongs to the installation, not to a tenant.
        None => quote!(""),
    };
    let [created_at, updated_at] = ["created_at", "updated_at"].map(|name| {
        let rust = format_ident!("{name}");
        message.get_field_by_name(name).map_or_else(|| quote!(None), |_| quote!(self.#rust))
    });
    let (by, set_by) = match message.get_field_by_name("created_by") {
        Some(_) => (quote!(by), quote!(self.created_by = by;)),
        None => (quote!(_), TokenStream::new()),
    };
    let State { kind: state, consts, text, read, set } = State::of(message);
    let (immutable, output_only, merge) =
        (reject_immutable(message), reject_output_only(message), merge(message));
    let bounds = bounds(message);
    quote! {
        impl Record for #path {
            const KIND: &'static str = #kind;
            #bounds
            type State = #state;
            #consts
            fn id(&self) -> &str { &self.id }
            fn tenant_id(&self) -> &str { #tenant_id }
            fn state(&self) -> &str { #text }
            fn known_state(&self) -> Option<Self::State> { #read }
            fn created_at(&self) -> Option<Time> { #created_at }
            fn updated_at(&self) -> Option<Time> { #updated_at }
            fn stamp_created(&mut self, id: String, #by: String) { self.id = id; #set_by #set }
            #output_only
            #immutable
            #merge
        }
    }
}

/// Code for the state of a record.
struct State {
    /// The type of the state.
    kind: TokenStream,
    /// The field of the state, and the final states.
    consts: TokenStream,
    /// An expression for the state's text.
    text: TokenStream,
    /// An expression that parses the text.
    read: TokenStream,
    /// A statement that sets the first state if the record has no state.
    set: TokenStream,
}

impl State {
    fn of(message: &MessageDescriptor) -> Self {
        let Some(field) = states::field(message) else {
            return Self {
                kind: quote!(crate::state::Stateless),
                consts: TokenStream::new(),
                text: quote!(""),
                read: quote!(None),
                set: TokenStream::new(),
            };
        };
        let (kind, rust) = (states::name(message, &field), names::field(&field));
        let (text, set) = if options::is_filled(&field) {
            (
                quote!(self.#rust.as_deref().unwrap_or_default()),
                quote!(self.#rust.get_or_insert_with(|| Self::State::default().to_string());),
            )
        } else {
            (
                quote!(&self.#rust),
                quote! {
                    if self.#rust.is_empty() {
                        self.#rust = Self::State::default().to_string();
                    }
                },
            )
        };
        Self {
            kind: quote!(crate::state::#kind),
            consts: {
                let name = field.name();
                quote! {
                    const STATE: &'static str = #name;
                    const FINAL: &'static [Self::State] = crate::state::#kind::FINAL;
                }
            },
            text,
            read: quote!(self.state().parse().ok()),
            set,
        }
    }
}

/// Rejects fields that a create must not set.
fn reject_output_only(message: &MessageDescriptor) -> TokenStream {
    let outputs =
        message.fields().filter(|field| options::behaviour(field) == Some(Behaviour::OutputOnly));
    let checks = outputs.map(|field| {
        let (name, is_empty) = (field.name(), is_empty(&field));
        quote!(found.output_only(#name, #is_empty);)
    });
    quote!(fn reject_output_only(&self, found: &mut Violations) { #(#checks)* })
}

/// Rejects fields that a patch must not change.
fn reject_immutable(message: &MessageDescriptor) -> TokenStream {
    let fixed = message.fields().filter_map(|field| {
        let name = field.name();
        Some(match options::behaviour(&field)? {
            Behaviour::OutputOnly => quote!(#name => found.output_only(#name, false),),
            Behaviour::Immutable => quote!(#name => found.add(#name, "cannot change"),),
        })
    });
    let free: Vec<_> = message
        .fields()
        .filter(|field| options::behaviour(field).is_none())
        .map(|field| field.name().to_owned())
        .collect();
    let free = (!free.is_empty()).then(|| quote!(#(#free)|* => {}));
    quote! {
        fn reject_immutable(mask: &FieldMask, found: &mut Violations) {
            for path in &mask.paths {
                match path.as_str() {
                    #(#fixed)*
                    #free
                    other => found.add(other, "is not a member of this record"),
                }
            }
        }
    }
}

/// Generates the names of the bounding lists, and a check whether a given list is empty.
fn bounds(message: &MessageDescriptor) -> TokenStream {
    let fields: Vec<_> = message.fields().filter(options::bounds).collect();
    if fields.is_empty() {
        return TokenStream::new();
    }
    let names: Vec<_> = fields.iter().map(|field| field.name().to_owned()).collect();
    let rust = fields.iter().map(names::field);
    quote! {
        const BOUNDS: &'static [&'static str] = &[#(#names),*];
        fn unbounded(&self, member: &str) -> Option<bool> {
            match member {
                #(#names => Some(self.#rust.is_empty()),)*
                _ => None,
            }
        }
    }
}

/// Generates the merge of a patch into a record.
fn merge(message: &MessageDescriptor) -> TokenStream {
    let free = message.fields().filter(|field| options::behaviour(field).is_none());
    let arms = free.map(|field| {
        let (name, rust) = (field.name(), names::field(&field));
        match field.kind() {
            // Clearing a message column that is never null sets it to the empty message.
            Kind::Message(_) if !field.is_list() && !options::is_nullable(&field) => {
                quote!(#name => self.#rust = Some(from.#rust.take().unwrap_or_default()),)
            }
            _ => quote!(#name => self.#rust = std::mem::take(&mut from.#rust),),
        }
    });
    let arms: TokenStream = arms.collect();
    if arms.is_empty() {
        // A client cannot change any field of this record.
        return quote!(
            fn merge(&mut self, _: Self, _: &FieldMask) {}
        );
    }
    quote! {
        fn merge(&mut self, mut from: Self, mask: &FieldMask) {
            for path in mask.distinct() {
                match path { #arms _ => {} }
            }
        }
    }
}

fn is_empty(field: &FieldDescriptor) -> TokenStream {
    let rust = names::field(field);
    match field.kind() {
        _ if field.is_list() || field.is_map() => quote!(self.#rust.is_empty()),
        _ if field.supports_presence() => quote!(self.#rust.is_none()),
        Kind::String | Kind::Bytes => quote!(self.#rust.is_empty()),
        Kind::Bool => quote!(!self.#rust),
        _ => quote!(self.#rust == 0),
    }
}
