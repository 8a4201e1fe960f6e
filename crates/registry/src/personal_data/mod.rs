//! Personal data: its export and its erasure.
//!
//! A request names a person in one way. The person is then found by all of their names
//! (`person.rs`). An erasure processes decisions, facts and history page by page (`pages.rs`), and
//! then all other tables in one transaction (`tables.rs`). That transaction also stores the
//! erasure. Every listed erasure is therefore complete. An interrupted erasure is not listed and
//! can be repeated. A legal hold prevents an erasure (`hold.rs`).

mod consent;
mod erase;
mod erasures;
mod export;
mod hold;
mod pages;
mod person;
mod retention;
mod tables;

use authority_model::{
    proto::programme::{
        ErasePersonalDataRequest, Erasure, ExportPersonalDataRequest, ExportPersonalDataResponse,
        ListErasuresRequest, ListErasuresResponse, WithdrawConsentRequest, WithdrawConsentResponse,
    },
    service::PersonalDataService,
};

use super::prelude::*;
use authority_archive::Eraser;

pub use retention::worker as erase_by_age;

/// The service for personal data.
#[derive(Clone)]
pub struct PersonalData {
    pub registry: Registry,
    /// The reason for the installation's legal hold. While it is set, no data is erased.
    pub legal_hold: Option<String>,
    /// Erases from the archives.
    pub archives: Eraser,
}

#[tonic::async_trait]
impl PersonalDataService for PersonalData {
    async fn export_personal_data(
        &self,
        call: Request<ExportPersonalDataRequest>,
    ) -> Replies<ExportPersonalDataResponse> {
        export::export(&self.registry, call).await
    }

    async fn erase_personal_data(&self, call: Request<ErasePersonalDataRequest>) -> Reply<Erasure> {
        erase::erase(self, call).await
    }

    async fn withdraw_consent(
        &self,
        call: Request<WithdrawConsentRequest>,
    ) -> Reply<WithdrawConsentResponse> {
        consent::withdraw(&self.registry, call).await
    }

    async fn list_erasures(
        &self,
        call: Request<ListErasuresRequest>,
    ) -> Reply<ListErasuresResponse> {
        erasures::list(&self.registry, call).await
    }
}
