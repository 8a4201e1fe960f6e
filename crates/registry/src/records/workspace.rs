//! Workspaces in which principals act.

use authority_model::{proto::registry::*, schema::workspaces, service::WorkspaceService};

use crate::flow::prelude::*;

impl RecordRow for Workspace {
    type List = ListWorkspacesRequest;
    const AUTHORITY: bool = true;

    fn filtered(by: &ListWorkspacesRequest) -> workspaces::BoxedQuery<'_, Pg> {
        let mut query = workspaces::table.into_boxed();
        if let Some(state) = &by.state {
            query = query.filter(workspaces::state.eq(state));
        }
        query
    }

    /// Refuses while rows refer to the workspace in lists of IDs. Foreign keys guard the other
    /// references.
    async fn before_delete(&self, tx: &mut WriteTx<'_>) -> Result<(), Error> {
        references::workspace_is_free(tx.db, &row_id(&self.tenant_id)?, &self.id).await
    }
}

impl_queries!(Workspace, workspaces);
impl_referenced!(Workspace, workspaces);

impl Entity for Workspace {
    const ON_DELETE: OnDelete<Self::State> = OnDelete::Erase;
}

impl_save!(Workspace, workspaces);
impl_end!(Workspace, workspaces);

#[tonic::async_trait]
impl WorkspaceService for Registry {
    async fn list_workspaces(
        &self,
        call: Request<ListWorkspacesRequest>,
    ) -> Reply<ListWorkspacesResponse> {
        self.list(call).await
    }

    async fn create_workspace(&self, call: Request<CreateWorkspaceRequest>) -> Reply<Workspace> {
        self.create(call).await
    }

    async fn get_workspace(&self, call: Request<GetWorkspaceRequest>) -> Reply<Workspace> {
        self.get(call).await
    }

    async fn update_workspace(&self, call: Request<UpdateWorkspaceRequest>) -> Reply<Workspace> {
        self.update(call).await
    }

    async fn delete_workspace(
        &self,
        call: Request<DeleteWorkspaceRequest>,
    ) -> Reply<DeleteWorkspaceResponse> {
        self.delete(call).await
    }
}
