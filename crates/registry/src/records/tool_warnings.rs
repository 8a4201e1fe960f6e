//! Warns about the requirements that a change to a tool tightens or loosens.
//!
//! A request without a tool must meet the strictest terms of all tools that perform its action. A
//! new tool may therefore hold requests that were allowed before, and removing a tool may allow
//! requests that were held.

use std::{collections::BTreeSet, sync::Arc};

use authority_model::{
    proto::registry::Tool,
    schema::{acts_in, delegations, tools, uses},
    state::{DelegationState, ToolState},
};
use diesel::{QueryResult, prelude::*};

use authority_decision::{
    JoinedTerms, Pattern,
    milder::{MILDER, milder},
    records,
    stricter::stricter,
};
use authority_graph::binding_tool;

use crate::flow::error::Error;
use authority_store::{Db, RunQueryDsl};

/// The maximum number of actions to list. A tool for `*` may affect very many.
const MOST: usize = 20;
/// The maximum number of actions to check, in order. The check must not delay the write.
const MOST_LOOKED_AT: usize = 1000;

/// Lists the terms that requests can avoid by naming a new tool. Only the terms of the named tool
/// apply to such a request. Without a tool, an action needs the access level `execute`.
pub(crate) async fn of_new(tool: &Tool, db: &mut Db) -> QueryResult<Vec<String>> {
    let Some(new) = binding_tool(tool.clone()) else { return Ok(Vec::new()) };
    let others = others(tool, db).await?;
    let mut in_use = granted_patterns(&tool.tenant_id, db).await?;
    in_use.extend(workspace_patterns(&tool.tenant_id, db).await?);
    in_use.extend(others.iter().flat_map(|tool| tool.actions.clone()));
    let terms = JoinedTerms::of(&new);
    let avoids =
        |action: &Pattern| Some(milder(&joined(&others, action).unwrap_or_default(), Some(&terms)));
    Ok(lines(overlaps(&new.actions, &in_use), MILDER, avoids))
}

/// Lists the terms of other tools that requests can avoid by naming this tool.
pub(crate) async fn of_others(tool: &Tool, db: &mut Db) -> QueryResult<Vec<String>> {
    let Some(own) = binding_tool(tool.clone()) else { return Ok(Vec::new()) };
    let others = others(tool, db).await?;
    let terms = JoinedTerms::of(&own);
    let avoids = |action: &Pattern| Some(milder(&joined(&others, action)?, Some(&terms)));
    let patterns: Vec<Pattern> = others.iter().flat_map(|tool| tool.actions.clone()).collect();
    Ok(lines(overlaps(&own.actions, &patterns), MILDER, avoids))
}

/// Refuses a change that makes terms milder. Only the installation's owner may make it.
pub(crate) fn check_not_milder(warnings: &[String]) -> Result<(), Error> {
    match warnings.iter().find_map(|warning| warning.strip_prefix(MILDER)) {
        None => Ok(()),
        Some(terms) => Err(Error::Role(format!(
            "only the installation's owner makes the terms of tools milder: {terms}"
        ))),
    }
}

/// Returns the other live tools of the tenant.
async fn others(tool: &Tool, db: &mut Db) -> QueryResult<Vec<Arc<records::Tool>>> {
    let others: Vec<Tool> = tools::table
        .filter(tools::tenant_id.eq(&tool.tenant_id))
        .filter(tools::id.ne(&tool.id))
        .filter(tools::state.ne(ToolState::Deprecated))
        .select(Tool::as_select())
        .load(db)
        .await?;
    Ok(others.into_iter().filter_map(binding_tool).collect())
}

/// Lists the terms that change when `tool` replaces `was`. The stricter terms come first, then the
/// milder terms.
///
/// Stricter terms have one line for each action in use.
pub(crate) async fn of(tool: &Tool, was: Option<&Tool>, db: &mut Db) -> QueryResult<Vec<String>> {
    let (new, old) = (binding_tool(tool.clone()), was.cloned().and_then(binding_tool));
    let others = others(tool, db).await?;
    let before: Vec<_> = others.iter().cloned().chain(old.clone()).collect();
    let after: Vec<_> = others.into_iter().chain(new.clone()).collect();
    let granted = granted_patterns(&tool.tenant_id, db).await?;
    let actions = |tool: &Option<Arc<records::Tool>>| {
        tool.as_ref().map(|tool| tool.actions.clone()).unwrap_or_default()
    };
    let mut in_use: Vec<Pattern> = before.iter().flat_map(|tool| tool.actions.clone()).collect();
    in_use.extend(granted.iter().cloned());
    let becomes_stricter = |action: &Pattern| {
        let after = joined(&after, action)?;
        Some(stricter(joined(&before, action).as_ref(), &after))
    };
    let mut found = lines(overlaps(&actions(&new), &in_use), "", becomes_stricter);
    // Includes actions that only the old tool performed.
    let mut own = actions(&old);
    own.extend(actions(&new));
    let mut in_use: Vec<Pattern> = after.iter().flat_map(|tool| tool.actions.clone()).collect();
    in_use.extend(granted);
    in_use.extend(actions(&old));
    let becomes_milder = |action: &Pattern| {
        let before = joined(&before, action)?;
        Some(milder(&before, joined(&after, action).as_ref()))
    };
    found.extend(lines(overlaps(&own, &in_use), MILDER, becomes_milder));
    if let (Some(old), Some(new), Some(was)) = (&old, &new, was) {
        found.extend(of_requests_that_name_it(old, new, tool, was));
    }
    Ok(found)
}

