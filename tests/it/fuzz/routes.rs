//! The HTTP bindings and access rules of each RPC, read from the descriptors.

use std::borrow::Cow;

use prost_reflect::{
    DescriptorPool, DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, MethodDescriptor,
    Value,
};

/// One HTTP binding of an RPC.
#[derive(Clone)]
pub(crate) struct Route {
    /// `/package.Service/Method`.
    pub(crate) rpc: String,
    pub(crate) verb: String,
    /// The template of the path.
    pub(crate) path: String,
    /// The field that the body fills; `*` for all fields that the path does not fill; empty for
    /// none.
    pub(crate) body: String,
    /// The field mask that the keys of a PATCH body determine; empty for none.
    pub(crate) mask: String,
    pub(crate) input: MessageDescriptor,
    /// Whether the operation is always refused, with status 405.
    pub(crate) refused: bool,
    /// Whether a caller may make only a few such calls, valid or invalid (429 above the limit).
    pub(crate) limited: bool,
}

impl Route {
    /// Returns the names in the braces of the path.
    pub(crate) fn variables(&self) -> Vec<&str> {
        let parts = self.path.split('{').skip(1);
        parts.filter_map(|part| part.split(['}', '=']).next()).collect()
    }

    /// Returns the fields that the body may have: the message's fields, except the fields that the
    /// path fills.
    pub(crate) fn body_fields(&self) -> Vec<FieldDescriptor> {
        match self.body.as_str() {
            "" => Vec::new(),
            "*" => {
                let taken = self.variables();
                let free = |field: &FieldDescriptor| {
                    !taken.contains(&field.name()) && field.name() != self.mask
                };
                self.input.fields().filter(free).collect()
            }
            name => self
                .input
                .get_field_by_name(name)
                .and_then(|field| field.kind().as_message().cloned())
                .map(|message| message.fields().collect())
                .unwrap_or_default(),
        }
    }

    /// Returns the fields that the query may have: scalars that neither the path nor the body
    /// fills.
    pub(crate) fn query_fields(&self) -> Vec<FieldDescriptor> {
        if self.body == "*" {
            return Vec::new();
        }
        let taken = self.variables();
        let free = |field: &FieldDescriptor| {
            let name = field.name();
            !taken.contains(&name) && name != self.body && name != self.mask
        };
        self.input.fields().filter(free).collect()
    }

    /// Returns whether the record is changed in part: fields that the body leaves out keep their
    /// values.
    pub(crate) fn is_partial(&self) -> bool {
        !self.mask.is_empty()
    }

    /// Returns the collection at the start of the path: `/api/v1/tools` for `/api/v1/tools/{id}/x`.
    pub(crate) fn collection(&self) -> &str {
        self.path.split("/{").next().unwrap_or_default()
    }
}

/// Returns the API's descriptors.
pub(crate) fn pool() -> DescriptorPool {
    DescriptorPool::decode(authority_model::DESCRIPTORS).unwrap()
}

/// Returns every RPC of the API.
pub(crate) fn methods(pool: &DescriptorPool) -> Vec<MethodDescriptor> {
    let ours = |method: &MethodDescriptor| method.full_name().starts_with("authority.");
    pool.services().flatten_methods().filter(ours).collect()
}

trait FlattenMethods {
    fn flatten_methods(self) -> impl Iterator<Item = MethodDescriptor>;
}

impl<I: Iterator<Item = prost_reflect::ServiceDescriptor>> FlattenMethods for I {
    fn flatten_methods(self) -> impl Iterator<Item = MethodDescriptor> {
        self.flat_map(|service| service.methods().collect::<Vec<_>>())
    }
}

/// Returns the gRPC path of an RPC.
pub(crate) fn rpc(method: &MethodDescriptor) -> String {
    format!("/{}/{}", method.parent_service().full_name(), method.name())
}

/// Returns every HTTP binding of every RPC.
pub(crate) fn routes(pool: &DescriptorPool) -> Vec<Route> {
    methods(pool).iter().flat_map(|method| bindings(pool, method)).collect()
}

/// Returns whether the method is declared to be always refused.
pub(crate) fn is_refused(pool: &DescriptorPool, method: &MethodDescriptor) -> bool {
    declares(pool, method, 405)
}

/// Returns whether the method is declared to limit the number of calls.
pub(crate) fn is_limited(pool: &DescriptorPool, method: &MethodDescriptor) -> bool {
    declares(pool, method, 429)
}

fn declares(pool: &DescriptorPool, method: &MethodDescriptor, refusal: i32) -> bool {
    let rest = option(pool, &method.options(), "authority.rest.v1.rest");
    let refusals = rest.and_then(|rest| rest.get_field_by_name("refusals").map(Cow::into_owned));
    let refusals = refusals.as_ref().and_then(Value::as_list);
    refusals.is_some_and(|all| all.iter().any(|status| status.as_i32() == Some(refusal)))
}

fn bindings(pool: &DescriptorPool, method: &MethodDescriptor) -> Vec<Route> {
    let Some(rule) = option(pool, &method.options(), "google.api.http") else { return Vec::new() };
    let rest = option(pool, &method.options(), "authority.rest.v1.rest");
    let mask = rest.map(|rest| text(&rest, "mask")).unwrap_or_default();
    let mut rules = vec![rule.clone()];
    if let Some(more) = rule.get_field_by_name("additional_bindings") {
        rules.extend(more.as_list().into_iter().flatten().filter_map(Value::as_message).cloned());
    }
    let route = |rule: &DynamicMessage| {
        let verb = ["get", "post", "patch", "delete", "put"]
            .into_iter()
            .find(|verb| rule.has_field_by_name(verb))?;
        Some(Route {
            rpc: rpc(method),
            verb: verb.to_uppercase(),
            path: text(rule, verb),
            body: text(rule, "body"),
            mask: mask.clone(),
            input: method.input(),
            refused: is_refused(pool, method),
            limited: is_limited(pool, method),
        })
    };
    rules.iter().filter_map(route).collect()
}

