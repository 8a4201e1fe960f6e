//! Requirements of production. Development must listen on the loopback only.

use std::net::SocketAddr;

use super::{Config, ConsoleClient, Error, NatsConfig, PushConfig, Secret, SmtpConfig, SmtpTls};

impl Config {
    /// Reports all reasons why this configuration must not run.
    pub fn validate(&self) -> Result<(), Error> {
        let mut faults = self.invalid();
        faults.extend(if self.production() {
            self.missing_in_production()
        } else {
            self.exposed()
        });
        if faults.is_empty() { Ok(()) } else { Err(Error::Unfit(faults)) }
    }

    /// Settings that are wrong in any environment.
    fn invalid(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let limits = &self.limits;
        let numbers = [
            ("limits.connections", limits.connections as u64),
            ("limits.handshakes", limits.handshakes as u64),
            ("limits.streams", u64::from(limits.streams)),
            ("limits.unsent_bytes", limits.unsent_bytes),
            ("limits.first_byte_seconds", limits.first_byte_seconds),
            ("limits.header_seconds", limits.header_seconds),
            ("limits.body_seconds", limits.body_seconds),
            ("limits.idle_seconds", limits.idle_seconds),
            ("limits.stalled_seconds", limits.stalled_seconds),
            ("limits.ping_seconds", limits.ping_seconds),
            ("limits.pong_seconds", limits.pong_seconds),
            ("database.tenant_connections", self.database.tenant_connections as u64),
            ("database.system_connections", self.database.system_connections as u64),
            ("database.recorder_connections", self.database.recorder_connections as u64),
            ("database.event_connections", self.database.event_connections as u64),
            ("database.wait_seconds", self.database.wait_seconds),
            ("database.statement_seconds", self.database.statement_seconds),
            ("decide.max_staleness_seconds", self.decide.max_staleness_seconds),
            ("decide.valid_for_seconds", self.decide.valid_for_seconds),
            ("metrics.interval_seconds", self.metrics.interval_seconds),
        ];
        for (name, number) in numbers {
            if number == 0 {
                faults.push(format!("`{name}` must be above 0"));
            }
        }
        if limits.header_bytes < 8192 {
            faults.push("`limits.header_bytes` must be at least 8192".to_owned());
        }
        let least = limits.unsent_bytes.saturating_mul(2);
        if limits.node_unsent_bytes < least {
            faults.push(format!(
                "`limits.node_unsent_bytes` is {}; it must be at least {least}, twice `limits.unsent_bytes`, because \
                 one connection may hold that many bytes",
                limits.node_unsent_bytes
            ));
        }
        if !(0.0..=1.0).contains(&self.traces.ratio) {
            faults.push(format!("`traces.ratio` is {}; it must be from 0 to 1", self.traces.ratio));
        }
        if self.keys.ring.is_some() && self.keys.ring_file.is_some() {
            faults.push("set `keys.ring` or `keys.ring_file`, not both".to_owned());
        }
        let urls = [
            ("listen.public_url", &self.listen.public_url),
            ("identity.issuer", &self.identity.issuer),
            ("traces.endpoint", &self.traces.endpoint),
            ("metrics.endpoint", &self.metrics.endpoint),
        ];
        for (name, url) in urls {
            // An empty URL counts as absent.
            if let Some(url) = url.as_deref().filter(|url| !url.is_empty())
                && !["https://", "http://"].iter().any(|start| has_more(url, start))
            {
                faults.push(format!(
                    "`{name}` is `{url}`; it must be a URL such as https://authority.example.org"
                ));
            }
        }
        faults.extend(self.unfit_push());
        faults.extend(self.unfit_smtp());
        faults.extend(self.unfit_nats());
        faults.extend(self.unfit_console());
        faults.extend(self.tls.unfit());
        faults.extend(self.unfit_scheme());
        faults.extend(self.unfit_issuers());
        faults
    }

