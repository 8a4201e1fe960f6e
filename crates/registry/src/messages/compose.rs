//! Writes the text of a message about a request.

use authority_api::identity::permitted_roles;
use authority_model::{
    proto::approval::Approval,
    schema::{approvals, principals},
    wire::Time,
};
use authority_presentation::{Message, MessageKind, MessageText};

use crate::{
    approvals::{APPROVE, presented},
    flow::prelude::*,
};

/// Returns the text about a request. `with_facts` adds its title and facts.
///
/// # Errors
/// If the store cannot be read.
pub(super) async fn compose(
    db: &mut Db,
    approval_id: &str,
    kind: MessageKind,
    with_facts: bool,
    public_url: &str,
) -> QueryResult<MessageText> {
    let approval: Approval =
        approvals::table.find(approval_id).select(Approval::as_select()).first(db).await?;
    let name: Option<String> = principals::table
        .filter(principals::tenant_id.eq(&approval.tenant_id))
        .filter(principals::id.eq(&approval.subject))
        .select(principals::display_name)
        .first(db)
        .await
        .optional()?;
    let facts = if with_facts { presented(db, &approval).await? } else { None };
    let time = |at: Option<Time>| at.and_then(Time::moment).unwrap_or_default();
    let mut permitted = permitted_roles(APPROVE);
    permitted.retain(|role| role != "owner");
    Ok(MessageText::of(&Message {
        kind,
        action: &approval.action,
        agent: name.as_deref().unwrap_or(&approval.subject),
        asked_at: time(approval.created_at),
        expires_at: time(approval.expires_at),
        needed: approval.needed,
        permitted_roles: &permitted,
        required_roles: &approval.roles,
        facts: facts.as_ref(),
        link: &format!("{public_url}/console/approvals/{}", approval_id.replace(':', "%3A")),
    }))
}
