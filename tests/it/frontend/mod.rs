//! The front end of the whole service: the errors of malformed calls over gRPC and REST, and the sizes of
//! requests and errors.

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

/// The demonstration tenant with a caller who holds an API key.
async fn demo() -> (TestApp, Client) {
    let app = TestApp::seeded().await;
    let demo = app.demo().await;
    let client = app.client(&demo.api_key);
    (app, client)
}

/// A question of the demonstration tenant over gRPC, with a given context.
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

/// A POST with a content type, with or without a credential.
fn post(client: &Client, path: &str, kind: &str) -> RequestBuilder {
    let request = client.http.post(format!("{}{path}", client.base));
    let request = if kind.is_empty() { request } else { request.header("content-type", kind) };
    if client.token.is_empty() { request } else { request.bearer_auth(&client.token) }
}

/// Status and body.
async fn told(answer: Response) -> (u16, Value) {
    (answer.status().as_u16(), answer.json().await.unwrap_or_default())
}
