//! The settings; `defaults.rs` has their defaults, `load.rs` reads the values.

mod defaults;
mod folder;
mod load;
mod production;
mod secret;
mod text;
mod values;

use std::{io, net::SocketAddr, path::PathBuf, time::Duration};

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

pub use folder::{data_folder, private_folder};
pub use load::{Error, Sources};
pub use secret::Secret;

/// In production, in seconds: a balancer asks for readiness every one or two.
const LAME_DUCK: u64 = 5;

/// All settings; fields that are structs are tables of the TOML file.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// `development` or `production`, which refuses the defaults of development; also `--production`.
    pub environment: Environment,
    /// The folder of the service's own Postgres and the development keys.
    pub data_dir: PathBuf,
    /// Proxies whose `X-Forwarded-For` is trusted: addresses or CIDR blocks.
    #[serde(deserialize_with = "text::networks", serialize_with = "text::shown")]
    pub trusted_proxies: Vec<IpNet>,
    pub listen: Listen,
    pub database: Database,
    pub identity: Identity,
    pub console: ConsoleConfig,
    pub keys: Keys,
    pub decide: Decide,
    pub cors: Cors,
    pub limits: Limits,
    pub logs: Logs,
    pub traces: Traces,
    pub webhooks: Webhooks,
    pub nats: NatsConfig,
    pub push: PushConfig,
    pub dns: DnsConfig,
    pub programme: ProgrammeConfig,
    pub personal_data: PersonalDataConfig,
    pub archive: ArchiveConfig,
}

/// Development runs with defaults that production refuses (`validate`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Environment {
    #[default]
    Development,
    Production,
}

/// Addresses; a surface without one of its own is served on `main`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Listen {
    /// Every surface without an address of its own; also `--listen`.
    pub main: SocketAddr,
    /// The owner's surface.
    pub admin: Option<SocketAddr>,
    /// The surface of tenants' people and of agents' runtimes.
    pub app: Option<SocketAddr>,
    /// The surface of gateways, evidence and the public description.
    pub gateway: Option<SocketAddr>,
    /// Receipts and the programme's public pages.
    pub site: Option<SocketAddr>,
    /// Metrics; never to be reachable from outside.
    pub ops: SocketAddr,
    /// The URL by which clients reach the service, for links in responses (`https://authority.example.org`).
    pub public_url: Option<String>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Database {
    /// `postgres://…` or `host=… user=…`; also `DATABASE_URL`. If absent, the service runs a Postgres of its own under `data_dir`.
    pub url: Option<Secret>,
    /// The same for the login that owns the tables, as which `migrate` works; also `DATABASE_OWNER_URL`. Default: `database.url`. No node needs it.
    pub owner_url: Option<Secret>,
    /// Connections of the pool that serves one tenant's reads and writes.
    pub tenant_connections: usize,
    /// Connections of the pool of the graph's tail, the workers and the owner's lists.
    pub system_connections: usize,
    /// Connections of the pool that records decisions.
    pub recorder_connections: usize,
    /// Connections of the pool that numbers events and sends them.
    pub event_connections: usize,
    /// How long a request waits for a free connection.
    pub wait_seconds: u64,
    /// Postgres ends a statement that runs longer.
    pub statement_seconds: u64,
    /// How long a start waits for a database that is absent or starting.
    pub start_seconds: u64,
}

/// The trusted issuer of JWTs.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Identity {
    /// The `iss` of tokens: the identity provider's URL. Production needs it.
    pub issuer: Option<String>,
    /// The `aud` of tokens. Production needs it.
    pub audience: Option<String>,
    /// Where the issuer's keys are. Default: `jwks_uri` of the issuer's `/.well-known/openid-configuration` where that exists, otherwise the issuer's `/.well-known/jwks.json`.
    pub jwks_url: Option<String>,
    /// The built-in provider that signs tokens for anyone at this machine; by default on in development
    /// without an issuer.
    pub dev_provider: Option<bool>,
}

