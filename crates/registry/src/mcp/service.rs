//! The service that gateways in front of MCP servers use.

use authority_model::{
    proto::registry::{
        GetMcpServerRequest, GetMcpServerResponse, LookUpMcpResourceRequest,
        LookUpMcpResourceResponse, ObserveMcpServerRequest, ObserveMcpServerResponse,
    },
    service::McpServerService,
};

use super::{observe, resource, server};
use crate::flow::prelude::*;

#[tonic::async_trait]
impl McpServerService for Registry {
    async fn get_mcp_server(
        &self,
        call: Request<GetMcpServerRequest>,
    ) -> Reply<GetMcpServerResponse> {
        server::get(self, call).await
    }

    async fn look_up_mcp_resource(
        &self,
        call: Request<LookUpMcpResourceRequest>,
    ) -> Reply<LookUpMcpResourceResponse> {
        resource::look_up(self, call).await
    }

    async fn observe_mcp_server(
        &self,
        call: Request<ObserveMcpServerRequest>,
    ) -> Reply<ObserveMcpServerResponse> {
        observe::observe(self, call).await
    }
}
