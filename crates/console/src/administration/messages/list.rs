//! The channels, and the form for another one.

use authority_model::proto::events::{
    CreateMessageChannelRequest, ListMessageChannelsRequest, MessageChannel,
};

use super::input::{Input, LIST};
use crate::kit::{choice::Choice, prelude::*};

/// The kinds of channels, and their names.
const KINDS: [(&str, &str); 4] = [
    ("slack", t::administration::SLACK),
    ("mattermost", t::administration::MATTERMOST),
    ("teams", t::administration::TEAMS),
    ("email", t::administration::EMAIL),
];

struct Row {
    /// Its own name, or where its messages go.
    name: String,
    kind: &'static str,
    channel: MessageChannel,
}

#[derive(Template)]
#[template(path = "messages.html")]
struct ListPage {
    frame: Frame,
    channels: Vec<Row>,
    kinds: Vec<Choice>,
    url: String,
    for_tenant: bool,
    is_admin: bool,
    input: Input,
    done: Option<&'static str>,
    key: String,
}

pub(super) async fn show(view: View, query: Pairs) -> Response {
    let done = match done_word(&view, LIST, &query) {
        "add" => Some(t::administration::IS_ADDED),
        "delete" => Some(t::administration::IS_DELETED),
        _ => None,
    };
    let shown = ListPage::of(&view, &Pairs::default()).await;
    view.answer(shown.map(|found| page(StatusCode::OK, &ListPage { done, ..found })))
}

pub(super) async fn add(Posted { view, form }: Posted) -> Response {
    view.answer_act(t::administration::NOT_ADDED, added(&view, &form).await)
}

async fn added(view: &View, form: &Pairs) -> Result<Response, Status> {
    match create(view, form).await {
        Ok(_) => Ok(see_done(view, LIST, "add")),
        Err(status) => {
            let problem = Problem::of(&status);
            if problem.status.is_server_error() {
                return Err(status);
            }
            let code = problem.status;
            let mut found = ListPage::of(view, form).await?;
            let heading = t::administration::NOT_ADDED;
            found.frame = found.frame.failed(heading, problem.in_words(), Some("kind"));
            Ok(page(code, &found))
        }
    }
}

async fn create(view: &View, form: &Pairs) -> Result<MessageChannel, Status> {
    let request = CreateMessageChannelRequest {
        kind: form.text("kind").to_owned(),
        url: form.one("url").map(|url| url.trim().to_owned()),
        for_tenant: form.text("for_tenant") == "yes",
        settings: Some(Input::read(form).settings()?),
    };
    view.calls.call_once(&request, form.one("key")).await
}

impl ListPage {
    async fn of(view: &View, form: &Pairs) -> Result<Self, Status> {
        let request = ListMessageChannelsRequest {};
        let listed = view.calls.call(&request).await?;
        let kinds = KINDS.iter().filter(|(kind, _)| listed.sends_email || *kind != "email");
        let kinds: Vec<(&str, &str)> = kinds.copied().collect();
        let frame = view.frame(t::administration::MESSAGES, Section::None);
        Ok(Self {
            is_admin: frame.role == "admin",
            frame,
            channels: listed.message_channels.into_iter().map(row).collect(),
            kinds: Choice::of_list(&kinds, form.text("kind")),
            url: form.text("url").to_owned(),
            for_tenant: form.text("for_tenant") == "yes",
            // The form begins with the tenant's settings for new channels.
            input: match form.one("kind") {
                Some(_) => Input::read(form),
                None => Input::of(listed.default_settings.unwrap_or_default()),
            },
            done: None,
            key: idempotency_key()?,
        })
    }
}

/// The name of a kind of channels.
pub(super) fn kind(word: &str) -> &'static str {
    KINDS.iter().find(|(known, _)| *known == word).map_or(t::overview::UNKNOWN, |(_, name)| name)
}

fn row(channel: MessageChannel) -> Row {
    let label = channel.settings.as_ref().and_then(|settings| settings.label.clone());
    let name = label.unwrap_or_else(|| channel.target.clone());
    Row { kind: kind(&channel.kind), name, channel }
}
