//! The tools of requests as they are registered now, and how requests read by their declarations.

use authority_model::{
    proto::{
        approval::{Approval, ApprovalPresentation},
        registry::Tool,
    },
    record::Record,
    schema::tools,
    state::ToolState,
};
use diesel::PgArrayExpressionMethods;
use serde_json::{Map, Value};

use super::question;
use crate::flow::prelude::*;
use authority_decision::{
    Pattern,
    pattern::{covered, prefixes},
};
use authority_presentation::{Declaration, fill, version};

/// The tools that requests name, and the tools for the actions of requests that name none.
pub(super) struct Tools(Vec<Tool>);

impl Tools {
    /// # Errors
    /// If the store cannot be read.
    pub(super) async fn of(db: &mut Db, rows: &[Approval]) -> QueryResult<Self> {
        let requests = rows.iter().filter_map(|row| Some((row, &row.request.as_ref()?.0)));
        let (mut tenants, mut ids, mut patterns) = (Vec::new(), Vec::new(), Vec::new());
        for (row, request) in requests {
            tenants.push(row.tenant_id.clone());
            match tool_id(request) {
                Some(id) => ids.push(id.to_owned()),
                None => patterns.extend(names(&row.action)),
            }
        }
        if tenants.is_empty() {
            return Ok(Self(Vec::new()));
        }
        tenants.sort();
        tenants.dedup();
        patterns.sort();
        patterns.dedup();
        let performs =
            tools::state.eq(ToolState::Active).and(tools::actions.overlaps_with(patterns));
        tools::table
            .filter(tools::tenant_id.eq_any(tenants))
            .filter(tools::id.eq_any(ids).or(performs))
            .select(Tool::as_select())
            .load(db)
            .await
            .map(Self)
    }

    /// The tool that a request names.
    pub(super) fn named(&self, row: &Approval) -> Option<&Tool> {
        let id = tool_id(&row.request.as_ref()?.0)?;
        self.0.iter().find(|tool| tool.id == id && tool.tenant_id == row.tenant_id)
    }

    /// The declaration of the request's tool. If a request names no tool, the members on which all
    /// tools for its action agree.
    fn declaration(&self, row: &Approval, request: &Map<String, Value>) -> Declaration {
        if tool_id(request).is_some() {
            return self.named(row).map(declared).unwrap_or_default();
        }
        let performs = |tool: &&Tool| {
            let patterns: Vec<Pattern> =
                tool.actions.iter().filter_map(|text| text.parse().ok()).collect();
            tool.tenant_id == row.tenant_id
                && tool.known_state() == Some(ToolState::Active)
                && covered(&patterns, &row.action)
        };
        let all = self.0.iter().filter(performs).map(declared);
        all.reduce(|mut shared, other| {
            if shared.input_schema != other.input_schema {
                shared.input_schema = None;
            }
            let (presentation, at) = (&other.presentation, other.is_in_arguments);
            if (&shared.presentation, shared.is_in_arguments) != (presentation, at) {
                shared = Declaration::default();
            }
            shared
        })
        .unwrap_or_default()
    }

    /// Fills in how a request reads. Its `request` must be filled in already.
    pub(super) fn present(&self, row: &mut Approval) {
        let Some(request) = row.request.as_ref().map(|request| &request.0) else { return };
        let filled = fill(request, &self.declaration(row, request));
        row.presentation_version = version(&filled);
        row.presentation = Some(filled);
    }
}

/// Returns how the request of an approval reads. `None` if the request was erased.
///
/// # Errors
/// If the store cannot be read.
pub(crate) async fn presented(
    db: &mut Db,
    approval: &Approval,
) -> QueryResult<Option<ApprovalPresentation>> {
    let request = question::asked(db, approval).await?;
    let mut shown = Approval { request, presentation: None, ..approval.clone() };
    Tools::of(db, std::slice::from_ref(&shown)).await?.present(&mut shown);
    Ok(shown.presentation)
}

/// Refuses an act if people would now see the request differently. `shown` is the version that the
/// person saw.
pub(super) async fn check(
    db: &mut Db,
    row: &Approval,
    question: &[u8; 32],
    shown: Option<&str>,
) -> Result<(), Error> {
    let Some(shown) = shown else { return Ok(()) };
    let request = question::request(db, &row.decision_id, question).await?;
    let mut now = Approval { request, ..row.clone() };
    Tools::of(db, std::slice::from_ref(&now)).await?.present(&mut now);
    if now.presentation_version == shown {
        Ok(())
    } else {
        Err(Error::Refused(ErrorCode::PresentationDiffers))
    }
}

fn tool_id(request: &Map<String, Value>) -> Option<&str> {
    request.get("tool_id")?.as_str()
}

fn declared(tool: &Tool) -> Declaration {
    Declaration {
        presentation: tool.presentation.clone(),
        input_schema: tool.input_schema.as_ref().map(|schema| schema.0.clone()),
        is_in_arguments: tool.input_at.as_deref() == Some("arguments"),
    }
}

/// The patterns that cover an action.
fn names(action: &str) -> Vec<String> {
    let below = prefixes(action).map(|prefix| format!("{prefix}.*"));
    below.chain([action.to_owned(), "*".to_owned()]).collect()
}
