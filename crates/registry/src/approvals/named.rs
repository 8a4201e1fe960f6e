//! The tool and the purpose that a request names, as they are registered now, and how the request
//! reads. Approvers cannot read any other tools and purposes.

use std::collections::HashMap;

use authority_model::{
    proto::{
        approval::{Approval, ApprovalPurpose, ApprovalTool},
        registry::Tool,
    },
    schema::purposes,
};

use super::presentation::Tools;
use crate::flow::prelude::*;
use authority_store as store;

/// A row's tenant, and the slug that a request names.
type Key = (String, String);
type PurposeRow = (String, String, String, String, Option<String>);

/// Fills in the tools, purposes and presentations of approvals. Their `request` must be filled in
/// already.
///
/// # Errors
/// If the store cannot be read.
pub(super) async fn fill(
    registry: &Registry,
    caller: &Caller,
    rows: &mut [Approval],
) -> Result<(), Error> {
    let slugs: Vec<String> =
        rows.iter().filter_map(|row| named(row, "purpose")).map(str::to_owned).collect();
    let tenants: Vec<String> = rows.iter().map(|row| row.tenant_id.clone()).collect();
    let asked = rows.to_vec();
    let read = registry.store.read_tx(&caller.scope(), async move |db| {
        let tools = Tools::of(db, &asked).await?;
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
    let purposes: HashMap<Key, ApprovalPurpose> = purposes.into_iter().map(purpose).collect();
    for row in rows {
        let key = |member| Some((row.tenant_id.clone(), named(row, member)?.to_owned()));
        row.purpose = key("purpose").and_then(|key| purposes.get(&key).cloned());
        row.tool = tools.named(row).map(tool);
        tools.present(row);
    }
    Ok(())
}

/// Returns the text of a member of the request. `None` if the request was erased.
fn named<'r>(row: &'r Approval, member: &str) -> Option<&'r str> {
    row.request.as_ref()?.0.get(member)?.as_str()
}

fn tool(tool: &Tool) -> ApprovalTool {
    let (id, name) = (tool.id.clone(), tool.name.clone());
    ApprovalTool { id, name, description: tool.description.clone() }
}

fn purpose((tenant_id, id, slug, name, description): PurposeRow) -> (Key, ApprovalPurpose) {
    ((tenant_id, slug.clone()), ApprovalPurpose { id, slug, name, description })
}
