//! Pages to embed in frames: a consultant's card and the enquiry form. They have no script and no
//! cookie.
//!
//! A page may be framed by this service's own pages only. If the page has an active brand with a
//! verified domain, it may be framed by pages of that domain only. An enquiry from the form goes
//! through the public service, with the same limits and the same constant response.

mod form;
mod frame;

use std::{net::IpAddr, sync::Arc};

use askama::Template;
use authority_api::{
    error::{ApiError, ErrorCode, LIMIT_HEADERS},
    rate_limit::AppliedLimits,
};
use authority_model::{
    proto::programme::{CaptureLeadRequest, DirectoryConsultant},
    wire::Time,
};
use authority_programme::Programme;
use axum::{
    Router,
    body::Body,
    extract::{RawQuery, State},
    http::{Extensions, HeaderName, HeaderValue, StatusCode, header, request::Parts},
    response::{Html, IntoResponse, Response},
    routing::get,
};

use crate::transport::Embeddable;
use frame::Frame;

/// Reads a request's client address, which the transport put into the extensions.
type Client = fn(&Extensions) -> Option<IpAddr>;

/// The widgets.
#[derive(Clone)]
pub struct Widgets(Arc<Inner>);

struct Inner {
    programme: Programme,
    client: Client,
}

impl Widgets {
    pub fn new(programme: Programme, client: Client) -> Self {
        Self(Arc::new(Inner { programme, client }))
    }

    pub fn router(self) -> Router {
        Router::new()
            .route("/widgets/consultant-card", get(card))
            .route("/widgets/enquiry-form", get(enquiry).post(send))
            .with_state(self)
    }

    /// Counts the call, and returns the page's frame for the brand in the query and the client's
    /// limit.
    async fn frame(
        &self,
        parts: &Parts,
        query: &Query,
    ) -> Result<(Frame, AppliedLimits), ApiError> {
        let limits = self.0.programme.admit((self.0.client)(&parts.extensions)).await?;
        let Some(id) = query.of("brand") else { return Ok((Frame::plain()?, limits)) };
        let brand = self.0.programme.brand(&id.into()).await?;
        Ok((Frame::of(brand.ok_or_else(|| ApiError::not_found("brand", id))?)?, limits))
    }
}

/// The parameters of a page. If a parameter is given twice, the first counts.
struct Query(Vec<(String, String)>);

impl Query {
    /// # Errors
    /// A parameter contains U+0000, which records never contain.
    fn read(text: Option<&str>) -> Result<Self, ApiError> {
        let all = form_urlencoded::parse(text.unwrap_or_default().as_bytes()).into_owned();
        let all = Self(all.collect());
        if all.0.iter().any(|(_, value)| value.contains('\0')) {
            return Err(ApiError::new(ErrorCode::InvalidRequest, "a parameter contains U+0000"));
        }
        Ok(all)
    }

    fn of(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str()).filter(|value| !value.is_empty())
    }
}

#[derive(Template)]
#[template(path = "widgets/card.html")]
struct Card {
    frame: Frame,
    consultant: DirectoryConsultant,
}

#[derive(Template)]
#[template(path = "widgets/form.html")]
struct Form {
    frame: Frame,
    /// The form's target: this page, with its brand.
    action: String,
    /// The enquiry as submitted.
    given: CaptureLeadRequest,
    /// The problem with the submitted enquiry.
    problem: Option<String>,
}

/// A page with one sentence instead of a widget.
#[derive(Template)]
#[template(path = "widgets/message.html")]
struct Message {
    frame: Frame,
    text: String,
}

/// The day of a time in UTC, in the form of RFC 3339.
fn day(time: &Time) -> String {
    time.to_string().chars().take_while(|letter| *letter != 'T').collect()
}

async fn card(State(this): State<Widgets>, RawQuery(query): RawQuery, parts: Parts) -> Response {
    let found = async {
        let query = Query::read(query.as_deref())?;
        let (frame, limits) = this.frame(&parts, &query).await?;
        let id = query.of("consultant").unwrap_or_default();
        let entry = this.0.programme.public_entry(&id.into()).await?;
        Ok((frame, limits, entry.ok_or_else(|| ApiError::not_found("consultant", id))?))
    };
    match found.await {
        Ok((frame, limits, consultant)) => {
            let policy = frame.policy();
            with_limits(page(StatusCode::OK, &policy, &Card { frame, consultant }), &limits)
        }
        Err(error) => refused(None, &error),
    }
}

