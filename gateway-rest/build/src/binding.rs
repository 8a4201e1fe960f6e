//! The HTTP bindings and the REST option of a method, validated.

use std::collections::BTreeSet;

use prost_reflect::{
    DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, MethodDescriptor, ServiceDescriptor,
    Value,
};

use crate::{Options, descriptor, template::Template};

/// One HTTP method and path of an RPC.
pub(crate) struct Binding {
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) template: Template,
    pub(crate) body: String,
    pub(crate) response_body: String,
    /// Whether a success body begins with `"ok": true`.
    pub(crate) ok: bool,
}

/// The REST option of a method; all fields are empty without the option.
#[derive(Default)]
pub(crate) struct Rest {
    pub(crate) status: u16,
    pub(crate) envelope: String,
    pub(crate) mask: String,
    pub(crate) clear: String,
    pub(crate) refusals: Vec<u16>,
    pub(crate) raw: String,
    pub(crate) content_type: String,
    pub(crate) max_age_seconds: u32,
    pub(crate) documents: Vec<String>,
    pub(crate) statuses: Vec<u16>,
    pub(crate) events: Option<Events>,
    pub(crate) body_bytes: u32,
    pub(crate) required: Vec<String>,
    pub(crate) location: Vec<String>,
    pub(crate) states: Vec<String>,
    pub(crate) csv: Vec<String>,
}

/// The fields of a stream as server-sent events.
pub(crate) struct Events {
    pub(crate) id: String,
    pub(crate) data: String,
    pub(crate) resume: String,
}

impl Rest {
    pub(crate) fn of(method: &MethodDescriptor, options: &Options) -> Self {
        let at = method.full_name();
        let value = descriptor::option(method.parent_pool(), &method.options(), &options.rest);
        let Some(rest) = value.as_ref().and_then(Value::as_message) else {
            return Self { status: 200, ..Self::default() };
        };
        let status =
            |number: i32| u16::try_from(number).ok().filter(|status| (100..600).contains(status));
        let written = match descriptor::integer(rest, "status") {
            0 => 200,
            number => status(number).unwrap_or_else(|| panic!("{at}: status {number}")),
        };
        let listed = |name: &str| -> Vec<u16> {
            let list = rest.get_field_by_name(name);
            let numbers = list.iter().filter_map(|list| list.as_list()).flatten();
            numbers
                .filter_map(Value::as_i32)
                .map(|n| status(n).unwrap_or_else(|| panic!("{at}: status {n} in {name}")))
                .collect()
        };
        let rest = Self {
            status: written,
            envelope: descriptor::text(rest, "envelope"),
            mask: descriptor::text(rest, "mask"),
            clear: descriptor::text(rest, "clear"),
            refusals: listed("refusals"),
            statuses: listed("statuses"),
            events: descriptor::inner(rest, "events").map(|events| Events {
                id: descriptor::text(&events, "id"),
                data: descriptor::text(&events, "data"),
                resume: descriptor::text(&events, "resume"),
            }),
            raw: descriptor::text(rest, "raw"),
            documents: descriptor::texts(rest, "documents"),
            required: descriptor::texts(rest, "required"),
            location: descriptor::texts(rest, "location"),
            states: descriptor::texts(rest, "states"),
            csv: descriptor::texts(rest, "csv"),
            content_type: descriptor::text(rest, "content_type"),
            max_age_seconds: descriptor::integer(rest, "max_age_seconds")
                .try_into()
                .unwrap_or_else(|_| panic!("{at}: max_age_seconds is negative")),
            body_bytes: descriptor::integer(rest, "body_bytes")
                .try_into()
                .unwrap_or_else(|_| panic!("{at}: body_bytes is negative")),
        };
        rest.check(method);
        rest
    }

    fn check(&self, method: &MethodDescriptor) {
        let at = method.full_name();
        for (role, name) in [("mask", &self.mask), ("clear", &self.clear)] {
            if name.is_empty() {
                continue;
            }
            let mask = field(&method.input(), name, at, role);
            let is_mask = mask
                .kind()
                .as_message()
                .is_some_and(|message| message.full_name() == "google.protobuf.FieldMask");
            assert!(is_mask && !mask.is_list(), "{at}: {role} `{name}` is not a FieldMask");
        }
        assert!(self.clear.is_empty() || !self.mask.is_empty(), "{at}: `clear` needs a `mask`");
        let streams = self.events.is_none() || method.is_server_streaming();
        assert!(streams, "{at}: only a stream is sent as `events`");
        let has_rows = self.csv.is_empty() || method.is_server_streaming();
        assert!(has_rows, "{at}: only a stream is sent as `csv`");
        if self.raw.is_empty() {
            assert!(self.content_type.is_empty(), "{at}: `content_type` needs `raw`");
        } else {
            assert!(!method.is_server_streaming(), "{at}: a stream has no raw body");
            field(&method.output(), &self.raw, at, "raw");
        }
    }
}

/// Returns the bindings of a method; empty without an annotation.
pub(crate) fn bindings(method: &MethodDescriptor, options: &Options) -> Vec<Binding> {
    let mut found = Vec::new();
    let http = descriptor::option(method.parent_pool(), &method.options(), "google.api.http");
    if let Some(rule) = http.as_ref().and_then(Value::as_message) {
        collect(method, rule, options, &mut found);
    }
    let at = method.full_name();
    if !found.is_empty() {
        assert!(!method.is_client_streaming(), "{at}: a stream of requests has no REST form");
        let rest = Rest::of(method, options);
        for binding in &found {
            binding.check(method, &rest, options);
        }
    }
    found
}

