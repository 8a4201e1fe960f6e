//! How a request for approval reads.
//!
//! A tool declares the important fields of its input, their labels, and the texts that an agent
//! writes. The service fills in the declaration and returns the result with the request. The service
//! does not guess from names: without a declaration, it shows all fields. The crate is pure.

mod amount;
mod check;
mod fill;
mod label;
mod language;
mod letters;
mod message;
mod path;
mod roles;
mod schema;
mod searched;
mod sum;
mod table;
mod texts;
mod title;
mod typed_amount;

pub use amount::{Amount, Sums};
pub use check::check;
pub use fill::{Declaration, fill, version};
pub use language::translate;
pub use letters::mixed_letters;
pub use message::{
    Message, MessageKind, MessageText, mail_body, mattermost, slack, teams, visible,
};
pub use path::quoted;
pub use roles::{ROLES, RolePath, role_paths, role_values, written_values};
pub use searched::{AMOUNT, SearchedFact};
