//! Sends messages as e-mail, by SMTP.

use std::time::Duration;

use authority_presentation::{MessageText, mail_body};
use base64::{Engine, engine::general_purpose::STANDARD};
use chrono::{DateTime, Utc};
use lettre::{
    Address, SmtpTransport, Transport as _,
    address::Envelope,
    transport::smtp::{
        authentication::Credentials,
        client::{Certificate, Tls, TlsParameters},
        extension::ClientId,
    },
};
use tokio::{task::spawn_blocking, time::timeout};

use super::refusal::Refusal;

/// The time limit for connecting, and for each command.
const COMMAND: Duration = Duration::from_secs(10);
/// The time limit for a whole message. It is shorter than the claim of a message.
const WHOLE: Duration = Duration::from_secs(40);
/// The number of characters of base64 in a line (RFC 2045, 6.8).
const LINE: usize = 76;

/// How a connection to the SMTP server is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MailTls {
    /// By `STARTTLS`, which the server must offer.
    StartTls,
    /// From the beginning of the connection.
    Tls,
    /// Not at all.
    None,
}

/// The SMTP server, and the sender of messages.
#[derive(Clone)]
pub struct MailSettings {
    pub host: String,
    pub port: u16,
    pub tls: MailTls,
    /// User name and password.
    pub credentials: Option<(String, String)>,
    /// The sender's address.
    pub from: String,
    /// Certificate authorities to trust, besides the public ones, in PEM.
    pub roots: Option<Vec<u8>>,
}

/// Why the settings of e-mail cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MailError {
    #[error("`smtp.from` is `{0}`; it must be an address such as authority@example.org")]
    From(String),
    #[error("`smtp.ca_file` or `smtp.host`: {0}")]
    Tls(#[from] lettre::transport::smtp::Error),
}

/// Sends e-mail.
#[derive(Clone)]
pub struct Mailer {
    smtp: SmtpTransport,
    from: Address,
}

impl Mailer {
    /// Prepares the connection. Does not connect.
    ///
    /// # Errors
    /// The settings cannot be used.
    pub fn new(settings: MailSettings) -> Result<Self, MailError> {
        let MailSettings { host, port, tls, credentials, from, roots } = settings;
        let from = address(&from).ok_or(MailError::From(from))?;
        let parameters = || {
            let builder = TlsParameters::builder(host.clone());
            let builder = match &roots {
                Some(pem) => builder.add_root_certificate(Certificate::from_pem(pem)?),
                None => builder,
            };
            builder.build()
        };
        let tls = match tls {
            MailTls::StartTls => Tls::Required(parameters()?),
            MailTls::Tls => Tls::Wrapper(parameters()?),
            MailTls::None => Tls::None,
        };
        let mut smtp = SmtpTransport::builder_dangerous(host.clone())
            .port(port)
            .tls(tls)
            .timeout(Some(COMMAND))
            .hello_name(ClientId::Domain(from.domain().to_owned()));
        if let Some((user, password)) = credentials {
            smtp = smtp.credentials(Credentials::new(user, password));
        }
        Ok(Self { smtp: smtp.build(), from })
    }

    /// Sends a message. The receiver's server can recognize a repetition by the id.
    ///
    /// # Errors
    /// The reason why the server did not accept the message.
    pub(super) async fn send(
        &self,
        to: &str,
        id: &str,
        text: &MessageText,
        now: DateTime<Utc>,
    ) -> Result<(), Refusal> {
        let to = address(to).ok_or_else(|| Refusal::permanent("address"))?;
        let letter = letter(&self.from, &to, id, text, now);
        let envelope = Envelope::new(Some(self.from.clone()), vec![to]);
        let envelope = envelope.map_err(|_| Refusal::permanent("address"))?;
        let smtp = self.smtp.clone();
        let sending = spawn_blocking(move || smtp.send_raw(&envelope, letter.as_bytes()));
        match timeout(WHOLE, sending).await {
            Ok(Ok(Ok(_))) => Ok(()),
            Ok(Ok(Err(error))) => Err(refusal(&error)),
            Ok(Err(_)) => Err(Refusal::temporary("smtp")),
            Err(_) => Err(Refusal::timeout()),
        }
    }
}