    fn unfit_scheme(&self) -> Option<String> {
        let is_plain = self.tls.is_on() && self.public_url().starts_with("http://");
        is_plain.then(|| {
            "`listen.public_url` begins with http://, but with `tls.certificate_file` every address \
             accepts TLS only: write https://"
                .to_owned()
        })
    }

    fn unfit_console(&self) -> Vec<String> {
        let mut faults = Vec::new();
        if !self.console() {
            return faults;
        }
        let console = &self.console;
        let filled = |text: Option<&str>| text.is_some_and(|text| !text.is_empty());
        let client_id = filled(console.client_id.as_deref());
        let is_set = client_id && filled(self.sign_in_issuer());
        if !(self.dev_provider() || is_set) {
            faults.push(
                "the console needs `identity.issuer` and `console.client_id`, the console's client ID at \
                 that issuer; to run without the console, set `console.enabled = false`"
                    .to_owned(),
            );
        }
        if self.production() {
            if !filled(console.client_secret.as_ref().map(Secret::reveal)) {
                faults.push("production needs `console.client_secret` for the console".to_owned());
            }
            if !self.https() {
                faults.push(
                    "the console needs a `listen.public_url` that begins with https://; its cookie is sent over \
                     https only"
                        .to_owned(),
                );
            }
        }
        if !(console.issuers.is_empty() || client_id) {
            faults.push(
                "`console.issuers` needs `console.client_id`: the console's client at the first issuer"
                    .to_owned(),
            );
        }
        let further = console.issuers.iter();
        faults.extend(further.flat_map(|(name, client)| self.unfit_sign_in(name, client)));
        faults
    }

    fn unfit_sign_in(&self, name: &str, client: &ConsoleClient) -> Vec<String> {
        let place = format!("console.issuers.{name}");
        let mut faults = Vec::new();
        if !self.identity.issuers.contains_key(name) {
            faults.push(format!("`{place}`: `{name}` is not a name in `identity.issuers`"));
        }
        if self.console.issuer.as_deref() == Some(name) {
            faults.push(format!("`{place}`: `console.issuer` is the same issuer"));
        }
        if client.client_id.is_empty() {
            faults.push(format!("`{place}.client_id` is missing"));
        }
        let secret = client.client_secret.as_ref().map(Secret::reveal);
        if self.production() && secret.is_none_or(str::is_empty) {
            faults.push(format!("production needs `{place}.client_secret`"));
        }
        faults
    }

    fn unfit_nats(&self) -> Option<String> {
        let NatsConfig { url, credentials } = &self.nats;
        match url.as_deref() {
            None if credentials.is_some() => Some(
                "`nats.credentials` needs `nats.url`: the server, such as \
                 nats://nats.example.org:4222"
                    .to_owned(),
            ),
            Some(url) if !NATS_SCHEMES.iter().any(|start| has_more(url, start)) => Some(format!(
                "`nats.url` is `{}`; it must be a URL such as nats://nats.example.org:4222 or \
                 tls://nats.example.org:4222",
                without_password(url)
            )),
            _ => None,
        }
    }

    fn unfit_push(&self) -> Option<String> {
        let PushConfig { subject, key_file } = &self.push;
        match subject.as_deref() {
            None if key_file.is_some() => Some(
                "`push.key_file` needs `push.subject`: a contact for push services, such as \
                 mailto:ops@example.org"
                    .to_owned(),
            ),
            Some(subject) if !is_contact(subject) => Some(format!(
                "`push.subject` is `{subject}`; it must be a contact for push services, such as \
                 mailto:ops@example.org or https://example.org/contact"
            )),
            Some(_) if self.production() && key_file.is_none() => Some(
                "production needs `push.key_file` where `push.subject` is set: make one with \
                 `openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256`"
                    .to_owned(),
            ),
            _ => None,
        }
    }

