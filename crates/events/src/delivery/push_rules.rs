//! The URLs of push services: public addresses only.
//!
//! Any person can name a push service, not only managers of endpoints. Private networks that
//! webhooks may reach are therefore refused for pushes.

use authority_webhook::destination::{EndpointUrl, UrlError, UrlRules};

const PORT: u16 = 443;

/// Derives the URL rules for pushes from the rules for webhooks.
pub(super) fn push_rules(webhooks: &UrlRules) -> UrlRules {
    UrlRules {
        ports: Vec::new(),
        development: webhooks.development,
        addresses: webhooks.addresses.public_only(),
    }
}

/// Parses the URL of a push service by these rules.
pub(super) fn push_url(text: &str, rules: &UrlRules) -> Result<EndpointUrl, UrlError> {
    let url = EndpointUrl::parse(text, rules)?;
    match url.port() {
        port if port != PORT && !rules.development => {
            Err(UrlError::Port { port, allowed: PORT.to_string() })
        }
        _ => Ok(url),
    }
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
        let pushes = push_rules(&webhooks);
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
            assert_eq!(push_url(text, &pushes).is_ok(), to_pushes, "{text}");
        }
        let name = ["10.0.0.1".parse().unwrap()];
        assert!(webhooks.addresses.vet(&name).is_ok() && pushes.addresses.vet(&name).is_err());
    }
}
