//! Compiles `../proto` (without protoc) and generates code from its annotations.
//!
//! - A message with `google.api.resource` is a row of the table named by its plural (rows.rs).
//! - A message that is stored whole has serde's JSON, too (json.rs).
//! - `buf.validate` becomes a `Validate` implementation (rules.rs).
//! - Requests, responses and records implement the small traits that the registry's flow uses
//!   (shapes.rs).
//! - `string.in` of a record's state becomes an enum (states.rs).
//! - A service becomes a trait and a function that serves it (services.rs).
//! - `authority.auth.v1.access` becomes the table of who may call what (access.rs).
//! - `google.api.http` becomes the REST route table (gateway-rest-build).

mod access;
mod json;
mod names;
mod options;
mod rows;
mod rules;
mod services;
mod shapes;
mod states;

use std::{
    collections::BTreeSet,
    env,
    error::Error,
    fmt::Write as _,
    fs, io,
    path::{Path, PathBuf},
};

use proc_macro2::TokenStream;
use prost_reflect::{DescriptorPool, MessageDescriptor};
use prost_types::FileDescriptorSet;

const ROOT: &str = "../../proto";
/// Packages of this service whose files only declare options: nothing is generated for them.
const OPTIONS: [&str; 2] = ["authority.rest.v1", "authority.auth.v1"];

#[expect(
    clippy::disallowed_methods,
    reason = "cargo passes data to build scripts in the environment"
)]
fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={ROOT}");
    println!("cargo::rerun-if-changed=build");
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let mut compiler = protox::Compiler::new([ROOT])?;
    compiler.include_imports(true).include_source_info(true);
    let mut protos = Vec::new();
    find(&Path::new(ROOT).join("authority"), &mut protos)?;
    protos.sort();
    compiler.open_files(protos)?;
    // Only the encoded set keeps custom options.
    let encoded = compiler.encode_file_descriptor_set();
    let pool = DescriptorPool::decode(encoded.as_slice())?;

    messages(&pool, compiler.file_descriptor_set())?;
    fs::write(out.join("areas.rs"), areas(&pool))?;
    let facts: String =
        ours(&pool).map(|m| rules::of(&m) + &shapes::of(&m) + &rows::sql(&m)).collect();
    fs::write(out.join("facts.rs"), facts + &shapes::asked(&pool) + &rows::computed(ours(&pool)))?;
    fs::write(out.join("states.rs"), formatted(states::of(&pool))?)?;
    fs::write(out.join("services.rs"), services::of(&pool))?;
    let options = gateway_rest_build::Options {
        rest: "authority.rest.v1.rest".to_owned(),
        packages: packages(&pool).into_iter().collect(),
        ..gateway_rest_build::Options::default()
    };
    fs::write(out.join("access.rs"), access::rules(&pool, &options))?;
    fs::write(out.join("routes.rs"), gateway_rest_build::routes(&pool, &options))?;
    let descriptors = out.join("descriptors.bin");
    fs::write(&descriptors, &encoded)?;
    println!("cargo::metadata=descriptors={}", descriptors.display());
    Ok(())
}

fn formatted(code: TokenStream) -> Result<String, syn::Error> {
    Ok(prettyplease::unparse(&syn::parse2(code)?))
}

fn find(folder: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            find(&path, found)?;
        } else if path.extension().is_some_and(|end| end == "proto") {
            found.push(path);
        }
    }
    Ok(())
}

fn messages(pool: &DescriptorPool, mut files: FileDescriptorSet) -> Result<(), Box<dyn Error>> {
    // prost needs google.protobuf to derive Copy; of the rest, only our own packages.
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
    Ok(builder.compile_fds(files)?)
}

fn is_ours(package: &str) -> bool {
    package.starts_with("authority.") && !OPTIONS.contains(&package)
}

fn ours(pool: &DescriptorPool) -> impl Iterator<Item = MessageDescriptor> {
    pool.all_messages().filter(|m| is_ours(m.package_name()) && !m.is_map_entry())
}

fn packages(pool: &DescriptorPool) -> BTreeSet<String> {
    pool.files().map(|file| file.package_name().to_owned()).filter(|name| is_ours(name)).collect()
}

/// `pub use` of each package under the short name of its area.
fn areas(pool: &DescriptorPool) -> String {
    packages(pool).iter().fold(String::new(), |mut code, package| {
        let path = package.replace('.', "::");
        let _ = writeln!(code, "pub use packages::{path} as {};", names::area(package));
        code
    })
}
