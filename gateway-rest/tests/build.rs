//! Builds messages, services, pbjson's JSON (the oracle) and the gateway's tables from the test
//! protos.

use std::{env, error::Error, fs, path::PathBuf};

use gateway_rest_build::{Access, Info, Options, Requirement, bearer, openapi_text};
use prost::Message as _;
use prost_reflect::DescriptorPool;

#[expect(
    clippy::disallowed_methods,
    reason = "cargo passes data to build scripts in the environment"
)]
fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=proto");
    let out = PathBuf::from(env::var_os("OUT_DIR").ok_or("no OUT_DIR")?);
    let mut compiler = protox::Compiler::new(["proto"])?;
    compiler.include_imports(true).include_source_info(true);
    compiler.open_files(["library/v1/library.proto"])?;
    // Keeps the custom options, which `file_descriptor_set()` drops.
    let encoded = compiler.encode_file_descriptor_set();
    let pool = DescriptorPool::decode(encoded.as_slice())?;

    let mut prost = tonic_prost_build::Config::new();
    prost.compile_well_known_types().extern_path(".google.protobuf", "::pbjson_types");
    tonic_prost_build::configure().compile_fds_with_config(
        prost_types::FileDescriptorSet::decode(encoded.as_slice())?,
        prost,
    )?;
    pbjson_build::Builder::new()
        .register_descriptors(&encoded)?
        .preserve_proto_field_names()
        .extern_path(".google.protobuf", "::pbjson_types")
        .build(&[".library.v1"])?;

    let options = Options {
        rest: "library.v1.rest".to_owned(),
        field: "library.v1.field".to_owned(),
        packages: vec!["library.v1".to_owned()],
        ok: |path| path.starts_with("/v1/books") && !path.ends_with("/tags"),
        ..Options::default()
    };
    fs::write(out.join("routes.rs"), gateway_rest_build::routes(&pool, &options))?;
    fs::write(out.join("openapi.json"), openapi_text(&openapi(&pool, &options)))?;
    fs::write(out.join("descriptors.bin"), encoded)?;
    Ok(())
}

fn openapi(pool: &DescriptorPool, options: &Options) -> serde_json::Value {
    let open = |scheme: &str, scopes: &[&str]| Requirement {
        scheme: scheme.to_owned(),
        scopes: scopes.iter().map(|scope| (*scope).to_owned()).collect(),
    };
    let access = |method: &prost_reflect::MethodDescriptor, place: usize| match method.name() {
        "GetCover" => Access::default(),
        // Each binding has a different rule.
        "GetBook" if place > 0 => Access { alternatives: vec![open("librarian", &[])] },
        _ => Access {
            alternatives: vec![open("reader", &["books"]), open("reader", &["all", "most"])],
        },
    };
    let info = Info {
        security_schemes: vec![
            ("reader".to_owned(), bearer("JWT", "A reader's card.")),
            ("librarian".to_owned(), bearer("JWT", "A librarian's card.")),
        ],
        access: &access,
        documents: vec![("Note".to_owned(), serde_json::json!({"type": "object"}))],
        ..Info::new("Library", "1.0.0")
    };
    gateway_rest_build::openapi(pool, options, &info)
}
