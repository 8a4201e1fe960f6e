//! Generates the static tables `RULES` and `READS`. `RULES` has the HTTP bindings of each method, with
//! the access rule of each binding (`authority.auth.v1.access`). `READS` has the method that reads a
//! record, by the table of the record.

use gateway_rest_build::{HttpBinding, Options, http_bindings};
use proc_macro2::TokenStream;
use prost_reflect::{DescriptorPool, DynamicMessage, MethodDescriptor, Value};
use quote::quote;

use crate::{options, packages::is_ours};

pub(crate) fn of(pool: &DescriptorPool) -> TokenStream {
    let rows = methods(pool).map(|method| {
        let path = path(&method);
        let bindings = bound(&method).into_iter().zip(accesses(&method));
        let bindings = bindings.map(|(HttpBinding { method, path }, rule)| {
            let access = access(&rule);
            quote!(Binding { verb: #method, path: #path, access: #access })
        });
        quote!((#path, &[#(#bindings),*]))
    });
    let reads = methods(pool).filter_map(|method| {
        let (table, path) = (read_table(&method)?, path(&method));
        Some(quote!((#table, #path)))
    });
    quote! {
        pub static RULES: &[(&str, &[Binding])] = &[#(#rows),*];
        pub(crate) static READS: &[(&str, &str)] = &[#(#reads),*];
    }
}

fn methods(pool: &DescriptorPool) -> impl Iterator<Item = MethodDescriptor> {
    let services = pool.services().filter(|service| is_ours(service.package_name()));
    services.flat_map(|service| service.methods().collect::<Vec<_>>())
}

fn path(method: &MethodDescriptor) -> String {
    format!("/{}/{}", method.parent_service().full_name(), method.name())
}

/// Returns the table of a method that reads a record by id: `tools` for `GetTool`.
fn read_table(method: &MethodDescriptor) -> Option<String> {
    let record = method.output();
    let is_read = method.name() == format!("Get{}", record.name());
    Some(options::resource(&record).filter(|_| is_read)?.table)
}

/// Returns the method's bindings, one per rule.
///
/// A method without a binding gets a binding with an empty verb and path.
fn bound(method: &MethodDescriptor) -> Vec<HttpBinding> {
    let mut bindings = http_bindings(method, &Options::default());
    if bindings.is_empty() {
        bindings.push(HttpBinding { method: String::new(), path: String::new() });
    }
    let (bound, ruled) = (bindings.len(), accesses(method).len());
    assert!(
        bound == ruled,
        "{}: {bound} bindings and {ruled} rules: authority.auth.v1.access needs one rule per \
         binding, in their order (proto/authority/auth/v1/options.proto)",
        method.full_name(),
    );
    bindings
}

/// Returns the access rules of a method's bindings, in the order of the bindings.
fn accesses(method: &MethodDescriptor) -> Vec<DynamicMessage> {
    let value = options::extension(&method.options(), "authority.auth.v1.access");
    let Some(first) = value.as_ref().and_then(|value| value.as_message()) else {
        return Vec::new();
    };
    let more = first.get_field_by_name("additional_bindings");
    let more = more.iter().filter_map(|more| more.as_list()).flatten();
    let all: Vec<_> =
        [first].into_iter().chain(more.filter_map(Value::as_message)).cloned().collect();
    for one in all.iter().skip(1) {
        let nested = one.has_field_by_name("additional_bindings");
        assert!(!nested, "{}: additional_bindings must not be nested", method.full_name());
    }
    all
}

fn access(rule: &DynamicMessage) -> TokenStream {
    let [public, owner, member] =
        ["public", "owner", "member"].map(|name| options::flag(rule, name));
    let (roles, scope) = (options::texts(rule, "roles"), options::text(rule, "scope"));
    quote! {
        Access {
            public: #public, owner: #owner, member: #member, roles: &[#(#roles),*], scope: #scope,
        }
    }
}
