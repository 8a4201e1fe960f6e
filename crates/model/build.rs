//! Compiles `../../proto` (without protoc) and generates code from its annotations.

use std::{
    env,
    error::Error,
    fs, io,
    path::{Path, PathBuf},
};

use prost_reflect::DescriptorPool;

const ROOT: &str = "../../proto";

#[expect(
    clippy::disallowed_methods,
    reason = "cargo passes data to build scripts in the environment"
)]
fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed={ROOT}");
    println!("cargo::rerun-if-changed=build.rs");
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

    authority_model_build::messages(&pool, compiler.file_descriptor_set())?;
    for (name, code) in authority_model_build::code(&pool) {
        fs::write(out.join(name), code)?;
    }
    let descriptors = out.join("descriptors.bin");
    fs::write(&descriptors, &encoded)?;
    println!("cargo::metadata=descriptors={}", descriptors.display());
    Ok(())
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