/// Returns the shapes of the paths that GET reads.
pub(crate) fn readable(services: &[ServiceDescriptor], options: &Options) -> BTreeSet<String> {
    let methods = services.iter().flat_map(|service| service.methods().collect::<Vec<_>>());
    let all = methods.flat_map(|method| bindings(&method, options));
    all.filter(|binding| binding.method == "GET").map(|one| one.template.shape()).collect()
}

fn collect(
    method: &MethodDescriptor,
    rule: &DynamicMessage,
    options: &Options,
    found: &mut Vec<Binding>,
) {
    let at = method.full_name();
    let pattern = ["get", "put", "post", "delete", "patch", "custom"]
        .into_iter()
        .find(|pattern| rule.has_field_by_name(pattern))
        .unwrap_or_else(|| panic!("{at}: google.api.http without a path"));
    let (verb, path) = if pattern == "custom" {
        let custom = rule.get_field_by_name("custom");
        let custom = custom.as_ref().and_then(|custom| custom.as_message());
        let read = |name| custom.map(|custom| descriptor::text(custom, name)).unwrap_or_default();
        (read("kind"), read("path"))
    } else {
        (pattern.to_uppercase(), descriptor::text(rule, pattern))
    };
    let is_method = !verb.is_empty() && verb.bytes().all(|byte| byte.is_ascii_uppercase());
    assert!(is_method && verb != "HEAD", "{at}: `{verb}` is not a method; GET serves HEAD");
    let template = Template::parse(&path).unwrap_or_else(|why| panic!("{at}: `{path}` {why}"));
    let (body, response_body) =
        (descriptor::text(rule, "body"), descriptor::text(rule, "response_body"));
    let ok = (options.ok)(&path) && !method.is_server_streaming();
    found.push(Binding { method: verb, path, template, body, response_body, ok });
    let more = rule.get_field_by_name("additional_bindings");
    for rule in more.iter().filter_map(|more| more.as_list()).flatten() {
        let rule = rule.as_message().unwrap_or_else(|| panic!("{at}: no rule"));
        collect(method, rule, options, found);
    }
}

impl Binding {
    /// Whether GET reads a record that this binding creates, at its id below this path.
    pub(crate) fn has_location(&self, readable: &BTreeSet<String>) -> bool {
        let below = format!("{}/*", self.template.shape());
        self.method == "POST" && self.template.verb.is_empty() && readable.contains(&below)
    }

    fn check(&self, method: &MethodDescriptor, rest: &Rest, options: &Options) {
        let at = format!("{} ({} {})", method.full_name(), self.method, self.path);
        let (input, output) = (method.input(), method.output());
        for variable in &self.template.variables {
            let field = resolve(&input, &variable.path)
                .unwrap_or_else(|| panic!("{at}: no field `{}` for the path", variable.path));
            let scalar = descriptor::plain_message(&field.kind()).is_none();
            let single = !field.is_list() && !field.is_map();
            assert!(single && scalar, "{at}: `{}` cannot stand in a path", variable.path);
        }
        let names: Vec<_> = self.template.variables.iter().map(|v| &v.path).collect();
        let twice = names.iter().enumerate().any(|(place, name)| names[..place].contains(name));
        assert!(!twice, "{at}: a variable occurs twice in the path");
        if !matches!(self.body.as_str(), "" | "*") {
            field(&input, &self.body, &at, "body");
            assert!(self.body != rest.mask, "{at}: the mask is not the body");
        }
        self.check_bounds(method, rest, options);
        if !self.response_body.is_empty() {
            field(&output, &self.response_body, &at, "response_body");
            let wrapped = !self.ok || !rest.envelope.is_empty();
            assert!(wrapped, "{at}: `ok` beside a response_body needs an envelope");
            assert!(rest.raw.is_empty(), "{at}: `raw` and `response_body` exclude one another");
        }
        if !rest.raw.is_empty() {
            // Without `ok`, the body is the document and nothing else.
            let wrapped = !self.ok || !rest.envelope.is_empty();
            assert!(wrapped, "{at}: `ok` beside a raw body needs an envelope");
        }
        let masked = rest.mask.is_empty() || !self.body.is_empty();
        assert!(masked, "{at}: a mask is filled from the body, and there is none");
    }

    /// Checks that a patch with bounding lists has a field to clear them.
    fn check_bounds(&self, method: &MethodDescriptor, rest: &Rest, options: &Options) {
        let of_body = method.input().get_field_by_name(&self.body);
        let Some(Kind::Message(body)) = of_body.map(|field| field.kind()) else { return };
        let bounded = body.fields().any(|field| descriptor::bounds(&field, options));
        assert!(
            !bounded || rest.mask.is_empty() || !rest.clear.is_empty(),
            "{}: name the `clear` mask of the lists that bound",
            method.full_name()
        );
    }
}

/// Returns the field at a dotted path of messages.
pub(crate) fn resolve(message: &MessageDescriptor, path: &str) -> Option<FieldDescriptor> {
    let mut message = message.clone();
    let mut parts = path.split('.').peekable();
    loop {
        let field = message.get_field_by_name(parts.next()?)?;
        if parts.peek().is_none() {
            return Some(field);
        }
        match field.kind() {
            Kind::Message(inner) if !field.is_list() && !field.is_map() => message = inner,
            _ => return None,
        }
    }
}

pub(crate) fn field(
    message: &MessageDescriptor,
    name: &str,
    at: &str,
    role: &str,
) -> FieldDescriptor {
    message.get_field_by_name(name).unwrap_or_else(|| {
        panic!("{at}: {role} `{name}` is not a field of {}", message.full_name())
    })
}
