//! All settings, as their users read them. `defaults.rs` has their defaults; `load.rs` reads their
//! values.

use std::{collections::BTreeMap, io, net::SocketAddr, path::PathBuf, time::Duration};

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

use super::{
    choices::{OpenToAll, SigningAlgorithm, TlsVersion},
    secret::Secret,
    text,
};

/// The default of `limits.lame_duck_seconds` in production. Load balancers check readiness every
/// one or two seconds.
const LAME_DUCK: u64 = 5;

/// The slug of a development server's demonstration tenant.
pub const DEMO_TENANT: &str = "acme";

/// All settings. A field with a struct type is a table in the TOML file.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// `development` or `production`. Production refuses the defaults of development. Also set by
    /// `--production`.
    pub environment: Environment,
    /// The folder for the service's own Postgres and the development keys.
    pub data_dir: PathBuf,
    /// Proxies with a trusted `X-Forwarded-For` header: addresses or CIDR blocks.
    #[serde(deserialize_with = "text::networks", serialize_with = "text::shown")]
    pub trusted_proxies: Vec<IpNet>,
    pub listen: Listen,
    pub tls: Tls,
    pub database: Database,
    pub identity: Identity,
    pub console: ConsoleConfig,
    pub keys: Keys,
    pub decide: Decide,
    pub cors: Cors,
    pub limits: Limits,
    pub logs: Logs,
    pub traces: Traces,
    pub metrics: MetricsConfig,
    pub webhooks: Webhooks,
    pub nats: NatsConfig,
    pub push: PushConfig,
    pub smtp: SmtpConfig,
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

/// Addresses. A surface without an address of its own is served on `main`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Listen {
    /// The address of every surface without an address of its own. Also set by `--listen`.
    pub main: SocketAddr,
    /// The address of the admin surface, for the installation's owner.
    pub admin: Option<SocketAddr>,
    /// The address of the app surface, for tenant users and agents' runtimes.
    pub app: Option<SocketAddr>,
    /// The address of the gateway surface, for gateways, evidence, receipts and the public API
    /// description.
    pub gateway: Option<SocketAddr>,
    /// The address of the site surface, for the programme's public pages.
    pub site: Option<SocketAddr>,
    /// The address for metrics. It must not be reachable from outside.
    pub ops: SocketAddr,
    /// The URL at which clients reach the service, used for links in responses
    /// (`https://authority.example.org`).
    pub public_url: Option<String>,
}

/// TLS of every address. It is off without a certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tls {
    /// A PEM file with the service's certificate, followed by its intermediate certificates. With
    /// it, every address (also `listen.ops`) accepts TLS only. A changed file applies to new
    /// connections.
    pub certificate_file: Option<PathBuf>,
    /// A PEM file with the private key of `tls.certificate_file`, which other users must not be
    /// able to read.
    pub key_file: Option<PathBuf>,
    /// The lowest accepted version of TLS: `1.2` or `1.3`.
    #[serde(deserialize_with = "text::tls_version")]
    pub minimum_version: TlsVersion,
    /// A PEM file with the certificate authorities of clients. With it, a surface accepts only
    /// clients with a certificate for a name that the surface lists below. A surface without names
    /// accepts no client.
    pub client_ca_file: Option<PathBuf>,
    /// The names of clients that may call the admin surface: DNS names or URIs (`spiffe://…`) in
    /// the certificate's subject alternative names, or `*` for every certificate of
    /// `tls.client_ca_file`.
    #[serde(deserialize_with = "text::list")]
    pub admin_clients: Vec<String>,
    /// The names of clients that may call the app surface, like `tls.admin_clients`.
    #[serde(deserialize_with = "text::list")]
    pub app_clients: Vec<String>,
    /// The names of clients that may call the gateway surface, like `tls.admin_clients`.
    #[serde(deserialize_with = "text::list")]
    pub gateway_clients: Vec<String>,
    /// The names of clients that may call the site surface, like `tls.admin_clients`.
    #[serde(deserialize_with = "text::list")]
    pub site_clients: Vec<String>,
    /// The names of clients that may read the metrics, like `tls.admin_clients`.
    #[serde(deserialize_with = "text::list")]
    pub ops_clients: Vec<String>,
    /// What clients without a certificate may call in spite of `tls.client_ca_file`: `admin`, `app`,
    /// `gateway`, `site`, `ops`, or `health` for the health checks only.
    #[serde(deserialize_with = "text::open_to_all")]
    pub without_certificate: Vec<OpenToAll>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Database {
    /// `postgres://…` or `host=… user=…`. Also set by `DATABASE_URL`. If absent, the service runs
    /// its own Postgres in `data_dir`.
    pub url: Option<Secret>,
    /// The database URL for the login that owns the tables, used by `migrate`. Also set by
    /// `DATABASE_OWNER_URL`. Default: `database.url`. Serving nodes do not need it.
    pub owner_url: Option<Secret>,
    /// Connections in the pool for reads and writes of a single tenant.
    pub tenant_connections: usize,
    /// Connections in the pool for the graph's tail, the workers and the owner's lists.
    pub system_connections: usize,
    /// Connections in the pool that records decisions.
    pub recorder_connections: usize,
    /// Connections in the pool that numbers and sends events.
    pub event_connections: usize,
    /// How long a request waits for a free connection.
    pub wait_seconds: u64,
    /// The maximum time of a statement. Postgres cancels a statement that runs longer.
    pub statement_seconds: u64,
    /// How long the service waits at start for a database that is absent or starting.
    pub start_seconds: u64,
}

