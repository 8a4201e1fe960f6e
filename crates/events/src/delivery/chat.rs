//! Requests to the webhooks of chats, without a signature.

use authority_webhook::{
    destination::{EndpointUrl, UrlRules},
    retry::{Answer, ErrorClass, retry_after},
};
use bytes::Bytes;
use http::{HeaderValue, Request, Uri, header};
use http_body_util::Full;
use tokio::time::Instant;

use super::{
    client::{Outgoing, WHOLE, host_header},
    deliveries::Deliveries,
    places::count_held,
};

const AGENT: HeaderValue = HeaderValue::from_static("agent-authority-message/1");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

impl Deliveries {
    /// Sends a POST with a JSON body to the webhook of a chat. With `public_only`, the address must be
    /// public, as for pushes. Otherwise the rules for webhook endpoints apply.
    ///
    /// # Errors
    /// The class of the failure, if no response was received.
    pub async fn post_to_chat(
        &self,
        url: &str,
        body: Bytes,
        public_only: bool,
    ) -> Result<Answer, ErrorClass> {
        let begun = Instant::now();
        let own = UrlRules {
            addresses: self.0.rules.addresses.public_only(),
            ports: Vec::new(),
            ..self.0.rules.clone()
        };
        let (client, rules) =
            if public_only { (&self.0.pushes, &own) } else { (&self.0.client, &self.0.rules) };
        // The rules may have changed since the URL was stored.
        let url = EndpointUrl::parse(url, rules).map_err(|_| ErrorClass::Address)?;
        let request = request(&url, body).map_err(|error| {
            tracing::error!(%error, "failed to build the request of a message");
            ErrorClass::Address
        })?;
        let sent = async {
            let connection = client.connect(&url).await?;
            client.exchange(&url, connection, request, begun + WHOLE).await
        };
        let sent = sent.await;
        count_held("message", begun.elapsed());
        let received = sent?;
        let now = self.0.clock.now();
        let retry_after = received.retry_after.as_deref().and_then(|value| retry_after(value, now));
        Ok(Answer { status: Some(received.status), retry_after })
    }
}

fn request(url: &EndpointUrl, body: Bytes) -> Result<Outgoing, http::Error> {
    let uri: Uri = url.as_str().parse()?;
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    Request::post(path)
        .header(header::USER_AGENT, AGENT)
        .header(header::HOST, host_header(url)?)
        .header(header::CONTENT_TYPE, JSON)
        .header(header::CONTENT_LENGTH, body.len())
        .body(Full::new(body))
}
