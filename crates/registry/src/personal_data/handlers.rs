//! The data that the operations on personal data use.

use authority_archive::Eraser;

use crate::flow::registry::Registry;

/// The service for personal data.
#[derive(Clone)]
pub struct PersonalData {
    pub registry: Registry,
    /// The reason for the installation's legal hold. While it is set, no data is erased.
    pub legal_hold: Option<String>,
    /// Erases from the archives.
    pub archives: Eraser,
}
