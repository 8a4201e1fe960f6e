//! The stored texts of definitions.

use authority_model::{proto::registry::Tool, schema::tool_definitions, wire::Json};
use tonic::Response;

use super::definition::Definition;
use crate::flow::prelude::*;
use authority_store as store;

/// Stores the newest seen definition of a tool.
pub(super) async fn insert(db: &mut Db, tool: &Tool, seen: &Definition) -> QueryResult<()> {
    diesel::insert_into(tool_definitions::table)
        .values((
            tool_definitions::tenant_id.eq(&tool.tenant_id),
            tool_definitions::tool_id.eq(&tool.id),
            tool_definitions::digest.eq(&seen.digest),
            tool_definitions::definition.eq(&seen.text),
        ))
        .on_conflict_do_nothing()
        .execute(db)
        .await?;
    Ok(())
}

/// Deletes a definition that is no longer the newest, unless a person pinned it.
pub(super) async fn remove(db: &mut Db, tool: &Tool, digest: &str) -> QueryResult<()> {
    diesel::delete(tool_definitions::table.find((&tool.id, digest)))
        .filter(tool_definitions::tenant_id.eq(&tool.tenant_id))
        .filter(tool_definitions::pinned.eq(false))
        .execute(db)
        .await?;
    Ok(())
}

/// Marks a definition as pinned, and returns it.
pub(super) async fn pin(db: &mut Db, tool: &Tool, digest: &str) -> Result<Definition, Error> {
    let text: String = diesel::update(tool_definitions::table.find((&tool.id, digest)))
        .filter(tool_definitions::tenant_id.eq(&tool.tenant_id))
        .set(tool_definitions::pinned.eq(true))
        .returning(tool_definitions::definition)
        .get_result(db)
        .await?;
    Definition::stored(&text).map_err(|error| unreadable(&error))
}

/// Returns a tool with the texts of its definitions.
pub(crate) async fn with_texts(
    registry: &Registry,
    caller: &Caller,
    mut found: Response<Tool>,
) -> Reply<Tool> {
    if found.get_ref().mcp.is_none() {
        return Ok(found);
    }
    let tool = found.get_ref().clone();
    let read = registry.store.read_tx(&caller.scope(), async move |db| {
        Ok::<_, Error>(of(db, std::slice::from_ref(&tool)).await?)
    });
    let mut texts = read.await?;
    if let Some(mcp) = &mut found.get_mut().mcp {
        let mut text = |digest: &str| {
            let place = texts.iter().position(|(_, own, _)| own == digest);
            place.map(|place| object(&texts.swap_remove(place).2)).transpose()
        };
        mcp.definition = mcp.definition_digest.as_deref().map(&mut text).transpose()?.flatten();
        if mcp.definition_digest.as_ref() != Some(&mcp.seen_digest) {
            mcp.seen_definition = text(&mcp.seen_digest)?;
        }
    }
    Ok(found)
}

/// Returns the definitions of tools: the tool's id, the digest and the text.
pub(super) async fn of(db: &mut Db, tools: &[Tool]) -> QueryResult<Vec<(String, String, String)>> {
    let ids: Vec<&str> = tools.iter().map(|tool| tool.id.as_str()).collect();
    let digests = tools.iter().filter_map(|tool| tool.mcp.as_ref()).flat_map(|mcp| {
        mcp.definition_digest.as_deref().into_iter().chain([mcp.seen_digest.as_str()])
    });
    let digests: Vec<&str> = digests.collect();
    tool_definitions::table
        .filter(tool_definitions::tool_id.eq_any(ids))
        .filter(tool_definitions::digest.eq_any(digests))
        .select((tool_definitions::tool_id, tool_definitions::digest, tool_definitions::definition))
        .load(db)
        .await
}

/// Reads a stored text.
pub(super) fn object(text: &str) -> Result<Json, Error> {
    serde_json::from_str(text).map(Json).map_err(|error| unreadable(&error))
}

fn unreadable(error: &serde_json::Error) -> Error {
    Error::Store(store::Error::Internal(format!("unreadable definition of a tool: {error}")))
}
