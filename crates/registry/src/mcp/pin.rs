//! Pins the definition of an MCP server's tool: the signed act of a person who has read it.

use authority_decision::input_schema::check;
use authority_model::{proto::registry::*, schema::tools, state::ToolState, wire::Json};
use diesel::{PgArrayExpressionMethods, dsl::sql};
use serde_json::Value;

use super::{definition::Definition, definitions, pin_states::PINNED};
use crate::{
    approvals::{Statement, Terms, sign},
    flow::{
        operations::{changeable, or_not_found},
        prelude::*,
        version::{IfMatch, tagged},
    },
    records::{tool_schema, tool_warnings},
};

pub(crate) async fn pin(registry: &Registry, call: Request<PinToolRequest>) -> Reply<Tool> {
    let (if_match, key) = (IfMatch::of(call.metadata()), IdempotencyKey::of(&call)?);
    let (caller, request) = admitted(call)?;
    let (keys, clock, by) = (registry.keys.clone(), registry.clock.clone(), caller.clone());
    let pinned = registry.idempotent(&caller, key, async move |db| {
        let was = or_not_found(Tool::lock(db, by.tenant(), &request.id).await, &request.id)?;
        if_match.check(&was)?;
        changeable(&was)?;
        let question = check_newest(&was, &request)?;
        check_alone(db, &was).await?;
        let definition = definitions::pin(db, &was, &request.definition_digest).await?;
        let mut row = with_pin(&was, request, &definition);
        row.warnings = warnings(db, &row, &was, &by).await?;
        let unchecked = schema(&mut row, &definition);
        row.warnings.extend(unchecked);
        row.warnings.extend(tool_schema::warnings(&row));
        let terms = Terms { tenant_id: row_id(&was.tenant_id)?, about: &was.id, question };
        sign(db, &by, &keys, &terms, Statement::pins(), clock.now()).await?;
        Ok::<_, Error>(Tool::save(db, &row).await?)
    });
    let pinned = pinned.await?;
    registry.wait_for_graph::<Tool>().await;
    Ok(tagged(pinned.reply()))
}

/// Checks that the person has read the newest seen definition. Returns the bytes of its digest.
fn check_newest(tool: &Tool, request: &PinToolRequest) -> Result<[u8; 32], Error> {
    let Some(mcp) = &tool.mcp else {
        let text = "the tool has no definition to pin: it belongs to no MCP server";
        return Err(Error::NotAllowed(text.to_owned()));
    };
    if mcp.seen_digest != request.definition_digest {
        let text = format!(
            "another definition was seen since; read the definition `{}` and pin that one",
            mcp.seen_digest
        );
        return Err(Error::NotAllowed(text));
    }
    let invalid = || Error::field("definition_digest", "must be `sha256:` and 64 hex digits");
    let digits = mcp.seen_digest.strip_prefix("sha256:").ok_or_else(invalid)?;
    let bytes = hex::decode(digits).map_err(|_| invalid())?;
    bytes.try_into().map_err(|_| invalid())
}

/// Refuses the tool if another pinned tool performs the same action. A decision on the action could
/// then be used for a call of the other tool.
async fn check_alone(db: &mut Db, tool: &Tool) -> Result<(), Error> {
    let other: Option<String> = tools::table
        .filter(tools::tenant_id.eq(&tool.tenant_id))
        .filter(tools::id.ne(&tool.id))
        .filter(tools::state.ne(ToolState::Deprecated))
        .filter(sql::<Bool>("mcp ->> 'definition_digest' IS NOT NULL"))
        .filter(tools::actions.overlaps_with(&tool.actions))
        .select(tools::id)
        .first(db)
        .await
        .optional()?;
    match other {
        None => Ok(()),
        Some(other) => Err(Error::NotAllowed(format!(
            "the pinned tool `{other}` performs the same action; change the `actions` of either tool"
        ))),
    }
}

/// Returns the tool with its pin, and with the declaration that the person chose.
fn with_pin(was: &Tool, request: PinToolRequest, definition: &Definition) -> Tool {
    let mut row = was.clone();
    row.function_signature = definition.signature();
    row.action_declaration = request.action_declaration.or(row.action_declaration);
    row.action_risk_classification =
        request.action_risk_classification.or(row.action_risk_classification);
    if let Some(mcp) = &mut row.mcp {
        mcp.definition_digest = Some(request.definition_digest);
        PINNED.clone_into(&mut mcp.pin);
    }
    row
}

/// Returns the terms that change besides the pin. A tenant's admin makes no terms milder: neither the
/// terms of a tool that was pinned before, nor the terms of other tools for the same actions.
async fn warnings(db: &mut Db, row: &Tool, was: &Tool, by: &Caller) -> Result<Vec<String>, Error> {
    let unpinned = Tool { mcp: row.mcp.clone(), ..was.clone() };
    let warnings = tool_warnings::of(row, Some(&unpinned), db).await?;
    if by.tenant().is_some() {
        let is_first = was.mcp.as_ref().is_none_or(|mcp| mcp.definition_digest.is_none());
        if !is_first {
            tool_warnings::check_not_milder(&warnings)?;
        }
        tool_warnings::check_not_milder(&tool_warnings::of_others(row, db).await?)?;
    }
    Ok(warnings)
}

/// Sets the schema of the tool's arguments. Returns a warning for each reason why decisions can't
/// check it.
fn schema(row: &mut Tool, definition: &Definition) -> Vec<String> {
    let schema = definition.input_schema().cloned();
    let faults = schema.as_ref().map(|schema| check(&Value::Object(schema.clone())).faults);
    let faults = faults.unwrap_or_default();
    row.input_schema = schema.filter(|_| faults.is_empty()).map(Json);
    let warning = |fault: &authority_decision::input_schema::Fault| {
        format!("the definition's schema is not checked: `{}` {}", fault.pointer, fault.problem)
    };
    faults.iter().take(8).map(warning).collect()
}
