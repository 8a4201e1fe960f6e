//! Responses to the hooks of coding agents: every failure is a denial in the form of the caller.
//!
//! A coding agent runs a tool if its hook's response is an error. The conversion is here, outside of
//! all other layers, because each of them can fail. The metrics and the log already have the error.

use authority_decision::hooks::Client;
use axum::{
    body::Body,
    http::{HeaderValue, Method, Request, Response, StatusCode, header},
};
use gateway_rest::Refused;

use super::request_id::RequestId;
use authority_api::error::without_secrets;

/// Returns the coding agent that sent a request, if it is a call of a hook.
pub(super) fn client<B>(request: &Request<B>) -> Option<Client> {
    let is_post = request.method() == Method::POST;
    Client::of_path(request.uri().path()).filter(|_| is_post)
}

/// Returns the response unchanged if it is a decision, otherwise a denial.
pub(super) fn closed(client: Client, response: Response<Body>, id: &RequestId) -> Response<Body> {
    let kind = response.headers().get(header::CONTENT_TYPE);
    let is_json = kind.is_some_and(|kind| kind == "application/json");
    let refused = response.extensions().get::<Refused>();
    if response.status() == StatusCode::OK && is_json && refused.is_none() {
        return response;
    }
    let reason = match refused {
        // A caller without a credential gets no details.
        _ if response.status() == StatusCode::UNAUTHORIZED => "Not permitted.".to_owned(),
        Some(Refused { reason, message }) => {
            let message = without_secrets(message.clone().into_owned());
            format!("Not permitted, because it was not decided: {reason}: {message}.")
        }
        None => "Not permitted, because it was not decided.".to_owned(),
    };
    let denial = client.denied(&format!("{reason} (request {})", id.as_str()));
    let mut response = Response::new(Body::from(denial.to_string()));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_json_200_of_the_operation_is_kept() {
        let id = RequestId::settle(&mut axum::http::HeaderMap::new());
        let response = |status: u16, kind: &'static str| {
            let response = Response::builder().status(status).header(header::CONTENT_TYPE, kind);
            response.body(Body::from("{}")).unwrap()
        };
        let is_kept = |response| {
            let response = closed(Client::ClaudeCode, response, &id);
            assert_eq!(response.status(), 200);
            !response.headers().contains_key(header::CACHE_CONTROL)
        };
        assert!(is_kept(response(200, "application/json")));
        for (status, kind) in [
            (200, "application/grpc"),
            (200, "text/html"),
            (204, "application/json"),
            (304, "application/json"),
            (400, "application/json"),
            (503, "application/json"),
        ] {
            assert!(!is_kept(response(status, kind)), "{status} {kind}");
        }
        let mut refused = response(200, "application/json");
        refused.extensions_mut().insert(Refused { reason: "internal".into(), message: "".into() });
        assert!(!is_kept(refused));
    }
}
