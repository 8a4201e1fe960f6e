//! Prepares the sending of e-mail from the settings.

use std::{fs, path::Path};

use authority_config::{Config, SmtpConfig, SmtpTls};
use authority_registry::{MailSettings, MailTls, Mailer};

use super::error::Error;

/// Sends e-mail; `None` if the settings have no SMTP server. Does not connect.
///
/// # Errors
/// A file cannot be read, or the settings cannot be used.
pub(super) fn mailer(config: &Config) -> Result<Option<Mailer>, Error> {
    let SmtpConfig { host, port, tls, user, password_file, from, ca_file } = &config.smtp;
    let (Some(host), Some(from)) = (host, from) else { return Ok(None) };
    let (tls, usual) = match tls {
        SmtpTls::Starttls => (MailTls::StartTls, 587),
        SmtpTls::Tls => (MailTls::Tls, 465),
        SmtpTls::None => (MailTls::None, 25),
    };
    let password = password_file.as_deref().map(|file| read("smtp.password_file", file));
    let credentials = match (user, password.transpose()?) {
        (Some(user), Some(bytes)) => {
            let password = String::from_utf8(bytes);
            let unfit = |_| Error::Mail("`smtp.password_file`: is not UTF-8".to_owned());
            let password = password.map_err(unfit)?.trim_end_matches(['\r', '\n']).to_owned();
            Some((user.clone(), password))
        }
        _ => None,
    };
    let settings = MailSettings {
        host: host.clone(),
        port: port.unwrap_or(usual),
        tls,
        credentials,
        from: from.clone(),
        roots: ca_file.as_deref().map(|file| read("smtp.ca_file", file)).transpose()?,
    };
    Mailer::new(settings).map(Some).map_err(|fault| Error::Mail(fault.to_string()))
}

fn read(setting: &str, file: &Path) -> Result<Vec<u8>, Error> {
    fs::read(file).map_err(|fault| Error::Mail(format!("`{setting}`: {}: {fault}", file.display())))
}
