//! Compares the code generated for `sample.proto` with `tests/sample/`.
//!
//! To update that folder, run `AUTHORITY_UPDATE=1 cargo test -p authority-model-build`.

use std::{env, fs, path::Path};

use prost_reflect::DescriptorPool;

#[expect(clippy::disallowed_methods, reason = "a switch of the test run, not a setting")]
#[test]
fn a_sample_generates_the_code_in_the_repository() {
    let mut compiler = protox::Compiler::new(["tests", "../../../proto"]).unwrap();
    compiler.include_imports(true).open_files(["sample.proto"]).unwrap();
    let pool = DescriptorPool::decode(compiler.encode_file_descriptor_set().as_slice()).unwrap();
    for (name, code) in authority_model_build::code(&pool) {
        let path = Path::new("tests/sample").join(name);
        let code = format!("//! @generated from sample.proto.\n\n{code}");
        if env::var_os("AUTHORITY_UPDATE").is_some() {
            fs::write(path, code).unwrap();
            continue;
        }
        let kept = fs::read_to_string(&path).unwrap();
        let differs = kept.lines().zip(code.lines()).find(|(kept, code)| kept != code);
        assert!(
            kept == code,
            "{}: run AUTHORITY_UPDATE=1 cargo test -p authority-model-build; first difference: \
             {differs:?}",
            path.display()
        );
    }
}
