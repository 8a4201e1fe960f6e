//! How a request for approval reads.
//!
//! A tool declares which fields of its input matter, what they are called, and which texts an agent
//! writes freely. The service fills the declaration in and returns the result with the request.
//! Nothing is guessed from names: without a declaration, all fields are shown. The crate is pure.

mod amount;
mod check;
mod fill;
mod letters;
mod path;
mod roles;

pub use amount::{Amount, Sums};
pub use check::check;
pub use fill::{Declaration, fill, version};
pub use letters::mixed_letters;
pub use roles::{RolePath, role_paths, role_values};
