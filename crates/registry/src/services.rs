//! Every service of the registry, for the router.

use std::sync::Arc;

use authority_model::service::{self, Service};

use super::Registry;

/// Returns the services that need only the registry.
pub fn services(registry: Registry) -> Vec<Service> {
    let registry = Arc::new(registry);
    vec![
        service::tenant_service(registry.clone()),
        service::legal_entity_service(registry.clone()),
        service::billing_account_service(registry.clone()),
        service::domain_service(registry.clone()),
        service::policy_service(registry.clone()),
        service::workspace_service(registry.clone()),
        service::project_service(registry.clone()),
        service::team_service(registry.clone()),
        service::principal_service(registry.clone()),
        service::resource_service(registry.clone()),
        service::model_service(registry.clone()),
        service::tool_service(registry.clone()),
        service::external_app_service(registry.clone()),
        service::mcp_server_service(registry.clone()),
        service::audit_stream_service(registry.clone()),
        service::purpose_service(registry.clone()),
        service::member_of_service(registry.clone()),
        service::acts_in_service(registry.clone()),
        service::granted_access_to_service(registry.clone()),
        service::uses_service(registry.clone()),
        service::applies_to_service(registry.clone()),
        service::delegation_service(registry.clone()),
        service::stop_signal_service(registry.clone()),
        service::quarantine_service(registry.clone()),
        service::reality_anchor_service(registry.clone()),
        service::coupling_check_service(registry.clone()),
        service::drift_event_service(registry.clone()),
        service::state_machine_service(registry.clone()),
        service::state_library_service(registry.clone()),
        service::state_event_service(registry.clone()),
        service::consultant_service(registry.clone()),
        service::certification_service(registry.clone()),
        service::consultant_tenant_link_service(registry.clone()),
        service::white_label_config_service(registry.clone()),
        service::lead_service(registry.clone()),
    ]
}
