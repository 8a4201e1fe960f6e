//! A form that a person has sent from a page of this console in their session. Any other form is
//! refused with a 403.

use authority_crypto::{equal, random};
use axum::{
    body::Body,
    extract::{FromRequest, FromRequestParts},
    response::Response,
};
use http::{HeaderMap, Request, header};
use http_body_util::{BodyExt, Limited};
use tonic::Status;

use crate::{
    Console,
    kit::{notice::Notice, query::Pairs, view::View},
};

/// The largest form, in bytes: a record of the size that the API takes, encoded.
const LARGEST: usize = 512 * 1024;
const FORM: &str = "application/x-www-form-urlencoded";
/// Fields that a form may repeat. Members of a record (`m.`) define this themselves.
const REPEATED: [&str; 4] = ["item", "reviewed", "shown", "m."];

/// A form, with the view of its sender.
pub(crate) struct Posted {
    pub(crate) view: View,
    pub(crate) form: Pairs,
}

impl FromRequest<Console> for Posted {
    type Rejection = Response;

    async fn from_request(request: Request<Body>, console: &Console) -> Result<Self, Response> {
        let (mut parts, body) = request.into_parts();
        if !is_own(&parts.headers, console.origin()) {
            return Err(Notice::foreign_form().response());
        }
        // A message reports the ended session. A redirect to the sign-in would lose the text that
        // is still in the browser.
        let view = match View::from_request_parts(&mut parts, console).await {
            Ok(view) => view,
            Err(answer) if answer.status().is_server_error() => return Err(answer),
            Err(_) => return Err(Notice::ended_session().response()),
        };
        let kind = parts.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let body = Limited::new(body, LARGEST).collect().await;
        let (Some(true), Ok(body)) = (kind.map(|kind| kind.starts_with(FORM)), body) else {
            return Err(Notice::unreadable_form().response());
        };
        let Some(form) = Pairs::read_exact(&body.to_bytes()) else {
            return Err(Notice::unreadable_form().response());
        };
        let token = form.text("csrf");
        if !equal(token.as_bytes(), view.csrf().as_bytes()) {
            return Err(Notice::foreign_form().response());
        }
        if form.repeats(REPEATED) {
            return Err(Notice::unreadable_form().response());
        }
        Ok(Self { view, form })
    }
}

/// Creates an idempotency key. A form with a key takes effect only once, even if it is sent twice.
pub(crate) fn idempotency_key() -> Result<String, Status> {
    let bytes = random::<16>().map_err(|_| Status::unavailable("no randomness"))?;
    Ok(hex::encode(bytes))
}

/// Whether the browser's headers state that a page of this origin sent the form. Browsers send `Sec-Fetch-Site` only
/// over https and on the loopback (older Safari never does): without it, `Origin` and the form's token suffice.
fn is_own(headers: &HeaderMap, origin: &str) -> bool {
    let is_once = |name: &str, wanted: &str| {
        let mut values = headers.get_all(name).iter();
        values.next().is_some_and(|value| value == wanted) && values.next().is_none()
    };
    let site = "sec-fetch-site";
    is_once("origin", origin) && (!headers.contains_key(site) || is_once(site, "same-origin"))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_form_is_from_this_origin_by_both_headers() {
        const OWN: &str = "https://authority.example.org";
        for (origin, site, own) in [
            (Some(OWN), Some("same-origin"), true),
            (None, Some("same-origin"), false),
            (Some("null"), Some("same-origin"), false),
            (Some("https://evil.example"), Some("same-origin"), false),
            (Some("https://authority.example.org.evil.example"), Some("same-origin"), false),
            (Some(OWN), Some("same-site"), false),
            (Some(OWN), Some("cross-site"), false),
            (Some(OWN), Some(""), false),
            (Some(OWN), None, true),
        ] {
            let mut headers = HeaderMap::new();
            for (name, value) in [("origin", origin), ("sec-fetch-site", site)] {
                if let Some(value) = value {
                    headers.insert(name, HeaderValue::from_static(value));
                }
            }
            assert_eq!(is_own(&headers, OWN), own, "{origin:?} {site:?}");
        }
    }
}
