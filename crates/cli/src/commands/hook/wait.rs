//! Waits until people have decided a held call.

use std::time::Duration;

use authority_client::Next;
use tokio::time::sleep;

use crate::{outcome::Failure, server::Server, text};

/// The pause before a broken stream is opened again.
const PAUSE: Duration = Duration::from_secs(1);

/// Returns the state of the approval request once it is not pending.
///
/// # Errors
/// The service refuses the stream. A broken connection is opened again.
pub(super) async fn outcome(server: &Server, decision_id: &str) -> Result<String, Failure> {
    let watch = format!("{decision_id}:watch");
    loop {
        match server.lines(&["v1", "decisions", &watch], &()).await {
            Ok(mut lines) => {
                while let Next::Line(_, update) = server.next(&mut lines).await? {
                    let state = text::of(&update, "approval_state");
                    if state != "pending" {
                        return Ok(state.to_owned());
                    }
                }
            }
            Err(failure) if failure.is_unreached() => {}
            Err(failure) => return Err(failure),
        }
        sleep(PAUSE).await;
    }
}
