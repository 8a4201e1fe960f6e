//! `authority.auth.v1.access` of every method, as one static table.

use std::fmt::Write as _;

use prost_reflect::DescriptorPool;

use crate::{is_ours, options};

pub(crate) fn rules(pool: &DescriptorPool) -> String {
    let mut code = String::from("pub static RULES: &[(&str, Access)] = &[\n");
    for service in pool.services().filter(|service| is_ours(service.package_name())) {
        for method in service.methods() {
            let value = options::extension(&method.options(), "authority.auth.v1.access");
            // A method that says nothing opens to nobody; a test of the service names it.
            let Some(access) = value.as_ref().and_then(|value| value.as_message()) else {
                continue;
            };
            let roles = options::texts(access, "roles");
            let _ = writeln!(
                code,
                "(\"/{}/{}\", Access {{ public: {}, owner: {}, member: {}, roles: &{roles:?}, scope: {:?} }}),",
                service.full_name(),
                method.name(),
                options::flag(access, "public"),
                options::flag(access, "owner"),
                options::flag(access, "member"),
                options::text(access, "scope"),
            );
        }
    }
    code + "];\n"
}
