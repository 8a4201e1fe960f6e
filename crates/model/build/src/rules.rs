//! Translates `buf.validate` to Rust: one `Validate` implementation per message.

use proc_macro2::{Ident, TokenStream};
use prost_reflect::{DynamicMessage, FieldDescriptor, Kind, MessageDescriptor, OneofDescriptor};
use quote::{format_ident, quote};

use crate::{names, options, packages::is_ours};

pub(crate) fn of(message: &MessageDescriptor) -> TokenStream {
    let fields = message.fields();
    let fields =
        fields.filter(|field| field.containing_oneof().is_none() || options::is_nullable(field));
    let oneofs = message.oneofs().filter(|oneof| !oneof.is_synthetic());
    let checks: TokenStream = fields
        .map(|field| check(&field))
        .chain(oneofs.map(|oneof| choice(message, &oneof)))
        .collect();
    let path = names::path(message);
    // Some messages have no rules, which leaves the parameter unused.
    let found = if checks.is_empty() { quote!(_) } else { quote!(found) };
    quote! {
        impl Validate for #path {
            fn validate(&self, #found: &mut Violations) { #checks }
        }
    }
}

/// Checks messages inside a oneof. Scalars in a oneof have no rules.
fn choice(message: &MessageDescriptor, oneof: &OneofDescriptor) -> TokenStream {
    let path = names::oneof(message, oneof.name());
    let arms = oneof.fields().filter(is_our_message).map(|field| {
        let (name, variant) = (field.name(), format_ident!("{}", names::camel(field.name())));
        quote!(Some(#path::#variant(inner)) => found.within(#name, |found| inner.validate(found)),)
    });
    let arms: TokenStream = arms.collect();
    if arms.is_empty() {
        return arms;
    }
    let member = format_ident!("{}", oneof.name());
    quote!(match &self.#member { #arms _ => {} })
}

fn is_our_message(field: &FieldDescriptor) -> bool {
    field.kind().as_message().is_some_and(|kind| is_ours(kind.package_name()))
}

/// The rules of one field. For a list, the rules of its items.
struct Rules(Option<DynamicMessage>);

impl Rules {
    fn is_required(&self) -> bool {
        self.0.as_ref().is_some_and(|rules| options::flag(rules, "required"))
    }

    fn of(&self, kind: &str) -> Option<DynamicMessage> {
        options::message(self.0.as_ref()?, kind)
    }
}

/// A field in generated code: its name in violations and its name in Rust.
struct Member<'a> {
    field: &'a FieldDescriptor,
    name: &'a str,
    rust: Ident,
    rules: Rules,
}

fn check(field: &FieldDescriptor) -> TokenStream {
    let value = options::extension(&field.options(), "buf.validate.field");
    let rules = Rules(value.and_then(|value| value.as_message().cloned()));
    let member = Member { field, name: field.name(), rust: names::field(field), rules };
    if field.is_map() {
        return member.map();
    }
    if field.is_list() {
        return member.list();
    }
    match field.kind() {
        Kind::String => member.text(),
        Kind::Int32 | Kind::Int64 | Kind::Uint32 => member.integer(),
        Kind::Double => member.double(),
        Kind::Bytes => statement(member.length("bytes", "len")),
        Kind::Enum(_) => member.word(),
        Kind::Message(kind) => member.message(&kind),
        _ => TokenStream::new(),
    }
}

fn statement(check: Option<TokenStream>) -> TokenStream {
    check.map(|check| quote!(#check;)).unwrap_or_default()
}

impl Member<'_> {
    /// Generates the check that a required field is present; `is` is the condition for presence.
    fn required(&self, is: &TokenStream) -> TokenStream {
        let name = self.name;
        if self.rules.is_required() {
            quote!(found.present(#name, #is);)
        } else {
            TokenStream::new()
        }
    }

    fn required_items(&self) -> TokenStream {
        let rust = &self.rust;
        self.required(&quote!(!self.#rust.is_empty()))
    }

    fn map(&self) -> TokenStream {
        let (length, required) = (statement(self.length("map", "pairs")), self.required_items());
        quote!(#length #required)
    }

    fn text(&self) -> TokenStream {
        let Self { field, name, rust, rules } = self;
        let (required, rule) = (rules.is_required(), rules.of("string"));
        let value = if options::is_nullable(field) {
            quote!(self.#rust.as_deref())
        } else {
            assert!(
                required || is_output(field) || !rule.as_ref().is_some_and(refuses_empty),
                "{}: make it `optional`: its rule refuses the empty text, which must be \
                 distinct from absence",
                field.full_name()
            );
            quote!(Some(self.#rust.as_str()).filter(|text| !text.is_empty()))
        };
        let rule = text_rule(required, rule.as_ref());
        quote!(found.text(#name, #value, &#rule);)
    }

    fn integer(&self) -> TokenStream {
        let Self { field, name, rust, rules } = self;
        let required = self.required_number();
        let Some(rule) = ["int32", "int64", "uint32"].into_iter().find_map(|kind| rules.of(kind))
        else {
            return required;
        };
        let value = if options::is_nullable(field) {
            quote!(self.#rust.map(i64::from))
        } else {
            quote!(Some(i64::from(self.#rust)))
        };
        let least = options::number(&rule, "gte").unwrap_or_else(|| quote!(i64::MIN));
        let most = options::number(&rule, "lte").unwrap_or_else(|| quote!(i64::MAX));
        quote!(#required found.integer(#name, #value, #least, #most);)
    }

    fn double(&self) -> TokenStream {
        let Self { field, name, rust, rules } = self;
        let (required, rule) = (self.required_number(), rules.of("double"));
        let value =
            if options::is_nullable(field) { quote!(self.#rust) } else { quote!(Some(self.#rust)) };
        let bound = |side: &str| options::number(rule.as_ref()?, side);
        let least = bound("gte").unwrap_or_else(|| quote!(f64::MIN));
        let most = bound("lte").unwrap_or_else(|| quote!(f64::MAX));
        quote!(#required found.number(#name, #value, #least, #most);)
    }

    fn required_number(&self) -> TokenStream {
        let rust = &self.rust;
        self.required(&if options::is_nullable(self.field) {
            quote!(self.#rust.is_some())
        } else {
            quote!(self.#rust != 0)
        })
    }

    /// Generates the check that a required enum is set. The number 0 means unset.
    fn word(&self) -> TokenStream {
        let rust = &self.rust;
        self.required(&if options::is_nullable(self.field) {
            quote!(self.#rust != Some(0) && self.#rust.is_some())
        } else {
            quote!(self.#rust != 0)
        })
    }

    fn message(&self, kind: &MessageDescriptor) -> TokenStream {
        let Self { field, name, rust, .. } = self;
        let required = self.required(&quote!(self.#rust.is_some()));
        let inner = match kind.full_name() {
            "google.protobuf.Timestamp" => quote!(found.time(#name, self.#rust);),
            "google.protobuf.Struct" => quote!(found.json(#name, self.#rust.as_ref());),
            // A patch is partial. The registry checks the fields in the mask, then the merged
            // record.
            _ if is_patch(field) => TokenStream::new(),
            _ if is_ours(kind.package_name()) => quote! {
                if let Some(inner) = &self.#rust {
                    found.within(#name, |found| inner.validate(found));
                }
            },
            _ => TokenStream::new(),
        };
        quote!(#required #inner)
    }

    fn list(&self) -> TokenStream {
        let (required, items) = (self.required_items(), self.items());
        match self.length("repeated", "items") {
            // Items of a list that is too long are not checked.
            Some(fits) if !items.is_empty() => quote!(#required if #fits { #items }),
            length => {
                let length = statement(length);
                quote!(#required #length #items)
            }
        }
    }

    fn items(&self) -> TokenStream {
        let Self { field, name, rust, rules } = self;
        let rule = rules.of("repeated");
        match field.kind() {
            Kind::String => {
                let each = rule.as_ref().and_then(|rule| options::message(rule, "items"));
                let text = text_rule(false, Rules(each).of("string").as_ref());
                let unique = rule
                    .is_some_and(|rule| options::flag(&rule, "unique"))
                    .then(|| quote!(found.unique(#name, &self.#rust);));
                quote!(found.texts(#name, &self.#rust, &#text); #unique)
            }
            Kind::Message(kind) if is_ours(kind.package_name()) => {
                let place = format!("{name}[{{index}}]");
                quote! {
                    for (index, item) in self.#rust.iter().enumerate() {
                        found.within(&format!(#place), |found| item.validate(found));
                    }
                }
            }
            Kind::Message(kind) if kind.full_name() == "google.protobuf.Struct" => {
                let place = format!("{name}[{{index}}]");
                quote! {
                    for (index, item) in self.#rust.iter().enumerate() {
                        found.json(&format!(#place), Some(item));
                    }
                }
            }
            _ => TokenStream::new(),
        }
    }

    /// Checks `min_<what>` and `max_<what>` of a list, a map or bytes.
    fn length(&self, kind: &str, what: &str) -> Option<TokenStream> {
        let Self { name, rust, rules, .. } = self;
        let rule = rules.of(kind)?;
        let bound = |side: &str| options::number(&rule, &format!("{side}_{what}"));
        let (least, most) = (bound("min"), bound("max"));
        if least.is_none() && most.is_none() {
            return None;
        }
        // If the field is required, `required` already reports an empty value.
        let least = least.filter(|least| !self.rules.is_required() || least.to_string() != "1");
        let least = least.unwrap_or_else(|| quote!(0));
        let most = most.unwrap_or_else(|| quote!(usize::MAX));
        Some(quote!(found.length(#name, self.#rust.len(), #least, #most)))
    }
}

/// Whether the rule refuses the empty text.
///
/// A pattern is assumed to refuse it.
fn refuses_empty(rule: &DynamicMessage) -> bool {
    options::number(rule, "min_len").is_some_and(|least| least.to_string() != "0")
        || options::flag(rule, "email")
        || !options::text(rule, "pattern").is_empty()
        || !options::texts(rule, "in").is_empty()
}

fn is_output(field: &FieldDescriptor) -> bool {
    options::behaviour(field) == Some(options::Behaviour::OutputOnly)
}

fn is_patch(field: &FieldDescriptor) -> bool {
    field.parent_message().get_field_by_name("update_mask").is_some()
}

fn text_rule(required: bool, rule: Option<&DynamicMessage>) -> TokenStream {
    let mut parts = TokenStream::new();
    if required {
        parts.extend(quote!(required: true,));
    }
    if let Some(rule) = rule {
        for (option, part) in [("min_len", "min"), ("max_len", "max")] {
            if let Some(length) = options::number(rule, option) {
                let part = format_ident!("{part}");
                parts.extend(quote!(#part: #length,));
            }
        }
        if options::flag(rule, "email") {
            parts.extend(quote!(email: true,));
        }
        let pattern = options::text(rule, "pattern");
        if !pattern.is_empty() {
            parts.extend(quote!(pattern: #pattern,));
        }
        let words = options::texts(rule, "in");
        if !words.is_empty() {
            parts.extend(quote!(of: &[#(#words),*],));
        }
    }
    if parts.is_empty() { quote!(Text::ANY) } else { quote!(Text { #parts ..Text::ANY }) }
}
