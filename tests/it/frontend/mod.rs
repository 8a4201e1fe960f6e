//! Errors for malformed calls over gRPC and REST, and size limits of requests and errors, tested on
//! the whole service.

mod grpc;
mod limits;
mod refusals;
mod rest;

use authority_model::proto::runtime::{
    EvaluateRequest, runtime_service_client::RuntimeServiceClient,
};
use reqwest::{RequestBuilder, Response};
use serde_json::Value;
use tonic::{Request, metadata::MetadataValue, transport::Channel};

use crate::support::{Client, TestApp, evaluate};

const EVALUATE: &str = "/authority.runtime.v1.RuntimeService/Evaluate";

/// Starts the demonstration tenant. Returns a client that has its API key.
async fn demo() -> (TestApp, Client) {
    let app = TestApp::seeded().await;
    let demo = app.demo().await;
    let client = app.client(&demo.api_key);
    (app, client)
}

/// Returns a gRPC evaluate request to the demonstration tenant, with this context.
#[track_caller]
fn asking(token: &str, context: &Value) -> Request<EvaluateRequest> {
    bearing(token, evaluate(context))
}

#[track_caller]
fn bearing<T>(token: &str, message: T) -> Request<T> {
    let mut request = Request::new(message);
    let bearer: MetadataValue<_> = format!("Bearer {token}").parse().unwrap();
    request.metadata_mut().insert("authorization", bearer);
    request
}

async fn runtime(app: &TestApp) -> RuntimeServiceClient<Channel> {
    RuntimeServiceClient::connect(app.base_url().to_owned()).await.unwrap()
}

/// Returns a POST with a content type. The client may have no credential.
fn post(client: &Client, path: &str, kind: &str) -> RequestBuilder {
    let request = client.http.post(format!("{}{path}", client.base));
    let request = if kind.is_empty() { request } else { request.header("content-type", kind) };
    if client.token.is_empty() { request } else { request.bearer_auth(&client.token) }
}

/// Returns the status and the body.
async fn told(answer: Response) -> (u16, Value) {
    (answer.status().as_u16(), answer.json().await.unwrap_or_default())
}
