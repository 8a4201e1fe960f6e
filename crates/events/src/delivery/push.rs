//! Requests to push services: without a body, and to public addresses only.
//!
//! Any person can name a push service, not only managers of endpoints. Private networks that
//! webhooks may reach are therefore refused for pushes.

use authority_webhook::{
    destination::{EndpointUrl, UrlError, UrlRules},
    retry::{Answer, ErrorClass, retry_after},
};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Uri, header};
use http_body_util::Full;
use tokio::time::Instant;

use super::{
    Deliveries,
    client::{Outgoing, WHOLE, host_header},
    places::count_held,
};

const AGENT: HeaderValue = HeaderValue::from_static("agent-authority-push/1");
const NOTHING: HeaderValue = HeaderValue::from_static("0");
const PORT: u16 = 443;

/// Derives the URL rules for pushes from the rules for webhooks.
pub(super) fn rules(webhooks: &UrlRules) -> UrlRules {
    UrlRules {
        ports: Vec::new(),
        development: webhooks.development,
        addresses: webhooks.addresses.public_only(),
    }
}

fn url(text: &str, rules: &UrlRules) -> Result<EndpointUrl, UrlError> {
    let url = EndpointUrl::parse(text, rules)?;
    match url.port() {
        port if port != PORT && !rules.development => {
            Err(UrlError::Port { port, allowed: PORT.to_string() })
        }
        _ => Ok(url),
    }
}

impl Deliveries {
    /// Parses the URL of a push service.
    ///
    /// The URL must use https and port 443. Development mode also permits other ports and the
    /// loopback address.
    pub(crate) fn push_url(&self, text: &str) -> Result<EndpointUrl, UrlError> {
        url(text, &self.0.push_rules)
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

#[cfg(test)]
mod tests {
    use authority_webhook::destination::AddressRules;

    use super::*;

    #[test]
    fn what_is_open_to_webhooks_is_closed_to_pushes() {
        let allowed = ["10.0.0.0/8".to_owned()];
        let addresses = AddressRules::new(&allowed, false).unwrap();
        let webhooks = UrlRules { ports: vec![9443], development: false, addresses };
        let pushes = rules(&webhooks);
        for (text, to_webhooks, to_pushes) in [
            ("https://push.example.com/send/x", true, true),
            ("https://push.example.com:443/send/x", true, true),
            ("https://push.example.com:8443/send/x", true, false),
            ("https://push.example.com:9443/send/x", true, false),
            ("https://10.0.0.1/send/x", true, false),
            ("https://127.0.0.1/send/x", false, false),
            ("http://push.example.com/send/x", false, false),
        ] {
            assert_eq!(EndpointUrl::parse(text, &webhooks).is_ok(), to_webhooks, "{text}");
            assert_eq!(url(text, &pushes).is_ok(), to_pushes, "{text}");
        }
        let name = ["10.0.0.1".parse().unwrap()];
        assert!(webhooks.addresses.vet(&name).is_ok() && pushes.addresses.vet(&name).is_err());
    }
}