/// The trusted issuers of JWTs.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Identity {
    /// The `iss` of tokens: the identity provider's URL. Required in production.
    pub issuer: Option<String>,
    /// The `aud` of tokens. Required in production.
    pub audience: Option<String>,
    /// The URL of the issuer's keys. Default: `jwks_uri` of the issuer's
    /// `/.well-known/openid-configuration` if that exists, otherwise the issuer's
    /// `/.well-known/jwks.json`.
    pub jwks_url: Option<String>,
    /// Whether the service runs its built-in identity provider. The provider signs tokens for
    /// anyone on this machine. By default, it runs in development without an issuer.
    pub dev_provider: Option<bool>,
    /// The algorithms of tokens: `RS256`, `ES256` and `EdDSA` (Ed25519).
    #[serde(deserialize_with = "text::algorithms")]
    pub algorithms: Vec<SigningAlgorithm>,
    /// The algorithms of tokens with the role `owner`, among `algorithms` of the owner's issuer.
    #[serde(deserialize_with = "text::algorithms")]
    pub owner_algorithms: Vec<SigningAlgorithm>,
    /// The only issuer that may give the role `owner`, by its name in `issuers`. Default: `identity.issuer`.
    pub owner_issuer: Option<String>,
    /// The claim with the role: the name of a claim, or a JSON Pointer that begins with `/`. A list may contain
    /// several roles. Default: `/public_metadata/role`.
    pub role_claim: Option<String>,
    /// The claim with the tenant's `idp_org_id` or id, as in `role_claim`. Default: `org_id`, then `/o/id`, then
    /// `/public_metadata/tenant_id`.
    pub tenant_claim: Option<String>,
    /// The claim with the person's groups, as in `role_claim`.
    pub groups_claim: Option<String>,
    /// The slugs of the tenants of `identity.issuer`, or `*` for all. A token with another tenant is
    /// refused. Required with `issuers`. Default: `*`.
    #[serde(deserialize_with = "text::list")]
    pub tenants: Vec<String>,
    /// The roles of groups: `{"authority-admins" = "admin"}`. A group can't have the role `owner`.
    pub roles: BTreeMap<String, String>,
    /// Further issuers by name, each in a section `identity.issuers.<name>`.
    pub issuers: BTreeMap<String, FurtherIssuer>,
}

