//! The settings of TLS: which combinations are refused, and the names of clients.

use std::net::IpAddr;

use super::{OpenToAll, Tls};

impl Tls {
    /// Whether the service accepts TLS, on every address.
    pub fn is_on(&self) -> bool {
        self.certificate_file.is_some()
    }

    /// The scheme of URLs of the service's own addresses.
    pub fn scheme(&self) -> &'static str {
        if self.is_on() { "https" } else { "http" }
    }

    /// The settings with names of clients, by surface.
    pub fn clients(&self) -> [(&'static str, OpenToAll, &[String]); 5] {
        [
            ("tls.admin_clients", OpenToAll::Admin, &self.admin_clients),
            ("tls.app_clients", OpenToAll::App, &self.app_clients),
            ("tls.gateway_clients", OpenToAll::Gateway, &self.gateway_clients),
            ("tls.site_clients", OpenToAll::Site, &self.site_clients),
            ("tls.ops_clients", OpenToAll::Ops, &self.ops_clients),
        ]
    }

    /// Reports settings that contradict each other, or that would have no effect.
    pub(super) fn unfit(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if self.certificate_file.is_some() != self.key_file.is_some() {
            faults.push(
                "`tls.certificate_file` and `tls.key_file` need each other: the certificate, and its \
                 private key"
                    .to_owned(),
            );
        }
        let off = Self { key_file: self.key_file.clone(), ..Self::default() };
        if !self.is_on() && *self != off {
            faults.push(
                "`tls` needs `tls.certificate_file` and `tls.key_file`: without them, no address uses TLS"
                    .to_owned(),
            );
        }
        faults.extend(self.unfit_clients());
        faults
    }

    fn unfit_clients(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let clients = self.clients();
        let is_closed = self.without_certificate.is_empty()
            && clients.iter().all(|(_, _, names)| names.is_empty());
        match (self.client_ca_file.is_some(), is_closed) {
            (true, true) => faults.push(
                "`tls.client_ca_file` needs the names of the clients, in `tls.app_clients` and \
                 others; without names, every call is refused"
                    .to_owned(),
            ),
            (false, false) => faults.push(
                "`tls.client_ca_file` is missing: without it, the names of clients and \
                 `tls.without_certificate` have no effect"
                    .to_owned(),
            ),
            _ => {}
        }
        for (setting, surface, names) in clients {
            if !names.is_empty() && self.without_certificate.contains(&surface) {
                faults.push(format!(
                    "`{setting}` has names, and `tls.without_certificate` opens the same surface to \
                     everyone: remove one of the two"
                ));
            }
            faults.extend(names.iter().filter(|name| !is_client(name)).map(|name| {
                format!(
                    "`{setting}`: `{name}` is not the name of a client; write a DNS name, a URI \
                     such as spiffe://example.org/billing, or `*` for every certificate"
                )
            }));
        }
        faults
    }
}

