//! Writes Rust source.

use std::fmt::Display;

use proc_macro2::TokenStream;

/// Writes a number without a type suffix. The table's field then determines its type.
pub(crate) fn literal(number: impl Display) -> TokenStream {
    let text = number.to_string();
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

pub(crate) fn formatted(code: TokenStream) -> String {
    let file = syn::parse2(code).unwrap_or_else(|error| panic!("the tables: {error}"));
    prettyplease::unparse(&file)
}
