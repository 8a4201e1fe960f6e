//! Tests the settings that each environment refuses.

use super::*;
use crate::Environment;

#[test]
fn production_reports_everything_missing_at_once() {
    let mut config = Config { environment: Environment::Production, ..Config::default() };
    let told = config.validate().unwrap_err().to_string();
    for missing in
        ["identity.issuer", "identity.audience", "keys.ring", "DATABASE_URL", "listen.public_url"]
    {
        assert!(told.contains(missing), "{missing}: {told}");
    }
    config.identity.issuer = Some("https://id.example.org".to_owned());
    config.identity.audience = Some("authority".to_owned());
    config.keys.ring = Some(Secret::new("ring"));
    config.database.url = Some(Secret::new("postgres://db"));
    config.listen.main = "0.0.0.0:8080".parse().unwrap();
    config.listen.public_url = Some("https://authority.example.org".to_owned());
    config.validate().unwrap();
    config.identity.dev_provider = Some(true);
    assert!(config.validate().unwrap_err().to_string().contains("signs tokens for anyone"));
}

#[test]
fn development_stays_on_the_loopback() {
    let mut config = Config::default();
    config.validate().unwrap();
    config.listen.admin = Some("0.0.0.0:80".parse().unwrap());
    assert!(config.validate().unwrap_err().to_string().contains("`listen.admin`"));
}

#[test]
fn a_url_is_one() {
    let mut config = Config::default();
    for (url, sound) in [
        ("https://id.example.org", true),
        ("http://localhost:8080", true),
        ("", true),
        ("x", false),
        ("id.example.org", false),
        ("https://", false),
    ] {
        config.identity.issuer = Some(url.to_owned());
        config.listen.public_url = Some(url.to_owned());
        let told = config.validate().err().map(|fault| fault.to_string()).unwrap_or_default();
        for name in ["identity.issuer", "listen.public_url"] {
            assert_eq!(!told.contains(name), sound, "{url}: {told}");
        }
    }
}

#[test]
fn no_bound_may_be_nothing() {
    let mut config = Config::default();
    config.limits.idle_seconds = 0;
    assert!(config.validate().unwrap_err().to_string().contains("limits.idle_seconds"));
    config.limits.idle_seconds = 1;
    config.limits.unsent_bytes = 0;
    assert!(config.validate().unwrap_err().to_string().contains("limits.unsent_bytes"));
}

#[test]
fn the_node_holds_what_one_connection_may() {
    let mut config = Config::default();
    for (connection, node, sound) in
        [(1000, 2000, true), (1000, 1999, false), (1000, 0, false), (u64::MAX, u64::MAX - 1, false)]
    {
        config.limits.unsent_bytes = connection;
        config.limits.node_unsent_bytes = node;
        let told = config.validate().err().map(|fault| fault.to_string()).unwrap_or_default();
        let named = told.contains("`limits.node_unsent_bytes`");
        assert_eq!(named, !sound, "{connection}, {node}: {told}");
    }
}

#[test]
fn nats_is_at_a_url_of_its_own_schemes() {
    let told = |config: &Config| {
        config.validate().err().map(|fault| fault.to_string()).unwrap_or_default()
    };
    let mut config = Config::default();
    for (url, sound) in [
        ("nats://nats.example.org:4222", true),
        ("tls://nats.example.org", true),
        ("http://nats.example.org:4222", false),
        ("nats.example.org:4222", false),
        ("nats://", false),
        ("", false),
    ] {
        config.nats.url = Some(url.to_owned());
        assert_eq!(told(&config).is_empty(), sound, "{url}: {}", told(&config));
        assert_eq!(told(&config).contains("`nats.url`"), !sound, "{url}");
    }
    config.nats.url = Some("http://user:hush@nats.example.org".to_owned());
    assert!(!told(&config).contains("hush"), "{}", told(&config));
    config.nats.url = None;
    config.nats.credentials = Some("nats.creds".into());
    assert!(told(&config).contains("`nats.credentials` needs `nats.url`"));
}

#[test]
fn the_console_needs_a_client_and_in_production_its_secret_over_https() {
    let told = |config: &Config| {
        config.validate().err().map(|fault| fault.to_string()).unwrap_or_default()
    };
    let mut config = Config::default();
    assert!(config.console() && told(&config).is_empty());
    config.identity.issuer = Some("https://id.example.org".to_owned());
    assert!(!config.console());
    config.console.enabled = Some(true);
    assert!(told(&config).contains("`console.client_id`"));
    config.console.enabled = None;
    config.console.client_id = Some("console".to_owned());
    assert!(config.console() && told(&config).is_empty());
    config.environment = Environment::Production;
    assert!(told(&config).contains("`console.client_secret`"));
    assert!(told(&config).contains("begins with https://"));
    config.console.client_secret = Some(Secret::new("hush"));
    config.listen.public_url = Some("https://authority.example.org".to_owned());
    assert!(!told(&config).contains("console"), "{}", told(&config));
    config.console.enabled = Some(false);
    assert!(!config.console());
}

#[test]
fn push_needs_a_contact_and_in_production_a_key() {
    let told = |config: &Config| {
        config.validate().err().map(|fault| fault.to_string()).unwrap_or_default()
    };
    let mut config = Config::default();
    for (subject, sound) in [
        ("mailto:ops@example.org", true),
        ("https://example.org/contact", true),
        ("", false),
        ("ops@example.org", false),
        ("mailto:", false),
        ("mailto:@", false),
        ("http://example.org", false),
        ("https://", false),
        ("mailto:ops @example.org", false),
    ] {
        config.push.subject = Some(subject.to_owned());
        assert_eq!(!told(&config).contains("`push.subject`"), sound, "{subject}");
    }
    config.push.subject = None;
    config.push.key_file = Some("push.pem".into());
    assert!(told(&config).contains("`push.key_file` needs `push.subject`"));
    config.push.subject = Some("mailto:ops@example.org".to_owned());
    config.environment = Environment::Production;
    assert!(!told(&config).contains("push"));
    config.push.key_file = None;
    assert!(told(&config).contains("production needs `push.key_file`"));
}

#[test]
fn email_needs_a_host_a_sender_and_in_production_encryption() {
    let told = |config: &Config| {
        config.validate().err().map(|fault| fault.to_string()).unwrap_or_default()
    };
    let mut config = Config::default();
    assert!(!told(&config).contains("smtp"));
    config.smtp.from = Some("authority@example.org".to_owned());
    assert!(told(&config).contains("`smtp` needs `smtp.host`"));
    config.smtp.host = Some("smtp.example.org".to_owned());
    assert!(!told(&config).contains("smtp"));
    config.smtp.from = None;
    assert!(told(&config).contains("`smtp.host` needs `smtp.from`"));
    config.smtp.from = Some("authority@example.org".to_owned());
    config.smtp.user = Some("authority".to_owned());
    assert!(told(&config).contains("`smtp.user` and `smtp.password_file` need each other"));
    config.smtp.password_file = Some("password".into());
    config.smtp.tls = SmtpTls::None;
    assert!(told(&config).contains("the password would be sent without encryption"));
    (config.smtp.user, config.smtp.password_file) = (None, None);
    assert!(!told(&config).contains("smtp"));
    config.environment = Environment::Production;
    assert!(told(&config).contains("production needs `smtp.tls`"));
}
