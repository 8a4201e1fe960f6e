//! The parts of a widget that its brand determines: colours, logo, and the sites that may frame it.

use authority_api::error::{ApiError, ErrorCode};
use authority_crypto::random;
use authority_ids::{BrandRef, ConsultantRef};
use authority_model::colour::{Colour, LEAST_CONTRAST};
use authority_programme::Brand;

/// The frame of a page. All values are safe in a header, a style and an attribute.
pub(super) struct Frame {
    /// The nonce of this response's style.
    pub(super) nonce: String,
    pub(super) ground: Colour,
    pub(super) text: Colour,
    pub(super) brand_name: Option<String>,
    pub(super) logo_url: Option<String>,
    pub(super) legal_footer: Option<String>,
    /// The domain with pages that may frame this page; `None` for this service's own pages.
    domain: Option<String>,
    /// The referrer of an enquiry that is sent from the page.
    pub(super) referrer: Option<Referrer>,
}

/// The brand under which an enquiry is sent, and its consultant.
#[derive(Debug)]
pub(super) struct Referrer {
    pub(super) brand_id: BrandRef,
    pub(super) consultant_id: ConsultantRef,
}

impl Frame {
    /// A frame without a brand; only this service's own pages may embed it.
    pub(super) fn plain() -> Result<Self, ApiError> {
        let nonce: [u8; 16] = random()?;
        let ground = Colour::WHITE;
        Ok(Self {
            nonce: hex::encode(nonce),
            ground,
            text: ground.text(),
            brand_name: None,
            logo_url: None,
            legal_footer: None,
            domain: None,
            referrer: None,
        })
    }

    /// The frame of a brand. Its fields are checked again, because they are written to a header and
    /// a style.
    pub(super) fn of(brand: Brand) -> Result<Self, ApiError> {
        let plain = Self::plain()?;
        if brand.domain.as_deref().is_some_and(|domain| !is_name(domain)) {
            tracing::error!(brand.id = brand.id.as_str(), "found an invalid domain of a brand");
            return Err(ApiError::plain(ErrorCode::Internal));
        }
        let colour = |text: Option<String>| text.as_deref().and_then(Colour::parse);
        let ground = colour(brand.primary_colour_hex).unwrap_or(plain.ground);
        let text = colour(brand.secondary_colour_hex);
        let text = text.filter(|text| ground.contrast(*text) >= LEAST_CONTRAST);
        let logo_url = brand.logo_url.filter(|url| on(url, brand.domain.as_deref()));
        Ok(Self {
            ground,
            text: text.unwrap_or_else(|| ground.text()),
            brand_name: Some(brand.brand_name),
            logo_url,
            legal_footer: brand.legal_footer,
            domain: brand.domain,
            referrer: Some(Referrer { brand_id: brand.id, consultant_id: brand.consultant_id }),
            ..plain
        })
    }

    /// The content security policy of the page.
    pub(super) fn policy(&self) -> String {
        let Self { nonce, domain, .. } = self;
        let (images, ancestors) = match domain {
            None => (String::new(), "'self'".to_owned()),
            Some(domain) => (format!("img-src https://{domain}; "), format!("https://{domain}")),
        };
        format!(
            "default-src 'none'; style-src 'nonce-{nonce}'; {images}form-action 'self'; \
             base-uri 'none'; frame-ancestors {ancestors}"
        )
    }
}

/// A name of lower-case letters, digits, `-` and `.`.
fn is_name(text: &str) -> bool {
    let plain =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte);
    !text.is_empty() && text.bytes().all(plain)
}

/// Whether an `https` URL is on the domain.
fn on(url: &str, domain: Option<&str>) -> bool {
    let rest = url.strip_prefix("https://").zip(domain);
    rest.is_some_and(|(rest, domain)| {
        let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
        host.eq_ignore_ascii_case(domain)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn brand() -> Brand {
        Brand {
            id: "svc:brand:1".into(),
            tenant_id: "svc:tenant:acme".into(),
            consultant_id: "svc:consultant:1".into(),
            status: "active".to_owned(),
            brand_name: "Brand".to_owned(),
            primary_colour_hex: Some("#112233".to_owned()),
            secondary_colour_hex: None,
            logo_url: Some("https://brand.example.com/l.png".to_owned()),
            domain: Some("brand.example.com".to_owned()),
            support_email: None,
            legal_footer: None,
        }
    }

    #[test]
    fn a_brand_is_framed_by_its_domain_and_a_plain_page_by_its_own_service() {
        let policy = Frame::of(brand()).unwrap().policy();
        assert!(policy.ends_with("frame-ancestors https://brand.example.com"), "{policy}");
        assert!(policy.contains("img-src https://brand.example.com;"), "{policy}");
        let policy = Frame::plain().unwrap().policy();
        assert!(policy.ends_with("frame-ancestors 'self'") && !policy.contains("img-src"));
    }

    #[test]
    fn stored_members_are_checked_again() {
        let stored = Brand {
            primary_colour_hex: Some("red;}".to_owned()),
            secondary_colour_hex: Some("#fefefe".to_owned()),
            logo_url: Some("https://other.example/l.png".to_owned()),
            ..brand()
        };
        let frame = Frame::of(stored).unwrap();
        assert_eq!((frame.ground, frame.text), (Colour::WHITE, Colour::BLACK));
        assert_eq!(frame.logo_url, None);
        let domain = Some("x.example; script-src *".to_owned());
        assert!(Frame::of(Brand { domain, ..brand() }).is_err());
    }
}
