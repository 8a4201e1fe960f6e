//! The public part of the programme: consultants' entries and the widgets.

use std::net::IpAddr;

use authority_api::{
    error::ApiError,
    identity::{checked, client_address},
    rate_limit::AppliedLimits,
};
use authority_ids::{BrandRef, ConsultantRef};
use authority_model::{
    proto::programme::{
        DirectoryConsultant, GetDirectoryConsultantRequest, ListWidgetsRequest,
        ListWidgetsResponse, Widget,
    },
    service::{ConsultantDirectoryService, Reply},
};
use authority_store::{self as store, Scope};
use tonic::{Request, Response};

use super::{Brand, Programme, entry, limits::DIRECTORY};

/// The ID, name and description of each widget.
const WIDGETS: [(&str, &str, &str); 2] = [
    (
        "consultant-card",
        "Consultant card",
        "The public entry of a certified consultant. Add `?consultant=` and the consultant's id to the address. \
         With `&brand=` and the id of an active white-label configuration, the configuration's domain may frame the \
         card.",
    ),
    (
        "enquiry-form",
        "Enquiry form",
        "A form that sends an enquiry. Add `?brand=` and the id of an active white-label configuration to the \
         address: the configuration's domain may then frame the form, and its consultant is assigned to the enquiries.",
    ),
];

impl Programme {
    /// Counts a client's call to the directory or a widget, and returns the client's limit.
    ///
    /// # Errors
    /// The client's limit is reached.
    pub async fn admit(&self, client: Option<IpAddr>) -> Result<AppliedLimits, ApiError> {
        let (_, left) = self.count(&DIRECTORY, client).await?;
        Ok(left.into())
    }

    /// Returns a consultant's public entry, or `None` if they must not be shown.
    pub async fn public_entry(
        &self,
        id: &ConsultantRef,
    ) -> Result<Option<DirectoryConsultant>, ApiError> {
        let _turn = self.turn().await?;
        let (id, now) = (id.clone(), self.0.clock.now());
        let read = self.0.store.read_tx(&Scope::service(), async move |db| {
            Ok::<_, store::Error>(entry::public(db, &id, now).await?)
        });
        Ok(read.await?)
    }

    /// Returns a brand that is in use (see brand.rs), or `None`.
    pub async fn brand(&self, id: &BrandRef) -> Result<Option<Brand>, ApiError> {
        let _turn = self.turn().await?;
        let id = id.clone();
        let read = self.0.store.read_tx(&Scope::service(), async move |db| {
            Ok::<_, store::Error>(Brand::by_id(db, &id).await?)
        });
        Ok(read.await?)
    }
}

#[tonic::async_trait]
impl ConsultantDirectoryService for Programme {
    async fn get_directory_consultant(
        &self,
        call: Request<GetDirectoryConsultantRequest>,
    ) -> Reply<DirectoryConsultant> {
        let client = client_address(&call);
        let request = call.into_inner();
        checked(&request)?;
        let limits = self.admit(client).await?;
        let entry = self.public_entry(&request.id.as_str().into()).await?;
        // The error is the same for every reason. Callers can't distinguish the reasons.
        let entry = entry.ok_or_else(|| ApiError::not_found("consultant", &request.id))?;
        Ok(limits.shown_in(Response::new(entry)))
    }

    async fn list_widgets(&self, _: Request<ListWidgetsRequest>) -> Reply<ListWidgetsResponse> {
        let widgets = WIDGETS.map(|(id, name, description)| Widget {
            id: id.to_owned(),
            name: name.to_owned(),
            description: description.to_owned(),
            embed_url: format!("{}/widgets/{id}", self.0.public_url),
        });
        Ok(Response::new(ListWidgetsResponse { widgets: widgets.into() }))
    }
}
