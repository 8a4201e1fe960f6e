//! Route tables: `static ROUTES`.

use std::collections::BTreeMap;

use proc_macro2::TokenStream;
use prost_reflect::{DescriptorPool, Kind, MessageDescriptor, MethodDescriptor};
use quote::quote;

use crate::{
    Options,
    binding::{self, Binding, Rest},
    descriptor, shapes,
    source::literal,
    template::{Segment, Variable},
};

pub(crate) fn table(pool: &DescriptorPool, options: &Options) -> TokenStream {
    let mut taken = BTreeMap::new();
    let mut routes = Vec::new();
    let services = descriptor::services(pool, options);
    let readable = binding::readable(&services, options);
    for service in services {
        for method in service.methods() {
            for binding in binding::bindings(&method, options) {
                let key = format!("{} {}", binding.method, binding.template.shape());
                if let Some(other) = taken.insert(key, method.full_name().to_owned()) {
                    let path = format!("{} {}", binding.method, binding.path);
                    panic!("{path} is both {other} and {}", method.full_name());
                }
                refuse_wide(&method.input(), options);
                refuse_wide(&method.output(), options);
                let has_location = binding.has_location(&readable);
                routes.push(route(&method, &binding, has_location, options));
            }
        }
    }
    let runtime = options.runtime_path();
    quote! {
        #[doc = " Every HTTP binding of every method."]
        pub static ROUTES: &[#runtime::Route] = &[#(#routes),*];
    }
}

/// Refuses 64-bit integers. Most JSON readers parse numbers as doubles: the integers would be
/// strings to some readers and wrong numbers to others.
fn refuse_wide(message: &MessageDescriptor, options: &Options) {
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
        let narrow = !wide || descriptor::is_narrow(&field, options);
        assert!(
            narrow,
            "{at}: no 64-bit integer over REST; use int32, decimal text, or an int64 with `gte` and `lte` \
             of 53 bits"
        );
    }
}

fn route(
    method: &MethodDescriptor,
    binding: &Binding,
    has_location: bool,
    options: &Options,
) -> TokenStream {
    let runtime = options.runtime_path();
    let (input, output) = (method.input(), method.output());
    let Rest {
        status,
        envelope,
        mask,
        clear,
        raw,
        content_type,
        max_age_seconds,
        events,
        csv,
        body_bytes,
        location,
        ..
    } = Rest::of(method, options);
    let rpc = format!("/{}/{}", method.parent_service().full_name(), method.name());
    let Binding { method: verb, path, template, body, response_body, ok } = binding;
    // A raw body without `ok` is the document and nothing else.
    let envelope = if raw.is_empty() || *ok { envelope } else { String::new() };
    let custom_verb = &template.verb;
    let segments = template.segments.iter().map(|segment| match segment {
        Segment::Literal(text) => quote!(#runtime::Segment::Literal(#text)),
        Segment::One => quote!(#runtime::Segment::One),
        Segment::Rest => quote!(#runtime::Segment::Rest),
    });
    let variables = template.variables.iter().map(|of| variable(of, &input, &runtime));
    let body = match body.as_str() {
        "" => quote!(#runtime::Body::None),
        "*" => quote!(#runtime::Body::Whole),
        name => {
            let field = literal(position(&input, name));
            quote!(#runtime::Body::Field(#field))
        }
    };
    let [response_body, raw] = [response_body, &raw].map(|name| maybe(&output, name));
    let [mask, clear] = [mask, clear].map(|name| maybe(&input, &name));
    let events = server_sent(events, &input, &output, &runtime);
    let csv = csv.iter().map(|path| column(path, &output, &runtime));
    let (status, max_age_seconds) = (literal(status), literal(max_age_seconds));
    let (body_bytes, streams) = (literal(body_bytes), method.is_server_streaming());
    let location = location.iter().map(|name| literal(position(&output, name)));
    let location = if has_location { quote!(Some(&[#(#location),*])) } else { quote!(None) };
    let (input, output) = (shapes::name(&input), shapes::name(&output));
    quote! {
        #runtime::Route {
            rpc: #rpc,
            method: #verb,
            path: #path,
            segments: &[#(#segments),*],
            verb: #custom_verb,
            variables: &[#(#variables),*],
            input: &#input,
            output: &#output,
            body: #body,
            response_body: #response_body,
            mask: #mask,
            clear: #clear,
            status: #status,
            envelope: #envelope,
            ok: #ok,
            raw: #raw,
            content_type: #content_type,
            max_age_seconds: #max_age_seconds,
            streams: #streams,
            events: #events,
            csv: &[#(#csv),*],
            body_bytes: #body_bytes,
            location: #location,
        }
    }
}

/// Writes a field that the path sets.
fn variable(of: &Variable, input: &MessageDescriptor, runtime: &TokenStream) -> TokenStream {
    let path = &of.path;
    let fields = positions(input, path).into_iter().map(literal);
    let (from, to) = (literal(of.from), literal(of.to));
    quote! {
        #runtime::Variable { path: #path, fields: &[#(#fields),*], segments: (#from, #to) }
    }
}

/// Writes the fields of a stream's messages as server-sent events.
fn server_sent(
    events: Option<binding::Events>,
    input: &MessageDescriptor,
    output: &MessageDescriptor,
    runtime: &TokenStream,
) -> TokenStream {
    let Some(binding::Events { id, data, resume }) = events else { return quote!(None) };
    let [id, data] = [id, data].map(|name| literal(position(output, &name)));
    let resume = literal(position(input, &resume));
    quote!(Some(#runtime::Events { id: #id, data: #data, resume: #resume }))
}

/// Writes a column of a stream as CSV.
fn column(path: &str, output: &MessageDescriptor, runtime: &TokenStream) -> TokenStream {
    let name = path.rsplit('.').next().unwrap_or(path);
    let fields = positions(output, path).into_iter().map(literal);
    quote!(#runtime::Column { name: #name, fields: &[#(#fields),*] })
}

/// Returns a dotted path as positions.
fn positions(message: &MessageDescriptor, path: &str) -> Vec<usize> {
    let mut message = message.clone();
    let mut positions = Vec::new();
    for name in path.split('.') {
        positions.push(position(&message, name));
        if let Some(Kind::Message(inner)) = message.get_field_by_name(name).map(|f| f.kind()) {
            message = inner;
        }
    }
    positions
}

fn position(message: &MessageDescriptor, name: &str) -> usize {
    descriptor::fields(message)
        .iter()
        .position(|field| field.name() == name)
        .unwrap_or_else(|| panic!("{} has no field `{name}`", message.full_name()))
}

fn maybe(message: &MessageDescriptor, name: &str) -> TokenStream {
    if name.is_empty() {
        return quote!(None);
    }
    let position = literal(position(message, name));
    quote!(Some(#position))
}