/// The validation rules of one field.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules {
    pub(crate) required: bool,
    /// Whether only the server sets the field.
    pub(crate) output_only: bool,
    pub(crate) immutable: bool,
    pub(crate) one_of: Vec<String>,
    pub(crate) pattern: Option<String>,
    pub(crate) email: bool,
    pub(crate) max_len: Option<usize>,
    pub(crate) max_items: Option<usize>,
    pub(crate) unique: bool,
    pub(crate) least: Option<i64>,
    pub(crate) most: Option<i64>,
    /// The rules for the items of a list.
    pub(crate) items: Option<Box<Rules>>,
}

impl Rules {
    pub(crate) fn of(field: &FieldDescriptor) -> Self {
        let pool = field.parent_pool();
        let options = field.options();
        let mut rules = option(pool, &options, "buf.validate.field")
            .map(|found| Self::read(&found))
            .unwrap_or_default();
        for behaviour in behaviours(pool, &options) {
            rules.output_only |= behaviour == "OUTPUT_ONLY";
            rules.immutable |= behaviour == "IMMUTABLE";
        }
        rules
    }

    /// Returns whether the field rejects the empty string. It does if it has a closed set of values
    /// or a pattern, is required, or identifies something. Free text may be empty.
    pub(crate) fn refuse_empty(&self, field: &FieldDescriptor) -> bool {
        let identifies = ["external_subject", "subject", "purpose"].contains(&field.name())
            || field.name().ends_with("_id");
        let ruled = self.required || self.email || self.pattern.is_some();
        (ruled || identifies || !self.one_of.is_empty()) && !self.output_only
    }

    fn read(found: &DynamicMessage) -> Self {
        let mut rules = Self { required: flag(found, "required"), ..Self::default() };
        if let Some(string) = part(found, "string") {
            rules.one_of = texts(&string, "in");
            rules.pattern = Some(text(&string, "pattern")).filter(|pattern| !pattern.is_empty());
            rules.email = flag(&string, "email");
            rules.max_len = size(&string, "max_len");
        }
        if let Some(list) = part(found, "repeated") {
            rules.max_items = size(&list, "max_items");
            rules.unique = flag(&list, "unique");
            rules.items = part(&list, "items").map(|items| Box::new(Self::read(&items)));
        }
        for kind in ["int32", "uint32"] {
            if let Some(number) = part(found, kind) {
                rules.least = integer(&number, "gte");
                rules.most = integer(&number, "lte");
            }
        }
        rules
    }
}

/// Returns the field's message type, if the API defines it.
pub(crate) fn message(field: &FieldDescriptor) -> Option<MessageDescriptor> {
    let Kind::Message(message) = field.kind() else { return None };
    message.full_name().starts_with("authority.").then_some(message)
}

fn option(pool: &DescriptorPool, options: &DynamicMessage, name: &str) -> Option<DynamicMessage> {
    let extension = pool.get_extension_by_name(name)?;
    let value = options.has_extension(&extension).then(|| options.get_extension(&extension))?;
    value.as_message().cloned()
}

fn behaviours(pool: &DescriptorPool, options: &DynamicMessage) -> Vec<String> {
    let Some(extension) = pool.get_extension_by_name("google.api.field_behavior") else {
        return Vec::new();
    };
    let Kind::Enum(words) = extension.kind() else { return Vec::new() };
    let list = options.get_extension(&extension);
    let numbers = list.as_list().into_iter().flatten().filter_map(Value::as_enum_number);
    let named = numbers.filter_map(|number| words.get_value(number));
    named.map(|word| word.name().to_owned()).collect()
}

fn part(message: &DynamicMessage, name: &str) -> Option<DynamicMessage> {
    if !message.has_field_by_name(name) {
        return None;
    }
    message.get_field_by_name(name)?.as_message().cloned()
}

fn text(message: &DynamicMessage, name: &str) -> String {
    let value = message.get_field_by_name(name);
    value.and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

fn texts(message: &DynamicMessage, name: &str) -> Vec<String> {
    let value = message.get_field_by_name(name);
    let list = value.as_ref().and_then(|value| value.as_list()).unwrap_or_default();
    list.iter().filter_map(|item| item.as_str().map(str::to_owned)).collect()
}

fn flag(message: &DynamicMessage, name: &str) -> bool {
    message.get_field_by_name(name).and_then(|value| value.as_bool()).unwrap_or_default()
}

fn integer(message: &DynamicMessage, name: &str) -> Option<i64> {
    if !message.has_field_by_name(name) {
        return None;
    }
    match message.get_field_by_name(name)?.as_ref() {
        Value::I32(number) => Some((*number).into()),
        Value::U32(number) => Some((*number).into()),
        Value::I64(number) => Some(*number),
        Value::U64(number) => i64::try_from(*number).ok(),
        _ => None,
    }
}

fn size(message: &DynamicMessage, name: &str) -> Option<usize> {
    integer(message, name).and_then(|number| usize::try_from(number).ok())
}
