//! The records of the consultant programme. Consultants, certifications and leads belong to the
//! installation, links and brands to a tenant. No such record grants authority.

mod certification;
mod consultant;
mod lead;
mod link;
mod standing;
mod white_label;

pub use certification::expire as expire_certifications;
pub(super) use white_label::unless_branded;
