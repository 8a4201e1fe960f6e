//! The tool and the purpose that a request names, as they are registered now. Approvers cannot read
//! any other tools and purposes.

use std::collections::HashMap;

use authority_model::{
    proto::approval::{Approval, ApprovalPurpose, ApprovalTool},
    schema::{purposes, tools},
};

use crate::flow::prelude::*;
use authority_store as store;

/// A row's tenant, and the id or slug that a request names.
type Key = (String, String);
type ToolRow = (String, String, String, Option<String>);
type PurposeRow = (String, String, String, String, Option<String>);

/// Fills in the tools and purposes of approvals. Their `request` must be filled in already.
///
/// # Errors
/// If the store cannot be read.
pub(super) async fn fill(
    registry: &Registry,
    caller: &Caller,
    rows: &mut [Approval],
) -> Result<(), Error> {
    let (ids, slugs) = (all(rows, "tool_id"), all(rows, "purpose"));
    if ids.is_empty() && slugs.is_empty() {
        return Ok(());
    }
    let tenants: Vec<String> = rows.iter().map(|row| row.tenant_id.clone()).collect();
    let read = registry.store.read_tx(&caller.scope(), async move |db| {
        let tools: Vec<ToolRow> = tools::table
            .filter(tools::tenant_id.eq_any(&tenants))
            .filter(tools::id.eq_any(ids))
            .select((tools::tenant_id, tools::id, tools::name, tools::description))
            .load(db)
            .await?;
        let purposes: Vec<PurposeRow> = purposes::table
            .filter(purposes::tenant_id.eq_any(&tenants))
            .filter(purposes::slug.eq_any(slugs))
            .select((
                purposes::tenant_id,
                purposes::id,
                purposes::slug,
                purposes::name,
                purposes::description,
            ))
            .load(db)
            .await?;
        Ok::<_, store::Error>((tools, purposes))
    });
    let (tools, purposes) = read.await?;
    let tools: HashMap<Key, ApprovalTool> = tools.into_iter().map(tool).collect();
    let purposes: HashMap<Key, ApprovalPurpose> = purposes.into_iter().map(purpose).collect();
    for row in rows {
        let key = |member| Some((row.tenant_id.clone(), named(row, member)?.to_owned()));
        let tool = key("tool_id").and_then(|key| tools.get(&key).cloned());
        let purpose = key("purpose").and_then(|key| purposes.get(&key).cloned());
        (row.tool, row.purpose) = (tool, purpose);
    }
    Ok(())
}

fn all(rows: &[Approval], member: &str) -> Vec<String> {
    rows.iter().filter_map(|row| named(row, member)).map(str::to_owned).collect()
}

/// Returns the text of a member of the request. `None` if the request was erased.
fn named<'r>(row: &'r Approval, member: &str) -> Option<&'r str> {
    row.request.as_ref()?.0.get(member)?.as_str()
}

fn tool((tenant_id, id, name, description): ToolRow) -> (Key, ApprovalTool) {
    ((tenant_id, id.clone()), ApprovalTool { id, name, description })
}

fn purpose((tenant_id, id, slug, name, description): PurposeRow) -> (Key, ApprovalPurpose) {
    ((tenant_id, slug.clone()), ApprovalPurpose { id, slug, name, description })
}