async fn enquiry(State(this): State<Widgets>, RawQuery(query): RawQuery, parts: Parts) -> Response {
    let found = async {
        let query = Query::read(query.as_deref())?;
        Ok((this.frame(&parts, &query).await?, action(&query)))
    };
    match found.await {
        Ok(((frame, limits), action)) => {
            let (policy, given) = (frame.policy(), CaptureLeadRequest::default());
            let form = Form { frame, action, given, problem: None };
            with_limits(page(StatusCode::OK, &policy, &form), &limits)
        }
        Err(error) => refused(None, &error),
    }
}

async fn send(
    State(this): State<Widgets>,
    RawQuery(query): RawQuery,
    parts: Parts,
    body: Body,
) -> Response {
    let found = async {
        let query = Query::read(query.as_deref())?;
        Ok((this.frame(&parts, &query).await?, action(&query)))
    };
    let ((frame, _), action) = match found.await {
        Ok(found) => found,
        Err(error) => return refused(None, &error),
    };
    let mut given = match form::read(&parts.headers, body).await {
        Ok(given) => given,
        Err(error) => return refused(Some(frame), &error),
    };
    let client = (this.0.client)(&parts.extensions);
    let assigned = frame.referrer.as_ref().map(|referrer| {
        given.source = Some(form::source(&referrer.brand_id));
        referrer.consultant_id.clone()
    });
    match this.0.programme.capture(client, None, given.clone(), assigned).await {
        Ok((_, limits)) => {
            let (policy, text) = (frame.policy(), "Thank you. We have received your enquiry.");
            let message = Message { frame, text: text.to_owned() };
            with_limits(page(StatusCode::OK, &policy, &message), &limits)
        }
        Err(error) => {
            // The form keeps the entered values.
            let problem = Some(problem(&error));
            let policy = frame.policy();
            let form = Form { frame, action, given, problem };
            with_wait(page(error.code.http(), &policy, &form), &error)
        }
    }
}

/// A message about the error for a person, with advice.
fn problem(error: &ApiError) -> String {
    let text = match error.code {
        ErrorCode::RateLimited => "Too many requests. Please try again later.",
        ErrorCode::NotFound => "This page is not available.",
        ErrorCode::InvalidRequest => "Please check your entries and send them again.",
        _ => "This does not work at the moment. Please try again later.",
    };
    let fields = error.violations.iter();
    fields
        .fold(text.to_owned(), |text, found| format!("{text} {}: {}.", found.field, found.problem))
}

/// The form's own address.
fn action(query: &Query) -> String {
    match query.of("brand") {
        None => "/widgets/enquiry-form".to_owned(),
        Some(brand) => {
            let brand: String = form_urlencoded::byte_serialize(brand.as_bytes()).collect();
            format!("/widgets/enquiry-form?brand={brand}")
        }
    }
}

fn page(status: StatusCode, policy: &str, template: &impl Template) -> Response {
    let (Ok(policy), Ok(text)) = (HeaderValue::from_str(policy), template.render()) else {
        tracing::error!("failed to render a widget");
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let headers = [(header::CONTENT_SECURITY_POLICY, policy)];
    let mut response = (status, headers, Html(text)).into_response();
    response.extensions_mut().insert(Embeddable);
    response
}

fn refused(frame: Option<Frame>, error: &ApiError) -> Response {
    let status = error.code.http();
    let Ok(frame) = frame.map_or_else(Frame::plain, Ok) else { return status.into_response() };
    let policy = frame.policy();
    with_wait(page(status, &policy, &Message { frame, text: problem(error) }), error)
}

fn with_limits(mut response: Response, limits: &AppliedLimits) -> Response {
    limits.show(response.headers_mut());
    response
}

/// Adds the time to wait and the limit, if the error has them.
fn with_wait(mut response: Response, error: &ApiError) -> Response {
    let wait = [("retry_after", header::RETRY_AFTER)].into_iter();
    let limits = LIMIT_HEADERS.into_iter().map(|name| (name, HeaderName::from_static(name)));
    for (key, name) in wait.chain(limits) {
        let found = error.about.iter().find(|(about, _)| *about == key);
        if let Some(value) = found.and_then(|(_, value)| HeaderValue::from_str(value).ok()) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}
