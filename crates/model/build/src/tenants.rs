//! Generates the completion of tenants' slugs in requests.
//!
//! Wherever a request has a tenant's id, the client may send the tenant's slug instead.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::TokenStream;
use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor, MethodDescriptor};
use quote::quote;

use crate::{
    known, names,
    options::{self, Behaviour},
    packages::is_ours,
};

/// Implements `TenantIds` for the requests of all methods, and for the messages inside these
/// requests that have a tenant's id.
pub(crate) fn of(methods: impl Iterator<Item = MethodDescriptor>) -> TokenStream {
    let (mut requests, mut found) = (BTreeSet::new(), BTreeMap::new());
    for method in methods {
        let request = method.input();
        let has_ids = collect(&request, &mut found);
        // The tenant of a decision comes from the credential.
        let at = method.full_name();
        assert!(!has_ids || !known::decides(&method), "{at}: a decision's request names a tenant");
        requests.insert(request.full_name().to_owned());
    }
    found.retain(|name, Completed { code, .. }| requests.contains(name) || !code.is_empty());
    let of_message = |Completed { message, code }: &Completed| {
        let path = names::path(message);
        let body = (!code.is_empty()).then(|| quote!(fn complete_tenants(&mut self) { #code }));
        quote!(impl TenantIds for #path { #body })
    };
    found.values().map(of_message).collect()
}

/// A message, and the statements that complete the ids in it.
struct Completed {
    message: MessageDescriptor,
    code: TokenStream,
}

/// Adds the message, and the messages inside it. Returns whether it contains ids of tenants.
fn collect(message: &MessageDescriptor, found: &mut BTreeMap<String, Completed>) -> bool {
    let name = message.full_name();
    if let Some(known) = found.get(name) {
        return !known.code.is_empty();
    }
    // Ends the recursion for a message that contains itself.
    let entry = || Completed { message: message.clone(), code: TokenStream::new() };
    found.insert(name.to_owned(), entry());
    let code: TokenStream = message.fields().filter_map(|field| complete(&field, found)).collect();
    let has_ids = !code.is_empty();
    found.insert(name.to_owned(), Completed { code, ..entry() });
    has_ids
}

/// Generates the statement that completes the tenants' ids in a field, if the field has any.
fn complete(
    field: &FieldDescriptor,
    found: &mut BTreeMap<String, Completed>,
) -> Option<TokenStream> {
    let (rust, is_optional) = (names::field(field), options::is_nullable(field));
    let code = match field.kind() {
        Kind::String if is_id(field) && is_optional => {
            quote!(self.#rust.iter_mut().for_each(complete);)
        }
        Kind::String if is_id(field) => quote!(complete(&mut self.#rust);),
        Kind::Message(inner)
            if is_ours(inner.package_name()) && !field.is_map() && collect(&inner, found) =>
        {
            quote!(self.#rust.iter_mut().for_each(TenantIds::complete_tenants);)
        }
        _ => return None,
    };
    let at = field.full_name();
    let is_choice = field.containing_oneof().is_some() && !is_optional;
    assert!(!is_choice, "{at}: the id of a tenant in a oneof is not completed");
    Some(code)
}

/// Whether a client sends the id of a tenant in this field.
fn is_id(field: &FieldDescriptor) -> bool {
    let is_named = field.name() == "tenant_id" || field.name().ends_with("_tenant_id");
    is_named && !field.is_list() && options::behaviour(field) != Some(Behaviour::OutputOnly)
}
