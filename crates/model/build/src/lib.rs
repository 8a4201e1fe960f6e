//! Generates the model's Rust from the annotations of the protos.
//!
//! - A message with `google.api.resource` is a row of the table named by its plural (rows.rs).
//! - A message that is stored whole derives the traits of serde (json.rs).
//! - `buf.validate` becomes a `Validate` implementation (rules.rs).
//! - Requests, responses and records implement the small traits of the registry's flow (shapes.rs).
//! - `string.in` of a record's state becomes an enum (states.rs).
//! - A service becomes a trait and a function to serve it (services.rs). A tenant's slug in a request
//!   becomes the tenant's id (tenants.rs).
//! - `authority.auth.v1.access` becomes the table of callers that each method admits (access.rs).
//!   `authority.auth.v1.visibility` becomes the table of fields that tenants see (visibility.rs).
//!
//! This crate is for build scripts: an error in a proto panics with the name of the method or
//! field. `tests/generated.rs` shows the code that is generated for a small proto.

mod access;
mod json;
mod known;
mod listing;
mod names;
mod options;
mod packages;
mod rows;
mod rules;
mod services;
mod shapes;
mod states;
mod tenants;
mod visibility;

use std::io;

use proc_macro2::TokenStream;
use prost_reflect::DescriptorPool;
use prost_types::FileDescriptorSet;
use quote::{format_ident, quote};

pub use packages::packages;
use packages::{is_ours, ours};

/// Writes prost's structs to `OUT_DIR`, with the derives of rows and of stored JSON.
///
/// `packages.rs` includes all of them.
///
/// # Errors
/// If a file cannot be written.
pub fn messages(pool: &DescriptorPool, mut files: FileDescriptorSet) -> io::Result<()> {
    // prost needs google.protobuf to derive Copy. All other packages except our own are left out.
    files.file.retain(|file| {
        let package = file.package();
        package == "google.protobuf" || is_ours(package)
    });
    let mut builder = tonic_prost_build::configure()
        .compile_well_known_types(true)
        .emit_rerun_if_changed(false)
        .build_server(false)
        .include_file("packages.rs");
    for (proto, rust) in names::OWN_TYPES {
        builder = builder.extern_path(format!(".{proto}"), rust);
    }
    builder = builder.extern_path(".google.protobuf", "::prost_types");
    for message in ours(pool) {
        builder = rows::derive(&message, builder);
    }
    for message in json::messages(pool) {
        builder = json::derive(&message, builder);
    }
    builder.compile_fds(files)
}

/// Returns the generated files by name, except prost's.
pub fn code(pool: &DescriptorPool) -> [(&'static str, String); 5] {
    let facts = ours(pool)
        .map(|message| {
            let (rules, shapes, sql) =
                (rules::of(&message), shapes::of(&message), rows::sql(&message));
            quote!(#rules #shapes #sql)
        })
        .chain([shapes::methods(pool), rows::computed(ours(pool))]);
    let (access, visibility) = (access::of(pool), visibility::of(pool));
    [
        ("areas.rs", areas(pool)),
        ("facts.rs", facts.collect()),
        ("states.rs", states::of(pool)),
        ("services.rs", services::of(pool)),
        ("access.rs", quote!(#access #visibility)),
    ]
    .map(|(name, code)| (name, formatted(&code)))
}

fn formatted(code: &TokenStream) -> String {
    let file = syn::parse2(code.clone());
    prettyplease::unparse(&file.unwrap_or_else(|error| panic!("{error}, in {code}")))
}

/// Generates a `pub use` of each package under the short name of its area.
fn areas(pool: &DescriptorPool) -> TokenStream {
    packages(pool)
        .iter()
        .map(|package| {
            let path = names::parsed(&package.replace('.', "::"));
            let area = format_ident!("{}", names::area(package));
            quote!(pub use packages::#path as #area;)
        })
        .collect()
}
