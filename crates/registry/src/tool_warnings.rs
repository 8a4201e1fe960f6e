//! What a tool makes stricter: a request that names no tool is bound by the strictest terms of all
//! that perform its action, so a new tool may hold what was allowed before.

use std::{collections::BTreeSet, sync::Arc};

use authority_model::{
    proto::registry::Tool,
    schema::{delegations, tools, uses},
    state::{DelegationState, ToolState},
};
use diesel::{QueryResult, prelude::*};

use authority_core::{
    graph::binding_tool,
    store::{Db, RunQueryDsl},
};
use authority_decision::{JoinedTerms, Pattern, records, stricter::stricter};

/// The most actions to list; a tool for `*` may affect very many.
const MOST: usize = 20;
/// The most actions to check, in order: the check must not delay the write.
const MOST_LOOKED_AT: usize = 1000;

/// What becomes stricter when `tool` replaces `was`, one line for each action in use.
pub(super) async fn of(tool: &Tool, was: Option<&Tool>, db: &mut Db) -> QueryResult<Vec<String>> {
    let Some(new) = binding_tool(tool.clone()) else { return Ok(Vec::new()) };
    if new.actions.is_empty() {
        return Ok(Vec::new());
    }
    let others: Vec<Tool> = tools::table
        .filter(tools::tenant_id.eq(&tool.tenant_id))
        .filter(tools::id.ne(&tool.id))
        .filter(tools::state.ne(ToolState::Deprecated))
        .select(Tool::as_select())
        .load(db)
        .await?;
    let others: Vec<_> = others.into_iter().filter_map(binding_tool).collect();
    let before: Vec<_> =
        others.iter().cloned().chain(was.cloned().and_then(binding_tool)).collect();
    let mut in_use: Vec<Pattern> = before.iter().flat_map(|tool| tool.actions.clone()).collect();
    in_use.extend(granted_patterns(&tool.tenant_id, db).await?);
    let mut found = Vec::new();
    for action in overlaps(&new.actions, &in_use).into_iter().take(MOST_LOOKED_AT) {
        let mut after = JoinedTerms::of(&new);
        joined(&others, &action).iter().for_each(|terms| after.join(terms));
        let stricter = stricter(joined(&before, &action).as_ref(), &after);
        if !stricter.is_empty() {
            found.push(format!("`{action}`: {}", stricter.join("; ")));
        }
    }
    let more = found.len().saturating_sub(MOST);
    found.truncate(MOST);
    if more > 0 {
        found.push(format!("and {more} actions more"));
    }
    Ok(found)
}

/// The joined terms of the tools that perform all actions of the pattern.
fn joined(tools: &[Arc<records::Tool>], action: &Pattern) -> Option<JoinedTerms> {
    let performs =
        |tool: &&Arc<records::Tool>| tool.actions.iter().any(|own| action.is_within(own));
    JoinedTerms::all(tools.iter().filter(performs).map(AsRef::as_ref))
}

/// The patterns of the actions that are granted to anyone.
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

/// The overlaps of the tool's patterns with those in use: the narrower of two that overlap.
fn overlaps(own: &[Pattern], in_use: &[Pattern]) -> BTreeSet<Pattern> {
    let each = own.iter().flat_map(|own| in_use.iter().map(move |used| (own, used)));
    each.filter_map(|(own, used)| {
        let narrower = if used.is_within(own) { Some(used) } else { None };
        narrower.or_else(|| own.is_within(used).then_some(own)).cloned()
    })
    .collect()
}