    fn unfit_smtp(&self) -> Option<String> {
        let SmtpConfig { host, tls, user, password_file, from, .. } = &self.smtp;
        let fault = match (host, from) {
            (None, None) if self.smtp == SmtpConfig::default() => return None,
            (None, _) => "`smtp` needs `smtp.host`: the SMTP server, such as smtp.example.org",
            (Some(_), None) => {
                "`smtp.host` needs `smtp.from`: the sender's address, such as authority@example.org"
            }
            _ if user.is_some() != password_file.is_some() => {
                "`smtp.user` and `smtp.password_file` need each other"
            }
            _ if *tls == SmtpTls::None && user.is_some() => {
                "`smtp.tls` is `none`: the password would be sent without encryption"
            }
            _ if *tls == SmtpTls::None && self.production() => {
                "production needs `smtp.tls` as `starttls` or `tls`"
            }
            _ => return None,
        };
        Some(fault.to_owned())
    }

    fn missing_in_production(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let mut require = |there: bool, remedy: &str| {
            if !there {
                faults.push(remedy.to_owned());
            }
        };
        let filled = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
        require(
            filled(&self.identity.issuer),
            "production needs `identity.issuer`: the URL of the identity provider",
        );
        require(
            filled(&self.identity.audience),
            "production needs `identity.audience`: the `aud` of tokens",
        );
        require(
            self.keys.ring.is_some() || self.keys.ring_file.is_some(),
            "production needs a key ring: `keys.ring_file` or `keys.ring`",
        );
        require(
            [&self.database.url, &self.database.owner_url]
                .into_iter()
                .flatten()
                .any(|url| !url.reveal().is_empty()),
            "production needs a database: set `DATABASE_URL` or `database.url`",
        );
        require(
            filled(&self.listen.public_url),
            "production needs `listen.public_url`: the URL that clients use, such as \
             https://authority.example.org; it is part of receipts, evidence and the logs",
        );
        require(
            !self.dev_provider(),
            "production refuses `identity.dev_provider`: it signs tokens for anyone",
        );
        faults
    }

    /// Reports addresses that other machines can reach. They would expose the development identity
    /// provider.
    fn exposed(&self) -> Vec<String> {
        self.addresses()
            .filter(|(_, address)| !address.ip().is_loopback())
            .map(|(name, address)| {
                format!(
                    "`{name}` is `{address}`, which other machines may reach. Development \
                     listens on the loopback only: use 127.0.0.1, or `--production`"
                )
            })
            .collect()
    }

    fn addresses(&self) -> impl Iterator<Item = (&'static str, SocketAddr)> {
        let listen = &self.listen;
        [
            ("listen.main", Some(listen.main)),
            ("listen.admin", listen.admin),
            ("listen.app", listen.app),
            ("listen.gateway", listen.gateway),
            ("listen.site", listen.site),
            ("listen.ops", Some(listen.ops)),
        ]
        .into_iter()
        .filter_map(|(name, address)| Some((name, address?)))
    }
}

const NATS_SCHEMES: [&str; 2] = ["nats://", "tls://"];

/// Returns the URL without the part before an `@`.
fn without_password(url: &str) -> String {
    url.rsplit_once('@').map_or_else(|| url.to_owned(), |(_, host)| format!("***@{host}"))
}

/// Whether the text continues after the prefix.
fn has_more(text: &str, start: &str) -> bool {
    text.strip_prefix(start).is_some_and(|rest| !rest.is_empty())
}

/// Whether `subject` is a contact as defined in RFC 8292, 2.1.
fn is_contact(subject: &str) -> bool {
    let is_address = |address: &str| {
        address.split_once('@').is_some_and(|(name, host)| !name.is_empty() && !host.is_empty())
    };
    subject.chars().all(|c| c.is_ascii_graphic())
        && (has_more(subject, "https://")
            || subject.strip_prefix("mailto:").is_some_and(is_address))
}

#[cfg(test)]
mod tests;
