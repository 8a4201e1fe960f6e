//! One channel: its settings, a test, and its deletion.

use authority_model::proto::events::{
    DeleteMessageChannelRequest, ListMessageChannelsRequest, MessageChannel,
    TestMessageChannelRequest, UpdateMessageChannelRequest,
};

use super::{
    input::{Input, LIST},
    list::kind,
};
use crate::kit::prelude::*;

#[derive(Template)]
#[template(path = "message_channel.html")]
struct ChannelPage {
    frame: Frame,
    address: String,
    kind: &'static str,
    channel: MessageChannel,
    input: Input,
    done: Option<&'static str>,
}

pub(super) async fn show(view: View, Path(id): Path<String>, query: Pairs) -> Response {
    let done = match done_word(&view, &address(&id), &query) {
        "save" => Some(t::administration::SAVED),
        "test" => Some(t::administration::TEST_SENT),
        _ => None,
    };
    let shown = ChannelPage::of(&view, &id).await;
    view.answer(shown.map(|found| page(StatusCode::OK, &ChannelPage { done, ..found })))
}

pub(super) async fn act(Path(id): Path<String>, Posted { view, form }: Posted) -> Response {
    let (undone, acted) = match form.text("do") {
        "delete" => (t::administration::NOT_DELETED, delete(&view, &id).await),
        "test" => (t::administration::TEST_MESSAGE_NOT_SENT, test(&view, &id).await),
        _ => (t::NOT_SAVED, save(&view, &id, &form).await),
    };
    view.answer_act(undone, acted)
}

async fn save(view: &View, id: &str, form: &Pairs) -> Result<Response, Status> {
    let input = Input::read(form);
    let changed = async {
        let settings = Some(input.settings()?);
        let request = UpdateMessageChannelRequest { id: id.to_owned(), settings };
        view.calls.call(&request).await
    };
    match changed.await {
        Ok(_) => Ok(see_done(view, &address(id), "save")),
        Err(status) if status.code() == tonic::Code::InvalidArgument => {
            let text = Problem::of(&status).in_words();
            let found = ChannelPage::of(view, id).await?;
            let frame = found.frame.failed(t::NOT_SAVED, text, Some("label"));
            Ok(page(StatusCode::BAD_REQUEST, &ChannelPage { frame, input, ..found }))
        }
        Err(status) => Err(status),
    }
}

async fn test(view: &View, id: &str) -> Result<Response, Status> {
    let request = TestMessageChannelRequest { id: id.to_owned() };
    let tested = view.calls.call(&request).await?;
    if tested.sent {
        return Ok(see_done(view, &address(id), "test"));
    }
    let found = ChannelPage::of(view, id).await?;
    let text = t::administration::not_accepted(tested.error.unwrap_or_default());
    let frame = found.frame.failed(t::administration::TEST_MESSAGE_NOT_SENT, text, None);
    Ok(page(StatusCode::OK, &ChannelPage { frame, ..found }))
}

async fn delete(view: &View, id: &str) -> Result<Response, Status> {
    let request = DeleteMessageChannelRequest { id: id.to_owned() };
    view.calls.call(&request).await?;
    Ok(see_done(view, LIST, "delete"))
}

impl ChannelPage {
    async fn of(view: &View, id: &str) -> Result<Self, Status> {
        let listed = view.calls.call(&ListMessageChannelsRequest {}).await?;
        let channel = listed.message_channels.into_iter().find(|channel| channel.id == id);
        let channel = channel.ok_or_else(|| Status::not_found(t::administration::NO_CHANNEL))?;
        let kind = kind(&channel.kind);
        Ok(Self {
            frame: view.frame(t::administration::messages_by(kind), Section::None),
            address: address(id),
            kind,
            input: Input::of(channel.settings.clone().unwrap_or_default()),
            channel,
            done: None,
        })
    }
}

fn address(id: &str) -> String {
    format!("{LIST}/{}", encoded(id))
}
