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
        quarantine_service_server::QuarantineServiceServer,
        resource_service_server::ResourceServiceServer,
        stop_signal_service_server::StopSignalServiceServer,
        team_service_server::TeamServiceServer, tenant_service_server::TenantServiceServer,
        tool_service_server::ToolServiceServer, uses_service_server::UsesServiceServer,
        workspace_service_server::WorkspaceServiceServer,
    },
    states::{
        state_event_service_server::StateEventServiceServer,
        state_library_service_server::StateLibraryServiceServer,
        state_machine_service_server::StateMachineServiceServer,
    },
};
use tonic::service::RoutesBuilder;

use super::Registry;

/// Adds each service of the registry to the router's; none reads a message over `limit` bytes.
pub fn add_services(routes: &mut RoutesBuilder, registry: &Registry, limit: usize) {
    macro_rules! add {
        ($($server:ident),* $(,)?) => {
            routes$(.add_service(
                $server::new(registry.clone()).max_decoding_message_size(limit),
            ))*;
        };
    }
    add!(
        TenantServiceServer,
        LegalEntityServiceServer,
        BillingAccountServiceServer,
        DomainServiceServer,
        PolicyServiceServer,
        WorkspaceServiceServer,
        ProjectServiceServer,
        TeamServiceServer,
        PrincipalServiceServer,
        ResourceServiceServer,
        ModelServiceServer,
        ToolServiceServer,
        ExternalAppServiceServer,
        AuditStreamServiceServer,
        PurposeServiceServer,
        MemberOfServiceServer,
        ActsInServiceServer,
        GrantedAccessToServiceServer,
        UsesServiceServer,
        AppliesToServiceServer,
        DelegationServiceServer,
        StopSignalServiceServer,
        QuarantineServiceServer,
        StateMachineServiceServer,
        StateLibraryServiceServer,
        StateEventServiceServer,
    );
}
