//! Every service of the registry, for the router.

use authority_model::proto::{
    delegation::delegation_service_server::DelegationServiceServer,
    registry::{
        acts_in_service_server::ActsInServiceServer,
        applies_to_service_server::AppliesToServiceServer,
        audit_stream_service_server::AuditStreamServiceServer,
        billing_account_service_server::BillingAccountServiceServer,
        domain_service_server::DomainServiceServer,
        external_app_service_server::ExternalAppServiceServer,
        granted_access_to_service_server::GrantedAccessToServiceServer,
        legal_entity_service_server::LegalEntityServiceServer,
        member_of_service_server::MemberOfServiceServer, model_service_server::ModelServiceServer,
        policy_service_server::PolicyServiceServer,
        principal_service_server::PrincipalServiceServer,
        project_service_server::ProjectServiceServer, purpose_service_server::PurposeServiceServer,
        resource_service_server::ResourceServiceServer, team_service_server::TeamServiceServer,
        tenant_service_server::TenantServiceServer, tool_service_server::ToolServiceServer,
        uses_service_server::UsesServiceServer, workspace_service_server::WorkspaceServiceServer,
    },
};
use tonic::service::RoutesBuilder;

use super::Registry;

impl Registry {
    /// Adds each service to the router's.
    pub fn serve(&self, routes: &mut RoutesBuilder) {
        routes
            .add_service(TenantServiceServer::new(self.clone()))
            .add_service(LegalEntityServiceServer::new(self.clone()))
            .add_service(BillingAccountServiceServer::new(self.clone()))
            .add_service(DomainServiceServer::new(self.clone()))
            .add_service(PolicyServiceServer::new(self.clone()))
            .add_service(WorkspaceServiceServer::new(self.clone()))
            .add_service(ProjectServiceServer::new(self.clone()))
            .add_service(TeamServiceServer::new(self.clone()))
            .add_service(PrincipalServiceServer::new(self.clone()))
            .add_service(ResourceServiceServer::new(self.clone()))
            .add_service(ModelServiceServer::new(self.clone()))
            .add_service(ToolServiceServer::new(self.clone()))
            .add_service(ExternalAppServiceServer::new(self.clone()))
            .add_service(AuditStreamServiceServer::new(self.clone()))
            .add_service(PurposeServiceServer::new(self.clone()))
            .add_service(MemberOfServiceServer::new(self.clone()))
            .add_service(ActsInServiceServer::new(self.clone()))
            .add_service(GrantedAccessToServiceServer::new(self.clone()))
            .add_service(UsesServiceServer::new(self.clone()))
            .add_service(AppliesToServiceServer::new(self.clone()))
            .add_service(DelegationServiceServer::new(self.clone()));
    }
}