/// Reads an address. `None` if it is not an ASCII address: others need a server with SMTPUTF8.
pub(super) fn address(text: &str) -> Option<Address> {
    let is_plain = text.is_ascii() && !text.contains(|c: char| c.is_whitespace() || c.is_control());
    text.parse().ok().filter(|_| is_plain)
}

fn refusal(error: &lettre::transport::smtp::Error) -> Refusal {
    let class = match error.status() {
        Some(code) => format!("smtp_{code}"),
        None if error.is_timeout() => return Refusal::timeout(),
        None if error.is_tls() => "smtp_tls".to_owned(),
        None => "smtp".to_owned(),
    };
    if error.is_permanent() { Refusal::permanent(&class) } else { Refusal::temporary(&class) }
}

/// The bytes of an e-mail (RFC 5322). No header has a text that a caller or an agent chose.
fn letter(
    from: &Address,
    to: &Address,
    id: &str,
    text: &MessageText,
    now: DateTime<Utc>,
) -> String {
    let encoded = STANDARD.encode(mail_body(text).replace('\n', "\r\n"));
    let mut body = String::new();
    for (index, letter) in encoded.chars().enumerate() {
        if index > 0 && index % LINE == 0 {
            body.push_str("\r\n");
        }
        body.push(letter);
    }
    let id = id.rsplit(':').next().unwrap_or(id);
    let headers = [
        ("From", format!("Agent Authority <{from}>")),
        ("To", format!("<{to}>")),
        ("Subject", text.heading.to_owned()),
        ("Date", now.to_rfc2822()),
        ("Message-ID", format!("<{id}@{}>", from.domain())),
        ("Auto-Submitted", "auto-generated".to_owned()),
        ("MIME-Version", "1.0".to_owned()),
        ("Content-Type", "text/plain; charset=utf-8".to_owned()),
        ("Content-Transfer-Encoding", "base64".to_owned()),
    ];
    let headers = headers.map(|(name, value)| format!("{name}: {value}\r\n"));
    format!("{}\r\n{body}\r\n", headers.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_letter_has_ascii_lines_of_limited_length() {
        let own = |text: &str| address(text).unwrap();
        let text = MessageText {
            heading: "A request waits for approval",
            lines: vec![("To".to_owned(), "Łódź & Söhne ".repeat(20))],
            link: "https://authority.example.org/console/approvals/x".to_owned(),
            link_text: "Open the request",
        };
        let now = "2026-03-05T09:07:30Z".parse().unwrap();
        let (from, to) = (own("authority@example.org"), own("ann@example.net"));
        let letter = letter(&from, &to, "svc:message:0198c0ff", &text, now);
        assert!(letter.is_ascii() && letter.lines().all(|line| line.len() <= 998));
        let (headers, body) = letter.split_once("\r\n\r\n").unwrap();
        for header in [
            "From: Agent Authority <authority@example.org>",
            "To: <ann@example.net>",
            "Subject: A request waits for approval",
            "Date: Thu, 5 Mar 2026 09:07:30 +0000",
            "Message-ID: <0198c0ff@example.org>",
            "Auto-Submitted: auto-generated",
        ] {
            assert!(headers.lines().any(|line| line == header), "{header}: {headers}");
        }
        assert!(body.lines().all(|line| line.len() <= LINE));
        let body = STANDARD.decode(body.replace("\r\n", "")).unwrap();
        assert_eq!(String::from_utf8(body).unwrap(), mail_body(&text).replace('\n', "\r\n"));
    }

    #[test]
    fn an_address_cannot_add_headers_or_recipients() {
        for wrong in
            ["", "ann", "ann@", "a@b.example\r\nBcc: x@y.example", "a b@c.example", "ä@b.example"]
        {
            assert_eq!(address(wrong), None, "{wrong:?}");
        }
        assert!(address("ann+test@example.org").is_some());
    }
}