/// Returns a line for each action with a difference.
fn lines(
    actions: BTreeSet<Pattern>,
    begin: &str,
    differs: impl Fn(&Pattern) -> Option<Vec<String>>,
) -> Vec<String> {
    let mut found = Vec::new();
    let unchecked = actions.len().saturating_sub(MOST_LOOKED_AT);
    for action in actions.into_iter().take(MOST_LOOKED_AT) {
        let terms = differs(&action).unwrap_or_default();
        if !terms.is_empty() {
            found.push(format!("{begin}`{action}`: {}", terms.join("; ")));
        }
    }
    let more = found.len().saturating_sub(MOST);
    found.truncate(MOST);
    if more > 0 {
        found.push(format!("{begin}and {more} more actions"));
    }
    // A tenant's admin may not make terms milder. A line also refuses a change that was not checked.
    if unchecked > 0 {
        found.push(format!("{begin}{unchecked} actions were not checked"));
    }
    found
}

/// Lists the tool's old requirements that no longer apply to requests that name the tool.
fn of_requests_that_name_it(
    old: &records::Tool,
    new: &records::Tool,
    tool: &Tool,
    was: &Tool,
) -> Vec<String> {
    let mut terms = milder(&JoinedTerms::of(old), Some(&JoinedTerms::of(new)));
    if let Some(workspace) = was.workspace_id.as_ref().filter(|_| tool.workspace_id.is_none()) {
        terms.push(format!("allowed in every workspace instead of only in `{workspace}`"));
    }
    let added = |action: &&Pattern| !old.actions.iter().any(|own| action.is_within(own));
    let added: Vec<_> = new.actions.iter().filter(added).map(|own| format!("`{own}`")).collect();
    if !added.is_empty() {
        terms.push(format!("its callers may also perform {}", added.join(", ")));
    }
    if terms.is_empty() {
        return Vec::new();
    }
    vec![format!("{MILDER}requests that name this tool: {}", terms.join("; "))]
}

/// Returns the joined terms of the tools that perform all actions of the pattern.
fn joined(tools: &[Arc<records::Tool>], action: &Pattern) -> Option<JoinedTerms> {
    let performs =
        |tool: &&Arc<records::Tool>| tool.actions.iter().any(|own| action.is_within(own));
    JoinedTerms::all(tools.iter().filter(performs).map(AsRef::as_ref))
}

/// Returns the patterns of the actions that are granted to anyone.
async fn granted_patterns(tenant_id: &str, db: &mut Db) -> QueryResult<Vec<Pattern>> {
    let actions: Vec<Vec<String>> = delegations::table
        .filter(delegations::tenant_id.eq(tenant_id))
        .filter(delegations::state.ne(DelegationState::Revoked))
        .select(delegations::actions)
        .distinct()
        .load(db)
        .await?;
    let used: Vec<String> = uses::table
        .filter(uses::tenant_id.eq(tenant_id))
        .filter(uses::used_kind.eq("action"))
        .select(uses::used_id)
        .distinct()
        .load(db)
        .await?;
    let texts = actions.into_iter().flatten().chain(used).collect::<BTreeSet<_>>();
    Ok(texts.iter().filter_map(|text| text.parse().ok()).collect())
}

/// Returns the patterns of the actions that principals may perform in workspaces.
async fn workspace_patterns(tenant_id: &str, db: &mut Db) -> QueryResult<Vec<Pattern>> {
    let rows: Vec<Option<String>> = acts_in::table
        .filter(acts_in::tenant_id.eq(tenant_id))
        .select(acts_in::allowed_actions_json)
        .distinct()
        .load(db)
        .await?;
    let lists = rows.iter().flatten().filter_map(|json| serde_json::from_str(json).ok());
    let texts = lists.flat_map(|patterns: Vec<String>| patterns);
    Ok(texts.filter_map(|text| text.parse().ok()).collect())
}

/// Returns the narrower pattern of each overlap between a pattern of the tool and a pattern in use.
fn overlaps(own: &[Pattern], in_use: &[Pattern]) -> BTreeSet<Pattern> {
    let each = own.iter().flat_map(|own| in_use.iter().map(move |used| (own, used)));
    each.filter_map(|(own, used)| {
        let narrower = if used.is_within(own) { Some(used) } else { None };
        narrower.or_else(|| own.is_within(used).then_some(own)).cloned()
    })
    .collect()
}
