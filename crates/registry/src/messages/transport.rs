//! Sends a message over a channel.

use std::sync::Arc;

use authority_keys::Keys;
use authority_presentation::{MessageText, mattermost, slack, teams};
use authority_process::clock::Clock;
use authority_webhook::{
    destination::UrlRules,
    retry::{Answer, ErrorClass},
};
use futures_util::future::BoxFuture;
use serde_json::Value;

use super::{mail::Mailer, refusal::Refusal};

/// A message to the webhook of a chat.
pub struct ChatPost {
    pub url: String,
    pub body: Value,
    /// Whether the address must be public, without the installation's exceptions.
    pub public_only: bool,
}

/// Sends a POST to a vetted address. Returns the class of the failure if there was no response.
pub type Post =
    Arc<dyn Fn(ChatPost) -> BoxFuture<'static, Result<Answer, ErrorClass>> + Send + Sync>;

pub(super) struct Transport {
    pub(super) keys: Keys,
    pub(super) clock: Clock,
    pub(super) post: Post,
    /// `None` if the installation sends no e-mail.
    pub(super) mailer: Option<Mailer>,
}

/// The receiver of a message.
#[derive(Clone, Debug)]
pub(super) struct Receiver {
    pub(super) channel_id: String,
    pub(super) kind: String,
    /// Whether the channel is a person's.
    pub(super) is_own: bool,
    /// The address of an e-mail.
    pub(super) target: String,
    pub(super) sealed_url: Option<Vec<u8>>,
}

impl Transport {
    /// Sends a message with an id, which is the same in each attempt.
    ///
    /// # Errors
    /// The reason why the receiver did not accept the message.
    pub(super) async fn send(
        &self,
        to: &Receiver,
        id: &str,
        text: &MessageText,
    ) -> Result<(), Refusal> {
        let sent = self.send_once(to, id, text).await;
        let class =
            sent.as_ref().map_or_else(|refusal| refusal.class.clone(), |()| "ok".to_owned());
        let kind = to.kind.clone();
        metrics::counter!("authority_message_attempts_total", "kind" => kind, "class" => class)
            .increment(1);
        sent
    }

    async fn send_once(&self, to: &Receiver, id: &str, text: &MessageText) -> Result<(), Refusal> {
        let body = match &*to.kind {
            "email" => return self.mail(&to.target, id, text).await,
            "slack" => slack(text),
            "mattermost" => mattermost(text),
            "teams" => teams(text),
            _ => return Err(Refusal::permanent("unknown_kind")),
        };
        let sealed = to.sealed_url.as_deref().unwrap_or_default();
        let url = self.keys.open_message_url(&to.channel_id, sealed);
        let url = url.map_err(|_| Refusal::permanent("unreadable_url"))?;
        match (self.post)(ChatPost { url, body, public_only: to.is_own }).await {
            Ok(answer) if answer.succeeded() => Ok(()),
            Ok(Answer { status: Some(status), retry_after }) => Err(Refusal {
                class: format!("status_{status}"),
                // 404, 410 and the like: the webhook was removed, or refuses this body.
                is_temporary: !(400..500).contains(&status) || matches!(status, 408 | 425 | 429),
                after: retry_after,
            }),
            Ok(Answer { status: None, .. }) => Err(Refusal::temporary(ErrorClass::Http.as_str())),
            Err(class) => Err(Refusal::temporary(class.as_str())),
        }
    }

    async fn mail(&self, to: &str, id: &str, text: &MessageText) -> Result<(), Refusal> {
        // Without a server, the message waits: the operator may set one again.
        let mailer =
            self.mailer.as_ref().ok_or_else(|| Refusal::temporary("mail_not_configured"))?;
        mailer.send(to, id, text, self.clock.now()).await
    }
}

/// The rules for the URL of a chat. Any person can add a channel, not only an admin. Private networks
/// that webhooks may reach are therefore refused for a person's channel.
pub(super) fn url_rules(webhooks: &UrlRules, for_tenant: bool) -> UrlRules {
    if for_tenant {
        return webhooks.clone();
    }
    UrlRules { addresses: webhooks.addresses.public_only(), ports: Vec::new(), ..webhooks.clone() }
}

#[cfg(test)]
mod tests {
    use authority_webhook::destination::{AddressRules, EndpointUrl};

    use super::*;

    #[test]
    fn only_a_tenants_chat_may_be_in_a_private_network() {
        let addresses = AddressRules::new(&["10.0.0.0/8".to_owned()], false).unwrap();
        let webhooks = UrlRules { ports: vec![8065], development: false, addresses };
        for (url, own, tenants) in [
            ("https://hooks.slack.com/services/x", true, true),
            ("https://chat.example.com:8065/hooks/x", false, true),
            ("https://10.0.0.1/hooks/x", false, true),
            ("https://127.0.0.1/hooks/x", false, false),
            ("http://chat.example.com/hooks/x", false, false),
        ] {
            let admits =
                |for_tenant| EndpointUrl::parse(url, &url_rules(&webhooks, for_tenant)).is_ok();
            assert_eq!((admits(false), admits(true)), (own, tenants), "{url}");
        }
    }
}