/// The console for people, at `/console`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct ConsoleConfig {
    /// Default: on where `console.client_id` is set, and where the development provider runs.
    pub enabled: Option<bool>,
    /// The console's client at the identity provider of `identity.issuer`. Its redirect URI is `listen.public_url` and `/console/sign-in/callback`.
    pub client_id: Option<String>,
    /// The client's secret. Production needs it.
    pub client_secret: Option<Secret>,
}

/// The key-encryption ring that encrypts private keys; one of the two.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Keys {
    /// A file that is its owner's alone, `id:base64` on each line. In development one is made in `data_dir`.
    pub ring_file: Option<PathBuf>,
    /// The same text, with commas between the keys.
    pub ring: Option<Secret>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Decide {
    /// A graph whose tail is older refuses to decide.
    pub max_staleness_seconds: u64,
    /// How long an allow is valid, in seconds, unless its tenant sets it.
    pub valid_for_seconds: u64,
    /// `strict` flushes each commit to disk; `relaxed` may lose the last decisions when the database crashes.
    pub durability: Durability,
}

/// Whether Postgres flushes before the response, in the words of a tenant's own `durability`, which may choose
/// `relaxed`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Durability {
    #[default]
    Strict,
    Relaxed,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Cors {
    /// Origins whose pages may call (`https://console.example.org`); `*` is refused.
    #[serde(deserialize_with = "text::origins")]
    pub origins: Vec<String>,
}

/// The limits of a connection.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Open connections on each address.
    pub connections: usize,
    /// Concurrent requests on one HTTP/2 connection.
    pub streams: u32,
    /// The head of an HTTP request; at least 8192.
    pub header_bytes: u32,
    /// The largest body; REST and gRPC have smaller limits of their own.
    pub body_bytes: u64,
    /// Unread response bytes at which an HTTP/2 connection's next requests wait; a response that would
    /// double it is dropped.
    pub unsent_bytes: u64,
    /// Unread response bytes of all the node's connections. Beyond it, the connections that hold the most for the
    /// longest are cut first. At least twice `unsent_bytes`.
    pub node_unsent_bytes: u64,
    /// From accept to the detection of the protocol.
    pub first_byte_seconds: u64,
    /// From the first byte of a request to the end of its head.
    pub header_seconds: u64,
    /// From a request's head to the end of its body.
    pub body_seconds: u64,
    /// A connection without a request is closed after this.
    pub idle_seconds: u64,
    /// A peer that reads nothing of a response for this long is cut off.
    pub stalled_seconds: u64,
    /// The interval of pings to HTTP/2 peers.
    pub ping_seconds: u64,
    /// The time in which they must answer.
    pub pong_seconds: u64,
    /// From the stop signal, how long connections are still accepted while readiness says 503. Default: 5 in
    /// production, 0 in development.
    pub lame_duck_seconds: Option<u64>,
    /// From then to the end of the last connection.
    pub drain_seconds: u64,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Logs {
    /// Default: text on a terminal, JSON otherwise.
    pub format: Option<LogFormat>,
    /// As `RUST_LOG`, which overrides it.
    pub filter: Option<String>,
}

/// Traces by OTLP; off without an endpoint.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Traces {
    /// The collector's gRPC endpoint, for example `http://127.0.0.1:4317`.
    pub endpoint: Option<String>,
    /// The part that is traced, from 0 to 1, of the requests without a `traceparent`, which says so itself.
    pub ratio: f64,
}

/// Where webhook deliveries may go, besides public addresses at ports 443 and 8443. In development also http, and
/// any port of the loopback.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Webhooks {
    /// Further ports.
    pub ports: Vec<u16>,
    /// Private networks: parts of 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, 100.64.0.0/10 and `fc00::/7`.
    #[serde(deserialize_with = "text::list")]
    pub allow_cidrs: Vec<String>,
    /// A PEM file of authorities that receivers' certificates may lead to, besides those of the public web.
    pub ca_file: Option<PathBuf>,
}