/// An issuer besides `identity.issuer`.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct FurtherIssuer {
    /// The `iss` of tokens. Required.
    pub issuer: String,
    /// The `aud` of tokens. Required.
    pub audience: String,
    /// The URL of the issuer's keys, with the default of `identity.jwks_url`.
    pub jwks_url: Option<String>,
    /// The slugs of its tenants, or `*` for all. Required, unless it is the owner's issuer.
    #[serde(deserialize_with = "text::list")]
    pub tenants: Vec<String>,
    /// The algorithms of tokens.
    #[serde(deserialize_with = "text::algorithms")]
    pub algorithms: Vec<SigningAlgorithm>,
    /// The claim with the role.
    pub role_claim: Option<String>,
    /// The claim with the tenant.
    pub tenant_claim: Option<String>,
    /// The claim with the person's groups.
    pub groups_claim: Option<String>,
    /// The URL of another issuer with the same people: the same `sub` is the same person there.
    /// Default: this issuer has its own people.
    pub are_one: Option<String>,
    /// The roles of groups.
    pub roles: BTreeMap<String, String>,
}

/// The web console, at `/console`.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct ConsoleConfig {
    /// Whether the console is served. By default, it is served if `console.client_id` is set or the
    /// development provider runs.
    pub enabled: Option<bool>,
    /// The console's client id at the identity provider in `identity.issuer`. Its redirect URI is
    /// `listen.public_url` followed by `/console/sign-in/callback`.
    pub client_id: Option<String>,
    /// The issuer at which people sign in: the name of an issuer in `identity.issuers`. Default:
    /// `identity.issuer`.
    pub issuer: Option<String>,
    /// Scopes that the console requests besides `openid`, `profile`, `email` and `offline_access`, for providers that
    /// need them for the claims with role and tenant.
    #[serde(deserialize_with = "text::list")]
    pub scopes: Vec<String>,
    /// The secret of the client `console.client_id`. Required in production.
    pub client_secret: Option<Secret>,
    /// Further issuers at which people can sign in, each in a section `console.issuers.<name>` with
    /// `client_id`, `client_secret` and `scopes`. The name is a name in `identity.issuers`. With them,
    /// people choose their issuer.
    pub issuers: BTreeMap<String, ConsoleClient>,
}

/// The console's client at an issuer.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct ConsoleClient {
    /// The console's client id there. Required.
    pub client_id: String,
    /// The client's secret. Required in production.
    pub client_secret: Option<Secret>,
    /// Further scopes, as in `console.scopes`.
    #[serde(deserialize_with = "text::list")]
    pub scopes: Vec<String>,
}

/// The ring of key-encryption keys, which encrypts private keys. Set one of the two fields.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Keys {
    /// A file with `id:base64` on each line, readable only by its owner, or owned by root and readable
    /// by a group of the service's user. In development, it is created in `data_dir`.
    pub ring_file: Option<PathBuf>,
    /// The key ring itself instead of a file: `id:base64` for each key, separated by commas.
    pub ring: Option<Secret>,
}

#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Decide {
    /// The maximum age of the authority graph. No decisions are made on an older graph.
    pub max_staleness_seconds: u64,
    /// How long an allow is valid, in seconds, unless its tenant sets another value.
    pub valid_for_seconds: u64,
    /// `strict` flushes each commit to disk. `relaxed` may lose the last decisions if the database
    /// crashes.
    pub durability: Durability,
}

/// Whether Postgres flushes a commit to disk before the response.
///
/// A tenant's own `durability` has the same values, but cannot make a `relaxed` service `strict`.
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
    /// Origins of pages that may call the API (`https://console.example.org`). `*` is refused.
    #[serde(deserialize_with = "text::origins")]
    pub origins: Vec<String>,
}

