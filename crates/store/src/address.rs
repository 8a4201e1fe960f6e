//! Parses the database's address and TLS mode from a libpq URL or `key=value` text.
//!
//! tokio-postgres does not support `verify-ca`, `verify-full`, `sslrootcert`, `sslcert` and
//! `sslkey`. They are parsed here and applied in `tls.rs`. The default of tokio-postgres, `prefer`,
//! may fall back to plain text. Here, a host other than this machine needs a verified certificate
//! unless the URL sets another mode.

use std::{
    borrow::Cow,
    path::{Path, PathBuf},
};

use tokio_postgres::{
    Config,
    config::{Host, SslMode},
};

use super::{error::Error, fault::with_source, servers::Servers, tls, tls_stream::Connector};

/// A database to connect to.
#[derive(Clone)]
pub struct Address {
    pub(super) config: Config,
    pub(super) servers: Servers,
    pub(super) tls: Option<Connector>,
}

impl Address {
    /// Parses `postgres://…` or `host=… user=…`. Reads the files of `sslrootcert`, `sslcert` and
    /// `sslkey` (PEM).
    pub fn parse(text: &str) -> Result<Self, Error> {
        let (plain, tls) = if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            split_url(text)?
        } else {
            split_pairs(text)?
        };
        // The unreadable part may be a piece of the password. The error does not quote it.
        let mut config: Config = plain.parse().map_err(|fault: tokio_postgres::Error| {
            Error::Address(format!("the database URL is malformed{}", about(&with_source(&fault))))
        })?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(Error::Address(format!("the database URL names no host{}", about(""))));
        }
        // TLS needs a host name. If the URL only has an address, the address is the host name.
        if config.get_hosts().is_empty() {
            for address in config.get_hostaddrs().to_vec() {
                config.host(address.to_string());
            }
        }
        let (servers, addresses) = (config.get_hosts().len(), config.get_hostaddrs().len());
        if ![0, servers].contains(&addresses)
            || ![0, 1, servers].contains(&config.get_ports().len())
        {
            return Err(Error::Address(
                "the database URL must have one `hostaddr` for each `host`, and one `port` for all or for each `host`".to_owned(),
            ));
        }
        let mode = match tls.mode.as_deref() {
            Some(word) => Mode::of(word)?,
            None if is_socket(&config) => Mode::Disable,
            None if is_this_machine(&config) => Mode::Prefer,
            None => Mode::VerifyFull,
        };
        let tls = mode.connector(&tls)?;
        config.ssl_mode(match mode {
            Mode::Disable => SslMode::Disable,
            Mode::Prefer => SslMode::Prefer,
            _ => SslMode::Require,
        });
        Ok(Self { servers: Servers::of(&config), config, tls })
    }

    /// Returns the login role.
    pub fn user(&self) -> Option<&str> {
        self.config.get_user()
    }
}

/// libpq's `sslmode`. `allow`, which starts in plain text, is treated as `prefer`.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    Disable,
    Prefer,
    Require,
    VerifyCa,
    VerifyFull,
}

impl Mode {
    fn of(word: &str) -> Result<Self, Error> {
        Ok(match word {
            "disable" => Self::Disable,
            "allow" | "prefer" => Self::Prefer,
            "require" => Self::Require,
            "verify-ca" => Self::VerifyCa,
            "verify-full" => Self::VerifyFull,
            _ => {
                return Err(Error::Address(format!(
                    "sslmode must be disable, prefer, require, verify-ca or verify-full, not `{word}`"
                )));
            }
        })
    }

    fn connector(self, given: &TlsParameters) -> Result<Option<Connector>, Error> {
        let roots = given.roots.as_deref();
        let trust = match self {
            Self::Disable => return Ok(None),
            // As in libpq, `require` checks the certificate if `sslrootcert` is set.
            Self::Require if roots.is_some() => tls::Trust::Chain,
            Self::Prefer | Self::Require => tls::Trust::Anyone,
            Self::VerifyCa => tls::Trust::Chain,
            Self::VerifyFull => tls::Trust::ChainAndName,
        };
        tls::connector(trust, roots, given.client()?).map(Some)
    }
}

/// Parameters that tokio-postgres does not support.
#[derive(Default)]
struct TlsParameters {
    mode: Option<String>,
    roots: Option<PathBuf>,
    certificate: Option<PathBuf>,
    key: Option<PathBuf>,
}

