//! A page for people who are not signed in, or if their session cannot be checked. It has a link to continue.

use askama::Template;
use axum::response::Response;
use http::StatusCode;

use crate::{
    kit::{assets::VERSION, page::page, query::encoded},
    texts as t,
};

/// A page with a message and a link.
#[derive(Template)]
#[template(path = "notice.html")]
pub(crate) struct Notice {
    status: StatusCode,
    title: &'static str,
    message: String,
    /// The address to continue at, and the link's label.
    link: Option<(String, &'static str)>,
    /// An address that the browser opens automatically.
    onward: Option<String>,
    version: &'static str,
}

impl Notice {
    pub(crate) fn new(status: StatusCode, title: &'static str, message: impl Into<String>) -> Self {
        let link = Some(("/console".to_owned(), t::kit::SIGN_IN));
        Self { status, title, message: message.into(), link, onward: None, version: &VERSION }
    }

    /// Adds a link to a sign-in that leads to `path`.
    pub(crate) fn again(self, path: &str) -> Self {
        self.link(&format!("/console/sign-in?to={}", encoded(path)), t::SIGN_IN_AGAIN)
    }

    /// Adds a link to a sign-in as another person, which leads to `path`. The same person would only
    /// return to this page.
    pub(crate) fn for_somebody_else(self, path: &str) -> Self {
        let path = format!("/console/sign-in?to={}&switch=yes", encoded(path));
        self.link(&path, t::kit::SIGN_IN_AS_OTHER)
    }

    pub(crate) fn link(mut self, path: &str, label: &'static str) -> Self {
        self.link = Some((path.to_owned(), label));
        self
    }

    pub(crate) fn onward(mut self, url: String) -> Self {
        self.onward = Some(url);
        self
    }

    pub(crate) fn foreign_form() -> Self {
        Self::new(StatusCode::FORBIDDEN, t::NOT_DONE, t::kit::FOREIGN_FORM)
            .link("/console", t::kit::OPEN_CONSOLE)
    }

    pub(crate) fn ended_session() -> Self {
        Self::new(StatusCode::FORBIDDEN, t::kit::SESSION_ENDED, t::kit::FORM_AFTER_SESSION)
    }

    pub(crate) fn unreadable_form() -> Self {
        Self::new(StatusCode::BAD_REQUEST, t::NOT_DONE, t::kit::UNREADABLE_FORM)
            .link("/console", t::kit::OPEN_CONSOLE)
    }

    pub(crate) fn response(self) -> Response {
        page(self.status, &self)
    }
}
