//! Personal data: what is stored of a person, and its erasure.
//!
//! A person is named in one way and found by all of their names (`person.rs`). Erasing goes through decisions, facts
//! and history page by page (`pages.rs`), and then through all other tables in one transaction (`tables.rs`), which
//! also writes the erasure: what is listed is complete, and an erasure that was cut off is not listed and can be
//! repeated. A legal hold refuses it (`hold.rs`).

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

/// The service of people's data.
#[derive(Clone)]
pub struct PersonalData {
    pub registry: Registry,
    /// The installation's legal hold: why nothing is erased.
    pub legal_hold: Option<String>,
    /// Erases from what is archived.
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