/// The limits of a connection.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// The maximum number of open connections on each address.
    pub connections: usize,
    /// The maximum number of TLS handshakes in progress on each address. Above it, the oldest is
    /// ended.
    pub handshakes: usize,
    /// The maximum number of concurrent requests on one HTTP/2 connection.
    pub streams: u32,
    /// The maximum size of an HTTP request's head; at least 8192.
    pub header_bytes: u32,
    /// The maximum size of a body. REST and gRPC have lower limits of their own.
    pub body_bytes: u64,
    /// The number of unread response bytes at which new requests of an HTTP/2 connection wait. A
    /// response is dropped if the connection's unread bytes would then exceed twice this limit.
    pub unsent_bytes: u64,
    /// The maximum number of unread response bytes of all connections of the node; at least twice
    /// `unsent_bytes`. Above it, the node closes connections, first the connections with the
    /// highest product of unread bytes and waiting time.
    pub node_unsent_bytes: u64,
    /// The maximum time from accepting a connection to detecting its protocol. It includes the TLS
    /// handshake.
    pub first_byte_seconds: u64,
    /// The maximum time from the first byte of a request to the end of its head.
    pub header_seconds: u64,
    /// The maximum time from a request's head to the end of its body.
    pub body_seconds: u64,
    /// How long a connection may stay open without a request.
    pub idle_seconds: u64,
    /// How long a peer may leave a response unread before its HTTP/2 stream is reset or its
    /// HTTP/1.1 connection is closed.
    pub stalled_seconds: u64,
    /// The interval of pings to HTTP/2 peers.
    pub ping_seconds: u64,
    /// How long an HTTP/2 peer may take to answer a ping.
    pub pong_seconds: u64,
    /// How long connections are still accepted after the stop signal, while readiness returns 503.
    /// Default: 5 in production, 0 in development.
    pub lame_duck_seconds: Option<u64>,
    /// The maximum time from the end of `lame_duck_seconds` to the end of the last connection.
    pub drain_seconds: u64,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Logs {
    /// The format of log lines: `text` or `json`. Default: `text` on a terminal, `json` otherwise.
    pub format: Option<LogFormat>,
    /// A filter for log lines, in the syntax of the environment variable `RUST_LOG`. If set,
    /// `RUST_LOG` overrides this setting.
    pub filter: Option<String>,
}

/// Traces over OTLP. They are off without an endpoint.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Traces {
    /// The collector's gRPC endpoint, for example `http://127.0.0.1:4317`.
    pub endpoint: Option<String>,
    /// The fraction (0 to 1) of traced requests, among requests without a `traceparent` header. If
    /// a request has this header, the header decides whether the request is traced.
    pub ratio: f64,
}

/// Metrics over OTLP, in addition to the address `listen.ops`. They are off without an endpoint.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct MetricsConfig {
    /// The collector's gRPC endpoint for metrics, for example `http://127.0.0.1:4317`.
    pub endpoint: Option<String>,
    /// The time between two exports of the metrics.
    pub interval_seconds: u64,
}

/// The destinations of webhook deliveries besides public addresses on ports 443 and 8443.
///
/// Development also permits http, and any port of the loopback.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Webhooks {
    /// The ports to which webhooks may be delivered, besides 443 and 8443.
    pub ports: Vec<u16>,
    /// Private networks to which webhooks may be delivered: parts of 10.0.0.0/8, 172.16.0.0/12,
    /// 192.168.0.0/16, 100.64.0.0/10 and `fc00::/7`.
    #[serde(deserialize_with = "text::list")]
    pub allow_cidrs: Vec<String>,
    /// A PEM file of certificate authorities to trust for webhook receivers, besides the public
    /// ones.
    pub ca_file: Option<PathBuf>,
}

/// The NATS server for audit streams with the sink `nats`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct NatsConfig {
    /// The URL of the NATS server, for example `nats://nats.example.org:4222` or `tls://…`.
    pub url: Option<String>,
    /// A file with credentials for the NATS server, in the format of `nsc`.
    pub credentials: Option<PathBuf>,
}

/// Web Push for notifications. It is off without a subject.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct PushConfig {
    /// A contact for push services: a `mailto:` or an `https:` URI (RFC 8292, 2.1).
    pub subject: Option<String>,
    /// A PEM file with the P-256 private key that identifies this installation to push services. In
    /// development, a missing file is created in `data_dir`.
    pub key_file: Option<PathBuf>,
}

/// E-mail for messages about approvals. It is off without a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct SmtpConfig {
    /// The SMTP server that sends messages about approvals, for example `smtp.example.org`.
    pub host: Option<String>,
    /// The port of the SMTP server. Default: 587 with `starttls`, 465 with `tls`, 25 with `none`.
    pub port: Option<u16>,
    /// The encryption of the connection: `starttls`, `tls` (from its beginning) or `none`, which production
    /// refuses.
    pub tls: SmtpTls,
    /// The user name, if the SMTP server requires one.
    pub user: Option<String>,
    /// A file with the password of the user.
    pub password_file: Option<PathBuf>,
    /// The sender's address, for example `authority@example.org`.
    pub from: Option<String>,
    /// A PEM file with a certificate authority to trust for the SMTP server, besides the public ones.
    pub ca_file: Option<PathBuf>,
}

