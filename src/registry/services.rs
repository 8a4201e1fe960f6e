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

/// Adds each service of the registry to the router's.
pub fn add_services(routes: &mut RoutesBuilder, registry: &Registry) {
    routes
        .add_service(TenantServiceServer::new(registry.clone()))
        .add_service(LegalEntityServiceServer::new(registry.clone()))
        .add_service(BillingAccountServiceServer::new(registry.clone()))
        .add_service(DomainServiceServer::new(registry.clone()))
        .add_service(PolicyServiceServer::new(registry.clone()))
        .add_service(WorkspaceServiceServer::new(registry.clone()))
        .add_service(ProjectServiceServer::new(registry.clone()))
        .add_service(TeamServiceServer::new(registry.clone()))
        .add_service(PrincipalServiceServer::new(registry.clone()))
        .add_service(ResourceServiceServer::new(registry.clone()))
        .add_service(ModelServiceServer::new(registry.clone()))
        .add_service(ToolServiceServer::new(registry.clone()))
        .add_service(ExternalAppServiceServer::new(registry.clone()))
        .add_service(AuditStreamServiceServer::new(registry.clone()))
        .add_service(PurposeServiceServer::new(registry.clone()))
        .add_service(MemberOfServiceServer::new(registry.clone()))
        .add_service(ActsInServiceServer::new(registry.clone()))
        .add_service(GrantedAccessToServiceServer::new(registry.clone()))
        .add_service(UsesServiceServer::new(registry.clone()))
        .add_service(AppliesToServiceServer::new(registry.clone()))
        .add_service(DelegationServiceServer::new(registry.clone()));
}
