//! The warning before a stop of an action that the tenant's records do not name.

use super::target::Target;
use crate::{known_names::known_names, unknown_action::unknown_action, view::View};

/// `None` if the target is a tool, if the action is known, or if names can't be read. The last case
/// is not an error, because a stop is urgent.
pub(super) async fn warning(view: &View, target: &Target) -> Option<String> {
    let action = target.actions.first().filter(|_| target.tool.is_none())?;
    unknown_action(action, &known_names(view, &target.tenant_id).await?.actions)
}
