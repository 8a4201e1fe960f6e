//! Tools: functions that an agent may call, once granted.

use authority_model::{proto::registry::*, schema::tools, service::ToolService, state::ToolState};
use diesel::{dsl::sql, sql_types::Text};

use super::{tool_schema, tool_warnings};
use crate::{
    flow::prelude::*,
    mcp::{definitions, pin, record_rules},
    unknown_names,
};
use authority_api::identity::caller;
use authority_decision::input_schema::InputAt;

impl RecordRow for Tool {
    type List = ListToolsRequest;
    const AUTHORITY: bool = true;
    const TENANT_CHANGES: &'static [&'static str] = &[
        "name",
        "function_signature",
        "description",
        "input_schema",
        "actions",
        "requires",
        "access_level",
        // An update changes only parts of it that decisions do not read.
        "mcp",
        "notes",
        "tags",
        "metadata",
    ];

    fn filtered(by: &ListToolsRequest) -> tools::BoxedQuery<'_, Pg> {
        let mut query = tools::table.into_boxed();
        if let Some(state) = &by.state {
            query = query.filter(tools::state.eq(state));
        }
        if let Some(workspace_id) = &by.workspace_id {
            query = query.filter(tools::workspace_id.eq(workspace_id));
        }
        if let Some(server_id) = &by.server_id {
            query = query.filter(sql::<Bool>("mcp ->> 'server_id' = ").bind::<Text, _>(server_id));
        }
        if let Some(pin) = &by.pin {
            query = query.filter(sql::<Bool>("mcp ->> 'pin' = ").bind::<Text, _>(pin));
        }
        query
    }

    fn defaults(&mut self) {
        names::or(&mut self.input_at, InputAt::Context.word());
    }

    fn validate_record(&self, found: &mut Violations) {
        tool_schema::faults(self, found);
        authority_presentation::check(self, found);
    }

    async fn before_save(&mut self, was: Option<&Self>, tx: &mut WriteTx<'_>) -> Result<(), Error> {
        record_rules::complete_tool(self, was)?;
        self.warnings = tool_warnings::of(self, was, tx.db).await?;
        if tx.caller.tenant().is_some() {
            tool_warnings::check_not_milder(&self.warnings)?;
            if was.is_none() {
                check_undeclared(self)?;
                let avoided = tool_warnings::of_new(self, tx.db).await?;
                tool_warnings::check_not_milder(&avoided)?;
            }
        }
        self.warnings.extend(tool_schema::warnings(self));
        Ok(())
    }

    async fn before_delete(&self, tx: &mut WriteTx<'_>) -> Result<(), Error> {
        references::used_is_free(tx.db, &row_id(&self.tenant_id)?, &self.id).await
    }
}

/// Refuses a new tool with fields that only the installation's owner sets. A presentation is what
/// approvers are shown. A policy may permit more for a declared effect or risk than for none.
fn check_undeclared(tool: &Tool) -> Result<(), Error> {
    let declared = [
        ("presentation", tool.presentation.is_some()),
        ("action_declaration", tool.action_declaration.is_some()),
        ("action_risk_classification", tool.action_risk_classification.is_some()),
    ];
    match declared.into_iter().find(|(_, is_set)| *is_set) {
        None => Ok(()),
        Some((field, _)) => {
            Err(Error::Role(format!("only the installation's owner sets `{field}` of a tool")))
        }
    }
}

impl_queries!(Tool, tools);
impl_referenced!(Tool, tools);

impl Entity for Tool {
    const ON_DELETE: OnDelete<Self::State> = OnDelete::End(ToolState::Deprecated);
}

impl End for Tool {
    /// Ends the tool, and stores the list of loosened requirements.
    fn end<'c>(db: &'c mut Db, row: &'c Self, state: ToolState) -> QueryFuture<'c, Self> {
        Box::pin(async move {
            let ended = Self { state: state.to_string(), ..row.clone() };
            let warnings = tool_warnings::of(&ended, Some(row), db).await?;
            diesel::update(tools::table.find(&row.id))
                .filter(tools::tenant_id.eq(&row.tenant_id))
                .set((
                    tools::state.eq(state),
                    tools::warnings.eq(warnings),
                    tools::updated_at.eq(clock_timestamp()),
                ))
                .returning(Self::as_returning())
                .get_result(db)
                .await
        })
    }
}

impl Save for Tool {
    /// Also stores the requirements that the write changed. Only the server sets them.
    fn save<'c>(db: &'c mut Db, row: &Self) -> QueryFuture<'c, Self> {
        diesel::update(tools::table.find(&row.id))
            .filter(tools::tenant_id.eq(&row.tenant_id))
            .set((row, tools::warnings.eq(&row.warnings), tools::updated_at.eq(clock_timestamp())))
            .returning(Self::as_returning())
            .get_result(db)
    }
}

#[tonic::async_trait]
impl ToolService for Registry {
    async fn list_tools(&self, call: Request<ListToolsRequest>) -> Reply<ListToolsResponse> {
        self.list(call).await
    }

    async fn export_tools(
        &self,
        call: Request<ExportToolsRequest>,
    ) -> Replies<ExportToolsResponse> {
        self.export(call).await
    }

    async fn create_tool(&self, call: Request<CreateToolRequest>) -> Reply<Tool> {
        self.create(call).await
    }

    async fn get_tool(&self, call: Request<GetToolRequest>) -> Reply<Tool> {
        let caller = caller(&call)?;
        definitions::with_texts(self, &caller, self.get(call).await?).await
    }

    async fn update_tool(&self, call: Request<UpdateToolRequest>) -> Reply<Tool> {
        self.update(call).await
    }

    async fn delete_tool(&self, call: Request<DeleteToolRequest>) -> Reply<DeleteToolResponse> {
        self.delete(call).await
    }

    async fn pin_tool(&self, call: Request<PinToolRequest>) -> Reply<Tool> {
        pin::pin(self, call).await
    }

    async fn find_unknown_names(
        &self,
        call: Request<FindUnknownNamesRequest>,
    ) -> Reply<FindUnknownNamesResponse> {
        unknown_names::find(self, call).await
    }
}