impl TlsParameters {
    /// Stores the parameter if it is a TLS parameter. Returns whether it is one.
    fn take(&mut self, key: &str, value: &str) -> bool {
        match key {
            "sslmode" => self.mode = Some(value.to_owned()),
            // libpq's word for the system's roots, which are the default here.
            "sslrootcert" if value == "system" => self.roots = None,
            "sslrootcert" => self.roots = Some(value.into()),
            "sslcert" => self.certificate = Some(value.into()),
            "sslkey" => self.key = Some(value.into()),
            _ => return false,
        }
        true
    }

    /// Returns the files with the client's certificate and its key.
    fn client(&self) -> Result<Option<(&Path, &Path)>, Error> {
        match (&self.certificate, &self.key) {
            (Some(certificate), Some(key)) => Ok(Some((certificate, key))),
            (None, None) => Ok(None),
            _ => Err(Error::Address("set both sslcert and sslkey, or neither".to_owned())),
        }
    }
}

fn split_url(text: &str) -> Result<(String, TlsParameters), Error> {
    let mut tls = TlsParameters::default();
    let Some((front, query)) = text.split_once('?') else {
        return Ok((text.to_owned(), tls));
    };
    let mut kept = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        if !tls.take(key, &decode(key, value)?) {
            kept.push(pair);
        }
    }
    let mark = if kept.is_empty() { "" } else { "?" };
    Ok((format!("{front}{mark}{}", kept.join("&")), tls))
}

/// The connection options that this module or tokio-postgres supports.
const OPTIONS: [&str; 24] = [
    "user",
    "password",
    "dbname",
    "options",
    "application_name",
    "sslmode",
    "sslrootcert",
    "sslcert",
    "sslkey",
    "sslnegotiation",
    "host",
    "hostaddr",
    "port",
    "connect_timeout",
    "tcp_user_timeout",
    "keepalives",
    "keepalives_idle",
    "keepalives_interval",
    "keepalives_retries",
    "target_session_attrs",
    "channel_binding",
    "load_balance_hosts",
    "replication",
    "require_auth",
];

/// Returns the end of an error text: the faulty option if it is known, and the expected form.
fn about(fault: &str) -> String {
    let named = OPTIONS.iter().find(|option| fault.contains(&format!("`{option}`")));
    let named = named.map(|option| format!(" at `{option}`")).unwrap_or_default();
    format!(
        "{named}: write postgres://user:password@host/database?option=value with special characters \
         percent-encoded, or key=value pairs; the options are {}",
        OPTIONS.join(", ")
    )
}

fn decode<'t>(key: &str, text: &'t str) -> Result<Cow<'t, str>, Error> {
    let malformed =
        || Error::Address(format!("the database URL is malformed{}", about(&format!("`{key}`"))));
    if !text.contains('%') {
        return Ok(text.into());
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        if *first == b'%' {
            let (digits, more) = more.split_at_checked(2).ok_or_else(malformed)?;
            bytes.extend(hex::decode(digits).map_err(|_| malformed())?);
            rest = more;
        } else {
            bytes.push(*first);
            rest = more;
        }
    }
    String::from_utf8(bytes).map(Cow::Owned).map_err(|_| malformed())
}

/// Parses `key = value` pairs. Values with spaces are in single quotes; a backslash escapes the next
/// character.
fn split_pairs(text: &str) -> Result<(String, TlsParameters), Error> {
    let mut tls = TlsParameters::default();
    let mut kept = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (key, after) = rest.split_once('=').ok_or_else(|| {
            Error::Address("the database URL is neither postgres://… nor key=value pairs".into())
        })?;
        let (raw, value) = first_value(after.trim_start());
        if !tls.take(key.trim(), &value) {
            kept.push(format!("{}={raw}", key.trim()));
        }
        rest = after.trim_start().get(raw.len()..).unwrap_or_default().trim_start();
    }
    Ok((kept.join(" "), tls))
}

/// Returns the first value of the text in two forms: as written, and unescaped.
fn first_value(text: &str) -> (&str, String) {
    let is_quoted = text.starts_with('\'');
    let mut meant = String::new();
    let mut letters = text.char_indices().skip(usize::from(is_quoted));
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => meant.extend(letters.next().map(|(_, escaped)| escaped)),
            '\'' if is_quoted => return (text.get(..=at).unwrap_or(text), meant),
            blank if blank.is_whitespace() && !is_quoted => {
                return (text.get(..at).unwrap_or(text), meant);
            }
            other => meant.push(other),
        }
    }
    (text, meant)
}

