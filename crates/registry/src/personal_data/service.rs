//! The operations on personal data.

use authority_model::{
    proto::programme::{
        ErasePersonalDataRequest, Erasure, ExportPersonalDataRequest, ExportPersonalDataResponse,
        ListErasuresRequest, ListErasuresResponse, WithdrawConsentRequest, WithdrawConsentResponse,
    },
    service::PersonalDataService,
};

use super::{consent, erase, erasures, export, handlers::PersonalData};
use crate::flow::prelude::*;

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
