//! Requests to push services: without a body, and to the URLs that `push_rules.rs` permits.

use authority_webhook::{
    destination::{EndpointUrl, UrlError},
    retry::{Answer, ErrorClass, retry_after},
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Uri, header};
use http_body_util::Full;
use tokio::time::Instant;

use super::{
    client::{Outgoing, WHOLE, host_header},
    deliveries::Deliveries,
    places::count_held,
    push_rules::push_url,
};

const AGENT: HeaderValue = HeaderValue::from_static("agent-authority-push/1");
const NOTHING: HeaderValue = HeaderValue::from_static("0");

impl Deliveries {
    /// Parses the URL of a push service.
    ///
    /// The URL must use https and port 443. Development mode also permits other ports and the
    /// loopback address.
    pub(crate) fn push_url(&self, text: &str) -> Result<EndpointUrl, UrlError> {
        push_url(text, &self.0.push_rules)
    }

    /// Sends a POST without a body, with these headers.
    ///
    /// # Errors
    /// The class of the failure, if no response was received.
    pub(crate) async fn push(
        &self,
        url: &EndpointUrl,
        headers: HeaderMap,
    ) -> Result<Answer, ErrorClass> {
        let begun = Instant::now();
        let request = request(url, headers).map_err(|error| {
            tracing::error!(%error, "failed to build a push request");
            ErrorClass::Address
        })?;
        let client = &self.0.pushes;
        let sent = async {
            let connection = client.connect(url).await?;
            client.exchange(url, connection, request, begun + WHOLE).await
        };
        let sent = sent.await;
        count_held("push", begun.elapsed());
        let received = sent?;
        let now = self.0.clock.now();
        let retry_after = received.retry_after.as_deref().and_then(|value| retry_after(value, now));
        Ok(Answer { status: Some(received.status), retry_after })
    }
}

fn request(url: &EndpointUrl, mut headers: HeaderMap) -> Result<Outgoing, http::Error> {
    let uri: Uri = url.as_str().parse()?;
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let mut request = Request::post(path).body(Full::new(Bytes::new()))?;
    headers.insert(header::USER_AGENT, AGENT);
    headers.insert(header::HOST, host_header(url)?);
    headers.insert(header::CONTENT_LENGTH, NOTHING);
    *request.headers_mut() = headers;
    Ok(request)
}
