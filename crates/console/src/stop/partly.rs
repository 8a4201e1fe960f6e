//! A partial stop: the suspended parts, the failed parts, and the same form again.

use super::{order::Act, target::Target};
use crate::kit::prelude::*;

/// An action that is suspended, and the quarantine.
struct Suspended {
    action: String,
    id: String,
}

/// An action that could not be suspended, and the reason.
struct Failed {
    action: String,
    why: String,
}

#[derive(Template)]
#[template(path = "stop_partly.html")]
struct PartlyPage {
    frame: Frame,
    target: Target,
    suspended: Vec<Suspended>,
    failed: Vec<Failed>,
    /// If the form is sent again with the same key, completed acts are not repeated.
    key: String,
    reason: String,
}

/// # Errors
/// The refusal, if no act succeeded.
pub(super) fn partly(
    view: &View,
    target: Target,
    acts: Vec<Act>,
    (reason, key): (String, &str),
) -> Result<Response, Status> {
    let (mut suspended, mut failed, mut first) = (Vec::new(), Vec::new(), None);
    for act in acts {
        let action = act.action.unwrap_or_default();
        match act.outcome {
            Ok(id) => suspended.push(Suspended { action, id }),
            Err(status) => {
                failed.push(Failed { action, why: Problem::of(&status).in_words() });
                first.get_or_insert(status);
            }
        }
    }
    if let Some(status) = first.filter(|_| suspended.is_empty()) {
        return Err(status);
    }
    let (title, heading) = (t::stop::stop(target.what()), t::stop::partly(target.name()));
    let shown = PartlyPage {
        frame: view.frame(title, Section::Stop).failed(heading, t::stop::FAILED_FIRST, None),
        target,
        suspended,
        failed,
        key: key.to_owned(),
        reason,
    };
    Ok(page(StatusCode::MULTI_STATUS, &shown))
}