/// Whether a text is a DNS name, a URI or `*`. Names are compared as a whole: `*.example.org` would
/// match no client.
fn is_client(name: &str) -> bool {
    let is_dns = || {
        let is_address = name.parse::<IpAddr>().is_ok();
        !is_address
            && name.split('.').all(|label| {
                let may = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
                !label.is_empty() && label.bytes().all(may)
            })
    };
    let is_uri = || {
        let (scheme, rest) = name.split_once("://").unwrap_or_default();
        let may = |c: char| c.is_ascii_graphic() && c != '*';
        !scheme.is_empty() && !rest.is_empty() && name.chars().all(may)
    };
    name == "*" || is_dns() || is_uri()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, Sources, TlsVersion};

    fn loaded(settings: &[(&str, &str)]) -> Result<Config, String> {
        let name = |name: &str| format!("AGENT_AUTHORITY__TLS__{}", name.to_ascii_uppercase());
        let settings = settings.iter().map(|(key, value)| (name(key), (*value).to_owned()));
        let sources = Sources { environment: settings.collect(), ..Sources::default() };
        let config = Config::load(&sources).map_err(|error| error.to_string())?;
        config.validate().map_err(|error| error.to_string())?;
        Ok(config)
    }

    const FILES: [(&str, &str); 2] = [("certificate_file", "tls.crt"), ("key_file", "tls.key")];

    #[test]
    fn tls_is_off_without_a_certificate() {
        let config = loaded(&[]).unwrap();
        assert_eq!(config.public_url(), "http://127.0.0.1:8080");
        assert!(!config.tls.is_on() && !config.https());
        let config = loaded(&FILES).unwrap();
        assert_eq!(config.public_url(), "https://127.0.0.1:8080");
        assert!(config.tls.is_on() && config.https());
        assert_eq!(config.tls.minimum_version, TlsVersion::Tls12);
    }

    #[test]
    fn a_version_is_a_number_or_a_text() {
        for (version, expected) in [
            ("1.2", Some(TlsVersion::Tls12)),
            ("1.3", Some(TlsVersion::Tls13)),
            ("\"1.3\"", Some(TlsVersion::Tls13)),
            ("1.1", None),
            ("1.20", Some(TlsVersion::Tls12)),
            ("1", None),
            ("TLSv1.3", None),
            ("", None),
        ] {
            let config = loaded(&[FILES[0], FILES[1], ("minimum_version", version)]);
            let found = config.as_ref().ok().map(|config| config.tls.minimum_version);
            assert_eq!(found, expected, "{version}: {config:?}");
        }
    }

    /// Settings that would be without effect could make an operator believe that clients are
    /// checked.
    #[test]
    fn settings_without_effect_are_refused() {
        let ca = ("client_ca_file", "ca.pem");
        for (settings, fault) in [
            (&[FILES[0]][..], Some("need each other")),
            (&[FILES[1]], Some("need each other")),
            (&[ca], Some("`tls` needs `tls.certificate_file`")),
            (&[("minimum_version", "1.3")], Some("`tls` needs `tls.certificate_file`")),
            (&[FILES[0], FILES[1], ca], Some("every call is refused")),
            (&[FILES[0], FILES[1], ("app_clients", "a")], Some("`tls.client_ca_file` is missing")),
            (
                &[FILES[0], FILES[1], ("without_certificate", "health")],
                Some("`tls.client_ca_file` is missing"),
            ),
            (
                &[FILES[0], FILES[1], ca, ("app_clients", "a"), ("without_certificate", "app")],
                Some("remove one of the two"),
            ),
            (
                &[FILES[0], FILES[1], ca, ("app_clients", "a"), ("without_certificate", "all")],
                Some("`all` is unknown"),
            ),
            (&[FILES[0], FILES[1], ca, ("app_clients", "a")], None),
            (&[FILES[0], FILES[1], ca, ("without_certificate", "app, health")], None),
        ] {
            let loaded = loaded(settings).err();
            match (&loaded, fault) {
                (Some(found), Some(fault)) => {
                    assert!(found.contains(fault), "{settings:?}: {found}");
                }
                (found, fault) => assert_eq!(found.as_deref(), fault, "{settings:?}"),
            }
        }
    }

    #[test]
    fn an_address_without_tls_cannot_have_an_http_url() {
        let mut config = loaded(&FILES).unwrap();
        config.listen.public_url = Some("http://authority.example.org".to_owned());
        assert!(config.validate().unwrap_err().to_string().contains("write https://"));
        config.listen.public_url = Some("https://authority.example.org".to_owned());
        config.validate().unwrap();
    }

    #[test]
    fn a_name_is_compared_as_a_whole() {
        for (name, expected) in [
            ("billing.example.org", true),
            ("billing", true),
            ("*", true),
            ("spiffe://example.org/billing", true),
            ("*.example.org", false),
            ("spiffe://example.org/*", false),
            ("10.0.0.1", false),
            ("::1", false),
            ("CN=billing", false),
            ("billing.example.org.", false),
            ("billing@example.org", false),
            ("a b", false),
            ("", false),
            ("spiffe://", false),
            ("://x", false),
        ] {
            assert_eq!(is_client(name), expected, "{name}");
        }
    }
}
