//! The defaults of the settings.

use std::{collections::BTreeMap, net::SocketAddr, path::PathBuf};

use super::{
    ArchiveConfig, Config, ConsoleConfig, Cors, Database, Decide, DnsConfig, Durability,
    Environment, FurtherIssuer, Identity, Keys, Limits, Listen, Logs, MetricsConfig, NatsConfig,
    PersonalDataConfig, ProgrammeConfig, PushConfig, SigningAlgorithm, SmtpConfig, Tls, Traces,
    Webhooks,
};

impl Default for Config {
    fn default() -> Self {
        Self {
            environment: Environment::default(),
            data_dir: PathBuf::from(".agent-authority"),
            trusted_proxies: Vec::new(),
            listen: Listen::default(),
            tls: Tls::default(),
            database: Database::default(),
            identity: Identity::default(),
            console: ConsoleConfig::default(),
            keys: Keys::default(),
            decide: Decide::default(),
            cors: Cors::default(),
            limits: Limits::default(),
            logs: Logs::default(),
            traces: Traces::default(),
            metrics: MetricsConfig::default(),
            webhooks: Webhooks::default(),
            nats: NatsConfig::default(),
            push: PushConfig::default(),
            smtp: SmtpConfig::default(),
            dns: DnsConfig::default(),
            programme: ProgrammeConfig::default(),
            personal_data: PersonalDataConfig::default(),
            archive: ArchiveConfig::default(),
        }
    }
}

impl Default for Traces {
    fn default() -> Self {
        Self { endpoint: None, ratio: 1.0 }
    }
}

impl Default for MetricsConfig {
    fn default() -> Self {
        Self { endpoint: None, interval_seconds: 15 }
    }
}

impl Default for PersonalDataConfig {
    fn default() -> Self {
        Self { lead_retention_days: 730, legal_hold: None }
    }
}

impl Default for Listen {
    fn default() -> Self {
        Self {
            main: SocketAddr::from(([127, 0, 0, 1], 8080)),
            admin: None,
            app: None,
            gateway: None,
            site: None,
            ops: SocketAddr::from(([127, 0, 0, 1], 9464)),
            public_url: None,
        }
    }
}

impl Default for Identity {
    fn default() -> Self {
        Self {
            issuer: None,
            audience: None,
            jwks_url: None,
            dev_provider: None,
            algorithms: vec![SigningAlgorithm::Rs256],
            owner_algorithms: vec![SigningAlgorithm::Rs256],
            owner_issuer: None,
            role_claim: None,
            tenant_claim: None,
            groups_claim: None,
            roles: BTreeMap::new(),
            tenants: Vec::new(),
            issuers: BTreeMap::new(),
        }
    }
}

impl Default for FurtherIssuer {
    fn default() -> Self {
        Self {
            issuer: String::new(),
            audience: String::new(),
            jwks_url: None,
            tenants: Vec::new(),
            algorithms: vec![SigningAlgorithm::Rs256],
            role_claim: None,
            tenant_claim: None,
            groups_claim: None,
            roles: BTreeMap::new(),
            are_one: None,
        }
    }
}

impl Default for Database {
    fn default() -> Self {
        Self {
            url: None,
            owner_url: None,
            tenant_connections: 16,
            system_connections: 6,
            recorder_connections: 2,
            event_connections: 6,
            wait_seconds: 5,
            statement_seconds: 10,
            start_seconds: 60,
        }
    }
}

impl Default for Decide {
    fn default() -> Self {
        Self { max_staleness_seconds: 5, valid_for_seconds: 60, durability: Durability::Strict }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 10_000,
            handshakes: 1000,
            streams: 1000,
            header_bytes: 16 * 1024,
            body_bytes: 2 * 1024 * 1024,
            unsent_bytes: 16 * 1024 * 1024,
            node_unsent_bytes: 256 * 1024 * 1024,
            first_byte_seconds: 5,
            header_seconds: 10,
            body_seconds: 30,
            idle_seconds: 75,
            stalled_seconds: 30,
            ping_seconds: 20,
            pong_seconds: 10,
            lame_duck_seconds: None,
            drain_seconds: 10,
        }
    }
}
