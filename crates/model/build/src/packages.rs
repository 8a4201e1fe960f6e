//! The packages of the service.

use std::collections::BTreeSet;

use prost_reflect::{DescriptorPool, MessageDescriptor};

/// Packages that only declare options. No code is generated for them.
const OPTIONS: [&str; 2] = ["authority.rest.v1", "authority.auth.v1"];

/// Returns the packages that the service serves.
pub fn packages(pool: &DescriptorPool) -> BTreeSet<String> {
    pool.files().map(|file| file.package_name().to_owned()).filter(|name| is_ours(name)).collect()
}

pub(crate) fn is_ours(package: &str) -> bool {
    package.starts_with("authority.") && !OPTIONS.contains(&package)
}

pub(crate) fn ours(pool: &DescriptorPool) -> impl Iterator<Item = MessageDescriptor> {
    pool.all_messages().filter(|m| is_ours(m.package_name()) && !m.is_map_entry())
}
