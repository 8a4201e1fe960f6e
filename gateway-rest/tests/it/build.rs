//! Errors in a proto stop the build with a message that names the place.

use std::panic::catch_unwind;

use gateway_rest_build::{Options, routes, shapes};
use prost_reflect::DescriptorPool;
use protox::file::{
    ChainFileResolver, File, FileResolver, GoogleFileResolver, IncludeFileResolver,
};

struct One(String);

impl FileResolver for One {
    fn open_file(&self, name: &str) -> Result<File, protox::Error> {
        match name {
            "one.proto" => File::from_source(name, &self.0),
            _ => Err(protox::Error::file_not_found(name)),
        }
    }
}

fn pool(messages: &str, methods: &str) -> DescriptorPool {
    let source = format!(
        "syntax = \"proto3\"; package one.v1;
         import \"google/api/annotations.proto\"; import \"library/v1/options.proto\";
         import \"google/protobuf/any.proto\"; import \"google/protobuf/wrappers.proto\";
         message Inner {{ string id = 1; }}
         message M {{ string id = 1; Inner inner = 2; repeated string list = 3; int32 n = 4; }}
         {messages} service S {{ {methods} }}"
    );
    let mut resolver = ChainFileResolver::new();
    resolver.add(One(source));
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/proto");
    resolver.add(IncludeFileResolver::new(root.into()));
    resolver.add(GoogleFileResolver::new());
    let mut compiler = protox::Compiler::with_file_resolver(resolver);
    compiler.include_imports(true).open_files(["one.proto"]).unwrap();
    DescriptorPool::decode(compiler.encode_file_descriptor_set().as_slice()).unwrap()
}

fn options() -> Options {
    Options {
        rest: "library.v1.rest".to_owned(),
        packages: vec!["one".to_owned()],
        ok: |path| path == "/ok",
        ..Options::default()
    }
}

/// Returns the build's panic message for a method with these options.
fn complaint(http: &str, rest: &str) -> String {
    let options = format!(
        "option (google.api.http) = {{ {http} }}; option (library.v1.rest) = {{ {rest} }};"
    );
    complaint_of("", &format!("rpc Do(M) returns (M) {{ {options} }}"))
}

fn complaint_of(messages: &str, methods: &str) -> String {
    let pool = pool(messages, methods);
    let panic = catch_unwind(|| routes(&pool, &options())).expect_err("a panic");
    panic.downcast_ref::<String>().cloned().unwrap_or_default()
}

#[test]
fn names_must_be_there() {
    for (http, rest, expected) in [
        ("get: '/x/{nope}'", "", "no field `nope` for the path"),
        ("get: '/x/{inner.nope}'", "", "no field `inner.nope` for the path"),
        ("get: '/x/{list.id}'", "", "no field `list.id` for the path"),
        ("get: '/x/{inner}'", "", "`inner` cannot stand in a path"),
        ("get: '/x/{list}'", "", "`list` cannot stand in a path"),
        ("get: '/x/{id}/{id}'", "", "a variable occurs twice"),
        ("post: '/x' body: 'nope'", "", "body `nope` is not a field of one.v1.M"),
        ("get: '/x' response_body: 'nope'", "", "response_body `nope` is not a field of one.v1.M"),
        ("patch: '/x' body: '*'", "mask: 'nope'", "mask `nope` is not a field of one.v1.M"),
        ("patch: '/x' body: '*'", "mask: 'id'", "mask `id` is not a FieldMask"),
        ("get: '/x'", "raw: 'nope'", "raw `nope` is not a field of one.v1.M"),
        ("get: '/x'", "content_type: 'text/html'", "`content_type` needs `raw`"),
        ("get: '/ok'", "raw: 'id'", "`ok` beside a raw body needs an envelope"),
        ("get: '/x'", "status: 99", "status 99"),
        ("get: '/x'", "refusals: [1000]", "status 1000 in refusals"),
        ("get: 'x'", "", "`x` does not begin with `/`"),
        ("get: '/x/{id}.json'", "", "`.json` after a variable"),
        ("body: '*'", "", "google.api.http without a path"),
        ("custom { kind: 'HEAD' path: '/x' }", "", "`HEAD` is not a method; GET serves HEAD"),
        ("get: '/ok' response_body: 'id'", "", "`ok` beside a response_body needs an envelope"),
    ] {
        let complaint = complaint(http, rest);
        assert!(complaint.contains("one.v1.S.Do"), "{complaint}");
        assert!(complaint.contains(expected), "{http} {rest}: {complaint}");
    }
}

#[test]
fn two_methods_cannot_have_one_path() {
    let method = |name: &str, path: &str| {
        format!("rpc {name}(M) returns (M) {{ option (google.api.http) = {{ {path} }}; }}")
    };
    let twice = method("A", "get: '/x/{id}:do'") + &method("B", "get: '/x/{inner.id}:do'");
    let expected = "GET /x/{inner.id}:do is both one.v1.S.A and one.v1.S.B";
    assert_eq!(complaint_of("", &twice), expected);
    let apart = method("A", "get: '/x/{id}'") + &method("B", "post: '/x/{id}'");
    let apart = apart + &method("C", "get: '/x/{id}:do'") + &method("D", "get: '/x/a'");
    assert!(routes(&pool("", &apart), &options()).contains("/one.v1.S/D"));
}

#[test]
fn wide_integers_stay_out_of_rest_but_have_shapes() {
    let method = "rpc Do(W) returns (M) { option (google.api.http) = { get: '/x' }; }";
    for field in ["int64 wide = 1;", "google.protobuf.UInt64Value wide = 1;"] {
        let messages = format!("message V {{ {field} }} message W {{ repeated V v = 1; }}");
        let complaint = complaint_of(&messages, method);
        assert!(complaint.starts_with("one.v1.V.wide: no 64-bit integer"), "{complaint}");
        assert!(shapes(&pool(&messages, method), &options()).contains("SHAPE_ONE_V1_V"));
    }
}

#[test]
fn what_has_no_form_is_refused() {
    let stream = "rpc Do(stream M) returns (M) { option (google.api.http) = { get: '/x' }; }";
    assert!(complaint_of("", stream).contains("a stream of requests has no REST form"));
    let any = "message W { google.protobuf.Any any = 1; }";
    assert!(complaint_of(any, "").contains("one.v1.W.any: google.protobuf.Any"));
}
