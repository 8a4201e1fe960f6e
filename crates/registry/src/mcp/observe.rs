//! Reports of the definitions that an MCP server sends.
//!
//! A report creates quarantined tools, and marks pinned tools as drifted. It never pins a tool, and
//! never changes a pinned definition.

use std::collections::HashMap;

use authority_model::{proto::registry::*, wire::Json};

use super::{
    bound::Bound,
    definition::Definition,
    definitions,
    pin_states::{DRIFTED, PINNED, QUARANTINED},
    proposal, server,
};
use crate::flow::{
    operations::{admit, changeable},
    prelude::*,
    tenant,
};
use authority_decision::input_schema::InputAt;

/// The maximum number of a server's tools that are not deprecated.
const MOST: usize = 1000;

pub(super) async fn observe(
    registry: &Registry,
    call: Request<ObserveMcpServerRequest>,
) -> Reply<ObserveMcpServerResponse> {
    let key = IdempotencyKey::of(&call)?;
    let (caller, request, mut faults) = admit(call)?;
    let ObserveMcpServerRequest { slug, tenant_id, definitions } = request;
    let definitions = Definition::all(definitions, &mut faults);
    Error::unless_clean(faults)?;
    let tenant = server::tenant(registry, &caller, tenant_id.as_deref()).await?;
    let bound = Bound::of(registry, &caller, &tenant)?;
    let key = key.map(|key| key.within(Some(&tenant)));
    let by = caller.clone();
    let done = registry.idempotent(&caller, key, async move |db| {
        let server = server::lock(db, &tenant, &slug).await?;
        changeable(&server)?;
        let known = server::lock_tools(db, &server).await?;
        let count = known.len();
        let name = |tool: &Tool| tool.mcp.as_ref().map(|mcp| mcp.name.clone()).unwrap_or_default();
        let mut known: HashMap<String, Tool> =
            known.into_iter().map(|tool| (name(&tool), tool)).collect();
        let new = definitions.iter().filter(|one| !known.contains_key(&one.name)).count();
        if bound.is_none() && count + new > MOST {
            let text = format!("an MCP server has at most {MOST} tools that are not deprecated");
            return Err(Error::NotAllowed(text));
        }
        let tenant_slug = tenant::slug(db, by.tenant(), &server.tenant_id).await?;
        let (server, bound) = (&server, bound.as_ref());
        let mut report = Report { db, server, tenant_slug: &tenant_slug, bound, by: &by };
        let mut tools = Vec::with_capacity(definitions.len());
        for seen in &definitions {
            tools.push(report.take(known.remove(&seen.name), seen).await?);
        }
        Ok::<_, Error>(ObserveMcpServerResponse { tools })
    });
    let done = done.await?;
    registry.wait_for_graph::<Tool>().await;
    Ok(done.reply())
}

/// A report while it is stored.
struct Report<'a> {
    db: &'a mut Db,
    server: &'a ExternalApp,
    tenant_slug: &'a str,
    bound: Option<&'a Bound>,
    by: &'a Caller,
}

impl Report<'_> {
    async fn take(&mut self, was: Option<Tool>, seen: &Definition) -> Result<ObservedTool, Error> {
        let may_report = match (self.bound, &was) {
            (None, _) => true,
            (Some(bound), Some(tool)) => was_pinned(tool) && bound.may_call(&tool.actions),
            (Some(_), None) => false,
        };
        if !may_report {
            return Ok(observed(was, seen, "ignored"));
        }
        let Some(mut tool) = was else {
            let tool = self.created(seen).await?;
            return Ok(observed(Some(tool), seen, "created"));
        };
        let Some(mcp) = &mut tool.mcp else { return Ok(observed(None, seen, "ignored")) };
        if mcp.seen_digest == seen.digest {
            return Ok(observed(Some(tool), seen, "unchanged"));
        }
        let before = std::mem::replace(&mut mcp.seen_digest, seen.digest.clone());
        if mcp.pin == PINNED {
            DRIFTED.clone_into(&mut mcp.pin);
        }
        if mcp.pin == QUARANTINED {
            self.propose(&mut tool, seen);
        }
        definitions::insert(self.db, &tool, seen).await?;
        let tool = Tool::save(self.db, &tool).await?;
        definitions::remove(self.db, &tool, &before).await?;
        Ok(observed(Some(tool), seen, "changed"))
    }

    /// Creates a quarantined tool.
    async fn created(&mut self, seen: &Definition) -> Result<Tool, Error> {
        let (server, by) = (self.server, self.by);
        let slug = server.mcp.as_ref().map(|mcp| mcp.slug.as_str()).unwrap_or_default();
        let mut tool = Tool {
            tenant_id: server.tenant_id.clone(),
            name: seen.shown_name(),
            actions: vec![proposal::action(slug, &seen.name)],
            input_at: Some(InputAt::Arguments.word().to_owned()),
            mcp: Some(McpTool {
                server_id: server.id.clone(),
                name: seen.name.clone(),
                pin: QUARANTINED.to_owned(),
                seen_digest: seen.digest.clone(),
                rounds: Some("ask".to_owned()),
                ..McpTool::default()
            }),
            metadata: Some(Json::default()),
            ..Tool::default()
        };
        tool.stamp_created(tool.new_id(self.tenant_slug)?, by.actor.clone());
        self.propose(&mut tool, seen);
        let tool = Tool::insert(self.db, &tool).await?;
        definitions::insert(self.db, &tool, seen).await?;
        Ok(tool)
    }

    /// Sets the fields that follow from the definition, until the definition is pinned.
    fn propose(&self, tool: &mut Tool, seen: &Definition) {
        let is_trusted = self.server.mcp.as_ref().is_some_and(|mcp| mcp.trusted_annotations);
        let (declaration, classification) = proposal::declaration(&seen.object, is_trusted);
        tool.action_declaration = Some(declaration);
        tool.action_risk_classification = Some(classification);
        tool.function_signature = seen.signature();
    }
}

/// Whether a definition of the tool was pinned.
fn was_pinned(tool: &Tool) -> bool {
    tool.mcp.as_ref().is_some_and(|mcp| mcp.pin != QUARANTINED)
}

fn observed(tool: Option<Tool>, seen: &Definition, change: &str) -> ObservedTool {
    let (id, mcp) = tool.map(|tool| (tool.id, tool.mcp)).unzip();
    ObservedTool {
        name: seen.name.clone(),
        id,
        definition_digest: seen.digest.clone(),
        pin: mcp.flatten().map(|mcp| mcp.pin),
        change: change.to_owned(),
    }
}
