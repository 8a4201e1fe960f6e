//! Reads the enquiry form.

use authority_api::error::{ApiError, ErrorCode};
use authority_ids::BrandRef;
use authority_model::proto::programme::CaptureLeadRequest;
use authority_programme::BRAND_SOURCE;
use axum::{
    body::{Body, to_bytes},
    http::{HeaderMap, header},
};

/// The largest body in bytes.
const LARGEST: usize = 16 * 1024;
/// The source of the form's enquiries.
const SOURCE: &str = "widget";

/// The source of an enquiry under a brand.
pub(super) fn source(brand_id: &BrandRef) -> String {
    format!("{BRAND_SOURCE}{brand_id}")
}

/// Reads the enquiry in a form's body. An empty field is absent.
///
/// # Errors
/// The body is too large, is not a form, or has an unknown field.
pub(super) async fn read(headers: &HeaderMap, body: Body) -> Result<CaptureLeadRequest, ApiError> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next()).unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
        return Err(ApiError::plain(ErrorCode::UnsupportedMediaType));
    }
    let body = to_bytes(body, LARGEST).await;
    let body = body.map_err(|_| ApiError::plain(ErrorCode::TooLarge))?;
    let mut lead = CaptureLeadRequest { source: Some(SOURCE.to_owned()), ..<_>::default() };
    for (name, value) in form_urlencoded::parse(&body) {
        let value = Some(value.into_owned()).filter(|value| !value.is_empty());
        match &*name {
            "email" => lead.email = value.unwrap_or_default(),
            "name" => lead.name = value,
            "organisation" => lead.organisation = value,
            "sector" => lead.sector = value,
            "country" => lead.country = value,
            "message" => lead.message = value,
            "consent_marketing" => lead.consent_marketing = value.is_some(),
            _ => return Err(ApiError::field("form", "has an unknown field")),
        }
    }
    Ok(lead)
}
