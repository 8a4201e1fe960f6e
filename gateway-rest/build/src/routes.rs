//! Route tables: `static ROUTES`.

use std::{collections::BTreeMap, fmt::Write as _};

use prost_reflect::{DescriptorPool, Kind, MessageDescriptor, MethodDescriptor};

use crate::{
    Options,
    binding::{self, Binding, Rest},
    descriptor, shapes,
    template::Segment,
};

pub(crate) fn source(pool: &DescriptorPool, options: &Options) -> String {
    let runtime = &options.runtime;
    let mut code = format!(
        "/// Every HTTP binding of every method.\npub static ROUTES: &[{runtime}::Route] = &[\n"
    );
    let mut taken = BTreeMap::new();
    for service in descriptor::services(pool, options) {
        for method in service.methods() {
            for binding in binding::bindings(&method, options) {
                let key = format!("{} {}", binding.method, binding.template.shape());
                if let Some(other) = taken.insert(key, method.full_name().to_owned()) {
                    let path = format!("{} {}", binding.method, binding.path);
                    panic!("{path} is both {other} and {}", method.full_name());
                }
                refuse_wide(&method.input());
                refuse_wide(&method.output());
                code += &route(&method, &binding, options);
            }
        }
    }
    code + "];\n"
}

/// Most JSON readers parse numbers as doubles: 64-bit integers would be strings to some and wrong numbers
/// to others.
fn refuse_wide(message: &MessageDescriptor) {
    let mut reached = BTreeMap::new();
    shapes::reach(message, &mut reached);
    for field in reached.values().flat_map(descriptor::fields) {
        let kind = match field.kind() {
            Kind::Message(inner) => descriptor::wrapped(inner.full_name()),
            kind => Some(kind),
        };
        let wide = matches!(
            kind,
            Some(Kind::Int64 | Kind::Uint64 | Kind::Sint64 | Kind::Fixed64 | Kind::Sfixed64)
        );
        let at = field.full_name();
        assert!(!wide, "{at}: no 64-bit integer over REST; use int32 or decimal text");
    }
}

fn route(method: &MethodDescriptor, binding: &Binding, options: &Options) -> String {
    let runtime = &options.runtime;
    let (input, output) = (method.input(), method.output());
    let rest = Rest::of(method, options);
    let mut code = format!("    {runtime}::Route {{\n");
    let mut member = |name: &str, value: String| {
        let _ = writeln!(code, "        {name}: {value},");
    };
    let rpc = format!("/{}/{}", method.parent_service().full_name(), method.name());
    member("rpc", format!("{rpc:?}"));
    member("method", format!("{:?}", binding.method));
    member("path", format!("{:?}", binding.path));
    member("segments", segments(binding, runtime));
    member("verb", format!("{:?}", binding.template.verb));
    member("variables", variables(binding, &input, runtime));
    member("input", format!("&{}", shapes::name(&input)));
    member("output", format!("&{}", shapes::name(&output)));
    member(
        "body",
        match binding.body.as_str() {
            "" => format!("{runtime}::Body::None"),
            "*" => format!("{runtime}::Body::Whole"),
            name => format!("{runtime}::Body::Field({})", position(&input, name)),
        },
    );
    member("response_body", maybe(&output, &binding.response_body));
    member("mask", maybe(&input, &rest.mask));
    member("status", rest.status.to_string());
    member("envelope", format!("{:?}", rest.envelope));
    member("ok", rest.ok.to_string());
    member("raw", maybe(&output, &rest.raw));
    member("content_type", format!("{:?}", rest.content_type));
    member("max_age_seconds", rest.max_age_seconds.to_string());
    member("streams", method.is_server_streaming().to_string());
    code + "    },\n"
}

fn segments(binding: &Binding, runtime: &str) -> String {
    let segments = binding.template.segments.iter().map(|segment| match segment {
        Segment::Literal(text) => format!("{runtime}::Segment::Literal({text:?})"),
        Segment::One => format!("{runtime}::Segment::One"),
        Segment::Rest => format!("{runtime}::Segment::Rest"),
    });
    format!("&[{}]", segments.collect::<Vec<_>>().join(", "))
}

fn variables(binding: &Binding, input: &MessageDescriptor, runtime: &str) -> String {
    let variables = binding.template.variables.iter().map(|variable| {
        format!(
            "{runtime}::Variable {{ path: {:?}, fields: &{:?}, segments: ({}, {}) }}",
            variable.path,
            way(input, &variable.path),
            variable.from,
            variable.to,
        )
    });
    format!("&[{}]", variables.collect::<Vec<_>>().join(", "))
}

/// A dotted path as positions.
fn way(message: &MessageDescriptor, path: &str) -> Vec<usize> {
    let mut message = message.clone();
    let mut way = Vec::new();
    for name in path.split('.') {
        way.push(position(&message, name));
        if let Some(Kind::Message(inner)) = message.get_field_by_name(name).map(|f| f.kind()) {
            message = inner;
        }
    }
    way
}

fn position(message: &MessageDescriptor, name: &str) -> usize {
    descriptor::fields(message)
        .iter()
        .position(|field| field.name() == name)
        .unwrap_or_else(|| panic!("{} has no field `{name}`", message.full_name()))
}

fn maybe(message: &MessageDescriptor, name: &str) -> String {
    if name.is_empty() { "None".to_owned() } else { format!("Some({})", position(message, name)) }
}
