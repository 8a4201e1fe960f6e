//! The headers of answers that show limits.

use reqwest::Response;
use serde_json::Value;
use tonic::metadata::MetadataMap;

use super::Client;

/// The headers for limits of one answer. Absent headers are empty.
#[derive(Debug)]
pub(crate) struct Limits {
    pub(crate) status: u16,
    /// The remaining calls.
    pub(crate) left: String,
    /// The limits themselves.
    pub(crate) policy: String,
}

impl Limits {
    pub(crate) fn of(answer: &Response) -> Self {
        let shown = |name: &str| answer.headers().get(name).map(|value| value.to_str().unwrap());
        let [left, policy] = ["ratelimit", "ratelimit-policy"].map(shown);
        let text = |value: Option<&str>| value.unwrap_or_default().to_owned();
        Self { status: answer.status().as_u16(), left: text(left), policy: text(policy) }
    }

    /// Returns the remaining calls that an answer over gRPC shows.
    pub(crate) fn in_metadata(metadata: &MetadataMap) -> String {
        let shown = metadata.get("ratelimit").map(|value| value.to_str().unwrap());
        shown.unwrap_or_default().to_owned()
    }

    /// Makes a call and also returns the body.
    pub(crate) async fn of_call(
        client: &Client,
        method: &str,
        path: &str,
        body: Option<&Value>,
        headers: &[(&str, &str)],
    ) -> (Self, Value) {
        let request =
            client.http.request(method.parse().unwrap(), format!("{}{path}", client.base));
        let request = headers.iter().fold(request, |all, (name, value)| all.header(*name, *value));
        let request = body.into_iter().fold(request, reqwest::RequestBuilder::json);
        let answer = request.bearer_auth(&client.token).send().await.unwrap();
        (Self::of(&answer), answer.json().await.unwrap_or_default())
    }
}