/// Whether all servers are Unix sockets, which do not use TLS.
pub(super) fn is_socket(config: &Config) -> bool {
    config.get_hostaddrs().is_empty()
        && config.get_hosts().iter().all(|host| matches!(host, Host::Unix(_)))
}

fn is_this_machine(config: &Config) -> bool {
    config.get_hostaddrs().iter().all(std::net::IpAddr::is_loopback)
        && config.get_hosts().iter().all(|host| match host {
            Host::Unix(_) => true,
            Host::Tcp(name) => {
                name == "localhost"
                    || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
            }
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(text: &str) -> SslMode {
        Address::parse(text).unwrap_or_else(|fault| panic!("{text}: {fault}")).config.get_ssl_mode()
    }

    #[test]
    fn connections_to_other_machines_use_tls_unless_disabled() {
        assert_eq!(mode("postgres://u@db.example.com/x"), SslMode::Require);
        assert_eq!(mode("host=10.0.0.1 user=u"), SslMode::Require);
        assert_eq!(mode("host=localhost hostaddr=10.0.0.1 user=u"), SslMode::Require);
        assert_eq!(mode("postgres://u@localhost/x"), SslMode::Prefer);
        assert_eq!(mode("postgres://u@[::1]/x"), SslMode::Prefer);
        assert_eq!(mode("host=/run/postgresql user=u"), SslMode::Disable);
        assert_eq!(mode("postgres://u@%2Frun%2Fpostgresql/x"), SslMode::Disable);
        assert_eq!(mode("postgres://u@db.example.com/x?sslmode=disable"), SslMode::Disable);
    }

    #[test]
    fn unsupported_parameters_are_removed() {
        let read = |text| Address::parse(text).unwrap_or_else(|fault| panic!("{text}: {fault}"));
        let url = "postgres://u@db/x?sslmode=verify-full&application_name=a%20b&sslrootcert=system";
        assert_eq!(read(url).config.get_application_name(), Some("a b"));
        let pairs = r"sslmode = 'verify-ca' host=db user='o\'brien' dbname=x sslmode=verify-full";
        assert_eq!(read(pairs).user(), Some("o'brien"));
        assert!(read(pairs).tls.is_some());
    }

    #[test]
    fn faults_are_named() {
        for (text, word) in [
            ("postgres://u@db/x?sslmode=full", "`full`"),
            ("postgres://u@db/x?sslmode=verify-ca&sslrootcert=/no/such.pem", "`/no/such.pem`"),
            ("postgres://u@db/x?sslcert=/no/such.crt", "both sslcert and sslkey"),
            (
                "postgres://u@db/x?sslcert=/no/such.crt&sslkey=/no/such.key",
                "sslcert `/no/such.crt`",
            ),
            ("nonsense", "key=value"),
            ("postgres://u@db/x?sslmode=%zz", "`sslmode`"),
            ("host=db port=x", "`port`"),
            ("host=db wrong=1", "the options are user,"),
            ("host=a,b,c port=1,2", "one `port` for all or"),
        ] {
            let fault = Address::parse(text).err().map(|fault| fault.to_string());
            assert!(fault.as_ref().is_some_and(|fault| fault.contains(word)), "{text}: {fault:?}");
        }
    }

    #[test]
    fn errors_contain_nothing_of_the_password() {
        for text in [
            "postgres://u@db/x?password=hunter2secret%zz",
            "postgres://u:hunter2%zzsecret@db/x",
            "postgres://u:hunter2?secret&hunter2=secret@db/x",
            "postgres://u:hunter2secret@db:hunter2/x",
            "postgres://u:hunter2 secret",
            "postgres:/u:hunter2secret@db/x",
            "host=db password=hunter2 secret%zz",
            "host=db password=hunter2 secret=1",
            "host=db password='hunter2secret",
            "host=db hunter2secret='",
        ] {
            let Err(fault) = Address::parse(text) else { continue };
            let fault = fault.to_string();
            let told = ["hunter2", "secret"].iter().any(|part| fault.contains(part));
            assert!(!told, "{text}: {fault}");
        }
        assert!(Address::parse("postgres://u@db/x?password=hunter2secret%zz").is_err());
    }
}
