//! One stop: the suspended authority, the reason, the refusals since, and the release.

use super::{impact::Impact, stopped::Stopped};
use crate::kit::prelude::*;

#[derive(Template)]
#[template(path = "stop_one.html")]
struct StoppedPage {
    frame: Frame,
    /// The result of the person's last action.
    done: Option<String>,
    what: String,
    stopped: Stopped,
    /// `None` if it could not be read now.
    impact: Option<Impact>,
    may_release: bool,
}

pub(super) async fn show(view: View, Path(id): Path<String>, query: Pairs) -> Response {
    view.answer(shown(&view, &id, query.text("did")).await)
}

async fn shown(view: &View, id: &str, did: &str) -> Result<Response, Status> {
    let stopped = Stopped::read(view, id).await?;
    let names = Names::to_call(view, stopped.subject.iter().cloned().collect()).await;
    let impact = Impact::of_stop(view, &stopped).await;
    // If reading fails, the stop and its release are still shown.
    let impact =
        impact.inspect_err(|error| tracing::warn!(%error, "failed to read the impact of a stop"));
    let release = if stopped.is_signal { rpc::LIFT_STOP_SIGNAL } else { rpc::RELEASE_QUARANTINE };
    let what = stopped.what(&names);
    let shown = StoppedPage {
        frame: view.frame(t::stop::stopped_title(&what), Section::Stop),
        done: match did {
            "stop" if stopped.is_active => Some(t::stop::now_stopped(&what)),
            "release" if !stopped.is_active => Some(t::stop::now_released(&what)),
            _ => None,
        },
        what,
        impact: impact.ok(),
        may_release: stopped.is_active && view.may(release),
        stopped,
    };
    Ok(page(StatusCode::OK, &shown))
}
