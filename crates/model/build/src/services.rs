//! Generates a trait for each service and a function to serve it.
//!
//! The model's src/service.rs explains why tonic's generated server is not used.

use gateway_rest_build::{Options, http_bindings};
use proc_macro2::{Ident, TokenStream};
use prost_reflect::{DescriptorPool, Kind, MessageDescriptor, MethodDescriptor, ServiceDescriptor};
use quote::{format_ident, quote};

use crate::{known, names, options, packages::is_ours, tenants};

pub(crate) fn of(pool: &DescriptorPool) -> TokenStream {
    let services: Vec<_> =
        pool.services().filter(|service| is_ours(service.package_name())).collect();
    let methods = || services.iter().flat_map(|service| service.methods().collect::<Vec<_>>());
    let tenants = tenants::of(methods());
    let writing: Vec<_> = methods().filter(writes).collect();
    let unnamed = writing.iter().filter(|method| record(method).is_none());
    let unnamed =
        unnamed.map(|method| format!("/{}/{}", method.parent_service().full_name(), method.name()));
    let code: TokenStream = services.iter().map(service).collect();
    let (tables, features) = (known::tables(&writing), known::features(pool));
    quote! {
        /// Optional fields of decision requests, sorted.
        pub const FEATURES: &[&str] = &[#(#features),*];

        #tables

        #tenants

        /// Methods that write and have no record id in their messages: see [`WrittenRecord`].
        pub const WITHOUT_RECORD: &[&str] = &[#(#unnamed),*];

        #code
    }
}

fn service(service: &ServiceDescriptor) -> TokenStream {
    let full = service.full_name();
    let name = format_ident!("{}", service.name());
    let serve = format_ident!("{}", names::snake(service.name()));
    let signatures = service.methods().map(|method| {
        let call = format_ident!("{}", names::snake(method.name()));
        let (input, output) = (names::path(&method.input()), names::path(&method.output()));
        let reply = if streams(&method) { quote!(Replies) } else { quote!(Reply) };
        quote!(async fn #call(&self, call: Request<#input>) -> #reply<#output>;)
    });
    let methods = service.methods().map(|method| {
        let word = method.name();
        let handler = handler(&method);
        quote!((#word, |rpcs, call| Box::pin(async move { #handler })))
    });
    let table = format_ident!("{}", names::snake(service.name()).to_uppercase());
    let does = format!(" The methods of `{full}`.");
    let serves = format!(" Serves `{full}`.");
    quote! {
        #[doc = #does]
        #[tonic::async_trait]
        pub trait #name: Send + Sync + 'static { #(#signatures)* }

        const #table: &[Handler<dyn #name>] = &[#(#methods),*];

        #[doc = #serves]
        pub fn #serve(rpcs: Arc<dyn #name>) -> Service {
            Service::new(#full, #table, rpcs)
        }
    }
}

/// Generates a call of the method. If the method's messages contain the id of the written record,
/// the call also reports this id.
fn handler(method: &MethodDescriptor) -> TokenStream {
    let call = format_ident!("{}", names::snake(method.name()));
    let input = names::path(&method.input());
    // In a decision or a write, an unknown field might be a restriction. In a read, it can only be
    // a filter.
    let known = known::name(&method.input());
    let known = if writes(method) { quote!(Some(&#known)) } else { quote!(None) };
    if streams(method) {
        return quote!(many(rpcs.#call(read(call, #known)?).await));
    }
    match record(method).filter(|_| writes(method) && !decides(method)) {
        Some(Id::Answered(id)) => quote!(one(rpcs.#call(read(call, #known)?).await, |answer| #id)),
        Some(Id::Asked(id)) => quote! {
            let call = read::<#input>(call, #known)?;
            let asked = call.get_ref();
            let id = Some(#id);
            one(rpcs.#call(call).await, |_| id)
        },
        None => quote!(one(rpcs.#call(read(call, #known)?).await, |_| None)),
    }
}

/// Whether the method is bound to an HTTP verb that may change something.
fn writes(method: &MethodDescriptor) -> bool {
    http_bindings(method, &Options::default()).iter().any(|binding| binding.method != "GET")
}

/// Whether the method only makes decisions. Its calls are not logged: each decision has a record.
fn decides(method: &MethodDescriptor) -> bool {
    method.parent_service().package_name() == "authority.runtime.v1"
}

/// The place of the record id in a writing method's messages.
enum Id {
    /// An expression of type `Option<String>` that reads the response, `answer`.
    Answered(TokenStream),
    /// An expression of type `String` that reads the request, `asked`.
    Asked(TokenStream),
}

/// Finds the record id in the response, in the record of the response, or else in the request.
///
/// After a create, only the response contains the id.
fn record(method: &MethodDescriptor) -> Option<Id> {
    let (input, output) = (method.input(), method.output());
    if let Some(id) = id(&output) {
        return Some(Id::Answered(quote!(Some(answer.#id.clone()))));
    }
    let carried = output.fields().find_map(|field| match field.kind() {
        Kind::Message(kind) if !field.is_list() && !field.is_map() => {
            id(&kind).map(|id| (names::field(&field), id))
        }
        _ => None,
    });
    if let Some((field, id)) = carried {
        return Some(Id::Answered(quote!(answer.#field.as_ref().map(|one| one.#id.clone()))));
    }
    id(&input).map(|id| Id::Asked(quote!(asked.#id.clone())))
}

/// Returns the id field of a message. A signing key's id field is `kid`.
fn id(message: &MessageDescriptor) -> Option<Ident> {
    let field = ["id", "kid"].iter().find_map(|name| message.get_field_by_name(name))?;
    let is_text = matches!(field.kind(), Kind::String) && !field.is_list();
    (is_text && !options::is_nullable(&field)).then(|| names::field(&field))
}

fn streams(method: &MethodDescriptor) -> bool {
    assert!(
        !method.is_client_streaming(),
        "{}: streams of requests are not served",
        method.full_name()
    );
    method.is_server_streaming()
}
