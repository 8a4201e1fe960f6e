//! Calls over REST and gRPC, with any bytes as the body.

use std::{collections::HashSet, sync::LazyLock, time::Duration};

use bytes::{Buf as _, BufMut as _, Bytes};
use http::uri::PathAndQuery;
use prost_reflect::DescriptorPool;
use serde_json::{Value, json};
use tokio::time::timeout;
use tonic::{
    Request, Status,
    codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
    transport::Channel,
};
use tonic_types::StatusExt as _;

use super::{TestApp, http};

/// A caller, with or without a credential, at one address.
#[derive(Clone)]
pub(crate) struct Caller {
    client: reqwest::Client,
    channel: Channel,
    base: String,
    token: Option<String>,
}

impl Caller {
    #[track_caller]
    pub(crate) fn owner(app: &TestApp) -> Self {
        let base = String::from(app.base_url());
        Self {
            client: http(),
            channel: Channel::from_shared(base.clone()).unwrap().connect_lazy(),
            base,
            token: Some(String::from(app.owner_token())),
        }
    }

    /// Returns the same caller at another address of the service.
    #[track_caller]
    pub(crate) fn at(&self, base: &str) -> Self {
        let channel = Channel::from_shared(base.to_owned()).unwrap().connect_lazy();
        Self { channel, base: base.to_owned(), ..self.clone() }
    }

    pub(crate) fn with(&self, token: Option<&str>) -> Self {
        Self { token: token.map(str::to_owned), ..self.clone() }
    }

    /// Returns status and body. A body that is not JSON is returned as null.
    pub(crate) async fn rest(&self, verb: &str, path: &str, body: Option<Vec<u8>>) -> (u16, Value) {
        self.typed(verb, path, body, "application/json").await
    }

    pub(crate) async fn typed(
        &self,
        verb: &str,
        path: &str,
        body: Option<Vec<u8>>,
        content_type: &str,
    ) -> (u16, Value) {
        let method = reqwest::Method::from_bytes(verb.as_bytes()).unwrap();
        let mut failure = String::new();
        // The service may close a reused connection during a request. The next attempt opens a new
        // one.
        for _ in 0..4 {
            let mut request = self.client.request(method.clone(), format!("{}{path}", self.base));
            if let Some(token) = &self.token {
                request = request.bearer_auth(token);
            }
            if let Some(body) = &body {
                request = request.header("content-type", content_type).body(body.clone());
            }
            match request.send().await {
                Ok(answer) => {
                    let status = answer.status().as_u16();
                    let kind = answer.headers().get("content-type");
                    // The response may be a stream that stays open: its body is not read.
                    if kind.is_some_and(|kind| kind == "application/x-ndjson") {
                        return (status, Value::Null);
                    }
                    return (status, answer.json().await.unwrap_or_default());
                }
                Err(error) => failure = error.to_string(),
            }
        }
        (0, json!({ "error": failure }))
    }

    /// Calls an RPC with the bytes of a message.
    pub(crate) async fn grpc(&self, rpc: &str, message: Vec<u8>) -> Result<Bytes, Status> {
        let mut client = tonic::client::Grpc::new(self.channel.clone());
        client.ready().await.map_err(|error| Status::unavailable(error.to_string()))?;
        let mut request = Request::new(message);
        if let Some(token) = &self.token {
            let value = format!("Bearer {token}").parse().unwrap();
            request.metadata_mut().insert("authorization", value);
        }
        let path = PathAndQuery::try_from(rpc).unwrap();
        if !STREAMS.contains(rpc) {
            return Ok(client.unary(request, path, Raw).await?.into_inner());
        }
        let mut messages = client.server_streaming(request, path, Raw).await?.into_inner();
        // The stream may send no message for a while.
        let first = timeout(Duration::from_secs(3), messages.message()).await;
        Ok(first.unwrap_or(Ok(None))?.unwrap_or_default())
    }
}

/// The methods with streaming responses.
static STREAMS: LazyLock<HashSet<String>> = LazyLock::new(|| {
    let pool = DescriptorPool::decode(authority_model::DESCRIPTORS).unwrap();
    let methods = pool.services().flat_map(|service| service.methods().collect::<Vec<_>>());
    let streams = methods.filter(prost_reflect::MethodDescriptor::is_server_streaming);
    streams.map(|m| format!("/{}/{}", m.parent_service().full_name(), m.name())).collect()
});

/// Returns the fields that a gRPC error reports as invalid.
pub(crate) fn named(status: &Status) -> Vec<String> {
    let details = status.get_error_details();
    let violations = details.bad_request().map(|bad| bad.field_violations.clone());
    violations.unwrap_or_default().into_iter().map(|violation| violation.field).collect()
}

/// Returns the reason in the error's `ErrorInfo`.
pub(crate) fn reason(status: &Status) -> String {
    let details = status.get_error_details();
    details.error_info().map(|info| info.reason.clone()).unwrap_or_default()
}

/// A codec that transfers bytes unchanged.
#[derive(Clone, Default)]
struct Raw;

impl Codec for Raw {
    type Encode = Vec<u8>;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Raw {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, item: Vec<u8>, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put_slice(&item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}

/// Percent-encodes a text for a path segment or a query.
pub(crate) fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let code = |byte| {
        if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }
    };
    text.bytes().map(code).collect()
}
