//! The settings of the project that uses the library.

use std::collections::BTreeMap;

use proc_macro2::TokenStream;
use serde_json::Value;

/// The settings of the project that uses the library.
#[derive(Clone, Debug)]
pub struct Options {
    /// Full name of the method option for properties that `google.api.http` lacks, for example
    /// `acme.rest.v1.rest`: a message with any of the fields `status`, `envelope`, `mask`, `clear`,
    /// `refusals`, `raw`, `content_type`, `max_age_seconds`, `documents`, `statuses`, `events`,
    /// `body_bytes`, `required`, `location`, `states`, `csv`. Empty for none.
    pub rest: String,
    /// Full name of the field option for properties beyond the field's type: a message with any of
    /// the fields `document` (the name of the schema of the JSON text in a bytes field), `bounds`
    /// (marks a bounding list) and `final` (the values of a state in which the resource cannot
    /// change). Empty for none.
    pub field: String,
    /// Full name of the field option with validation rules: `buf.validate.field`. Empty for none.
    pub validate: String,
    /// Whether the success bodies of a path begin with `"ok": true`. The messages of a stream never
    /// do.
    pub ok: fn(&str) -> bool,
    /// Packages of the services to serve. All messages of these packages get shapes. A name covers
    /// the packages below it.
    pub packages: Vec<String>,
    /// The path of the runtime crate in generated code.
    pub runtime: String,
    /// Examples of fields without an `Example:` in their comment, by `Message.field`, or by the
    /// field's name in all messages. The example null shows the field as absent. By the name of a
    /// method: the example of the method's body, if the body is a text.
    pub examples: BTreeMap<String, Value>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            rest: String::new(),
            field: String::new(),
            validate: "buf.validate.field".to_owned(),
            ok: |_| false,
            packages: Vec::new(),
            runtime: "::gateway_rest".to_owned(),
            examples: BTreeMap::new(),
        }
    }
}

impl Options {
    pub(crate) fn covers(&self, package: &str) -> bool {
        self.packages.iter().any(|own| {
            package
                .strip_prefix(own.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        })
    }

    pub(crate) fn runtime_path(&self) -> TokenStream {
        let path = self.runtime.parse();
        path.unwrap_or_else(|error| panic!("runtime `{}`: {error}", self.runtime))
    }
}