/// The NATS server of audit streams with the sink `nats`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct NatsConfig {
    /// For example `nats://nats.example.org:4222`, or `tls://…`.
    pub url: Option<String>,
    /// A file with credentials, as `nsc` writes it.
    pub credentials: Option<PathBuf>,
}

/// Web Push for notifications; off without a subject.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct PushConfig {
    /// Where push services can reach the operator: a `mailto:` or an `https:` URI (RFC 8292, 2.1).
    pub subject: Option<String>,
    /// A PEM file with the P-256 private key by which push services know this installation. In development
    /// one is made in `data_dir` if absent.
    pub key_file: Option<PathBuf>,
}

/// Where names are resolved when a domain is verified.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct DnsConfig {
    /// Addresses of servers, `192.0.2.53:53`. Those of the system if empty.
    #[serde(deserialize_with = "text::addresses")]
    pub servers: Vec<SocketAddr>,
}

/// The consultant programme.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProgrammeConfig {
    /// URLs of the JWKS of those who may sign certifications besides this service: `https`, or `http` on this
    /// machine.
    #[serde(deserialize_with = "text::list")]
    pub issuers: Vec<String>,
}

/// How long people's data is kept.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct PersonalDataConfig {
    /// Leads that became no tenant are emptied after so many days.
    pub lead_retention_days: u32,
    /// Why nothing is erased, neither for a person nor by its age: the installation's legal hold.
    pub legal_hold: Option<String>,
}

/// Where months of decisions are archived before their rows are deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct ArchiveConfig {
    /// A folder, `file:///var/lib/authority/archive`, or a bucket that is compatible with S3, `s3://bucket/prefix`, with credentials, region and endpoint in `AWS_*`. In development `archive` in `data_dir`. Without one nothing is deleted: `migrate` reads it, too, and lets the login that serves remove what is archived.
    pub url: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    Text,
    Json,
}

impl Config {
    pub fn production(&self) -> bool {
        self.environment == Environment::Production
    }

    /// How long a service that stops still accepts connections.
    pub fn lame_duck(&self) -> Duration {
        let usual = if self.production() { LAME_DUCK } else { 0 };
        Duration::from_secs(self.limits.lame_duck_seconds.unwrap_or(usual))
    }

    /// Whether the built-in identity provider runs.
    pub fn dev_provider(&self) -> bool {
        self.identity.dev_provider.unwrap_or(!self.production() && self.identity.issuer.is_none())
    }

    /// Whether the console is served.
    pub fn console(&self) -> bool {
        let usual = self.console.client_id.is_some() || self.dev_provider();
        self.console.enabled.unwrap_or(usual)
    }

    /// The base of links in responses, without a trailing slash.
    pub fn public_url(&self) -> String {
        match &self.listen.public_url {
            Some(url) => url.trim_end_matches('/').to_owned(),
            None => format!("http://{}", self.listen.gateway.unwrap_or(self.listen.main)),
        }
    }

    /// Whether months of decisions are archived.
    pub fn has_archive(&self) -> bool {
        self.archive.url.is_some() || !self.production()
    }

    /// Where months of decisions are archived; `None` only in production.
    ///
    /// # Errors
    /// The folder that the process was started in is gone.
    pub fn archive_url(&self) -> io::Result<Option<String>> {
        match &self.archive.url {
            Some(url) => Ok(Some(url.clone())),
            None if self.production() => Ok(None),
            None => {
                let folder = std::path::absolute(self.data_dir.join("archive"))?;
                Ok(Some(format!("file://{}", folder.display())))
            }
        }
    }

    /// Whether clients use https, so that HSTS may be sent.
    pub fn https(&self) -> bool {
        self.listen.public_url.as_deref().is_some_and(|url| url.starts_with("https://"))
    }
}
