//! `authority.auth.v1.access` of every HTTP binding of every method, as one static table.

use std::fmt::Write as _;

use gateway_rest_build::{HttpBinding, Options, http_bindings};
use prost_reflect::{DescriptorPool, DynamicMessage, MethodDescriptor, Value};

use crate::{is_ours, options};

pub(crate) fn rules(pool: &DescriptorPool, rest: &Options) -> String {
    let mut code = String::from("pub static RULES: &[(&str, &[Binding])] = &[\n");
    for service in pool.services().filter(|service| is_ours(service.package_name())) {
        for method in service.methods() {
            let _ = writeln!(code, "(\"/{}/{}\", &[", service.full_name(), method.name());
            for (binding, access) in bound(&method, rest).iter().zip(accesses(&method)) {
                let _ = writeln!(
                    code,
                    "Binding {{ verb: {:?}, path: {:?}, access: {} }},",
                    binding.method,
                    binding.path,
                    source(&access),
                );
            }
            code += "]),\n";
        }
    }
    code + "];\n"
}

/// The method's bindings, one for each rule; one without verb and path if it has no binding.
fn bound(method: &MethodDescriptor, rest: &Options) -> Vec<HttpBinding> {
    let mut bindings = http_bindings(method, rest);
    if bindings.is_empty() {
        bindings.push(HttpBinding { method: String::new(), path: String::new() });
    }
    let (bound, ruled) = (bindings.len(), accesses(method).len());
    assert!(
        bound == ruled,
        "{}: {bound} bindings and {ruled} rules: authority.auth.v1.access says who may call each \
         binding, in their order (proto/authority/auth/v1/options.proto)",
        method.full_name(),
    );
    bindings
}

/// The rules of a method's bindings, in their order.
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
        assert!(!nested, "{}: additional_bindings within one another", method.full_name());
    }
    all
}

fn source(access: &DynamicMessage) -> String {
    let roles = options::texts(access, "roles");
    format!(
        "Access {{ public: {}, owner: {}, member: {}, roles: &{roles:?}, scope: {:?} }}",
        options::flag(access, "public"),
        options::flag(access, "owner"),
        options::flag(access, "member"),
        options::text(access, "scope"),
    )
}