/// The encryption of the connection to the SMTP server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SmtpTls {
    #[default]
    Starttls,
    Tls,
    None,
}

/// DNS resolution for the verification of domains.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct DnsConfig {
    /// Addresses of DNS servers, such as `192.0.2.53:53`. If empty, the system's servers are used.
    #[serde(deserialize_with = "text::addresses")]
    pub servers: Vec<SocketAddr>,
}

/// The consultant programme.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProgrammeConfig {
    /// JWKS URLs of other issuers that may sign certifications, besides this service: `https`, or
    /// `http` on this machine.
    #[serde(deserialize_with = "text::list")]
    pub issuers: Vec<String>,
}

/// How long personal data is kept.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct PersonalDataConfig {
    /// Leads that did not become a tenant are emptied after this many days.
    pub lead_retention_days: u32,
    /// The reason for the installation's legal hold. While it is set, no data is erased, neither
    /// for a person nor by age.
    pub legal_hold: Option<String>,
}

/// The archive, to which decisions are copied by month. Their rows are then deleted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct ArchiveConfig {
    /// The URL of the archive: a folder (`file:///var/lib/authority/archive`) or an S3-compatible
    /// bucket (`s3://bucket/prefix`) with credentials, region and endpoint in `AWS_*`. Default in
    /// development: `archive` in `data_dir`. Without an archive, no decisions are deleted.
    /// `migrate` also reads this setting, to let the serving login remove archived rows.
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

    /// Returns how long a stopping service still accepts connections.
    pub fn lame_duck(&self) -> Duration {
        let usual = if self.production() { LAME_DUCK } else { 0 };
        Duration::from_secs(self.limits.lame_duck_seconds.unwrap_or(usual))
    }

    /// Whether the built-in identity provider runs.
    pub fn dev_provider(&self) -> bool {
        self.identity.dev_provider.unwrap_or(!self.production() && self.identity.issuer.is_none())
    }

    /// Returns the URL of the issuer at which people sign in to the console.
    pub fn sign_in_issuer(&self) -> Option<&str> {
        match &self.console.issuer {
            Some(name) => self.identity.issuers.get(name).map(|further| further.issuer.as_str()),
            None => self.identity.issuer.as_deref(),
        }
    }

    /// Returns the issuers at which people sign in to the console, each with its name in
    /// `console.issuers`, its URL and the console's client there.
    pub fn sign_ins(&self) -> Vec<(Option<&str>, &str, ConsoleClient)> {
        let ConsoleConfig { client_id, client_secret, scopes, issuers, .. } = &self.console;
        let first = self.sign_in_issuer().zip(client_id.clone()).map(|(issuer, client_id)| {
            let (client_secret, scopes) = (client_secret.clone(), scopes.clone());
            (None, issuer, ConsoleClient { client_id, client_secret, scopes })
        });
        let further = issuers.iter().filter_map(|(name, client)| {
            let known = self.identity.issuers.get(name)?;
            Some((Some(name.as_str()), known.issuer.as_str(), client.clone()))
        });
        first.into_iter().chain(further).collect()
    }

    /// Whether the console is served.
    pub fn console(&self) -> bool {
        let usual = self.console.client_id.is_some() || self.dev_provider();
        self.console.enabled.unwrap_or(usual)
    }

    /// Returns the base of links in responses, without a trailing slash.
    pub fn public_url(&self) -> String {
        if let Some(url) = &self.listen.public_url {
            return url.trim_end_matches('/').to_owned();
        }
        let address = self.listen.gateway.unwrap_or(self.listen.main);
        format!("{}://{address}", self.tls.scheme())
    }

    /// Whether months of decisions are archived.
    pub fn has_archive(&self) -> bool {
        self.archive.url.is_some() || !self.production()
    }

    /// Returns the URL of the archive. It is `None` only in production.
    ///
    /// # Errors
    /// The folder in which the process was started no longer exists.
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

    /// Whether clients use https. Only then may HSTS be sent.
    pub fn https(&self) -> bool {
        self.public_url().starts_with("https://")
    }
}
