//! Projects: work in one workspace or across several.

use authority_model::{
    proto::registry::*, schema::projects, service::ProjectService, state::ProjectState,
};

use crate::flow::prelude::*;

impl RecordRow for Project {
    type List = ListProjectsRequest;
    const AUTHORITY: bool = true;

    fn filtered(by: &ListProjectsRequest) -> projects::BoxedQuery<'_, Pg> {
        let mut query = projects::table.into_boxed();
        if let Some(state) = &by.state {
            query = query.filter(projects::state.eq(state));
        }
        if let Some(workspace_id) = &by.workspace_id {
            query = query.filter(projects::workspace_id.eq(workspace_id));
        }
        query
    }

    fn validate_record(&self, found: &mut Violations) {
        if self.workspace_id.is_none() && self.visible_in_workspaces.is_empty() {
            found
                .add("workspace_id", "is required unless `visible_in_workspaces` lists workspaces");
        }
    }

    async fn before_save(
        &mut self,
        _was: Option<&Self>,
        tx: &mut WriteTx<'_>,
    ) -> Result<(), Error> {
        let mut known = Known::of(row_id(&self.tenant_id)?, Self::KIND);
        known.workspaces(tx.db, "visible_in_workspaces", &self.visible_in_workspaces).await?;
        known.all()
    }
}

impl_queries!(Project, projects);
impl_referenced!(Project, projects);

impl Entity for Project {
    const ON_DELETE: OnDelete<Self::State> = OnDelete::End(ProjectState::Archived);
}

impl_save!(Project, projects);
impl_end!(Project, projects);

#[tonic::async_trait]
impl ProjectService for Registry {
    async fn list_projects(
        &self,
        call: Request<ListProjectsRequest>,
    ) -> Reply<ListProjectsResponse> {
        self.list(call).await
    }

    async fn create_project(&self, call: Request<CreateProjectRequest>) -> Reply<Project> {
        self.create(call).await
    }

    async fn get_project(&self, call: Request<GetProjectRequest>) -> Reply<Project> {
        self.get(call).await
    }

    async fn update_project(&self, call: Request<UpdateProjectRequest>) -> Reply<Project> {
        self.update(call).await
    }

    async fn delete_project(
        &self,
        call: Request<DeleteProjectRequest>,
    ) -> Reply<DeleteProjectResponse> {
        self.delete(call).await
    }
}
