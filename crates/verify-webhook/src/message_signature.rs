//! `rfc9421`: HTTP Message Signatures (RFC 9421) with a digest of the body (RFC 9530).

use base64::{Engine, engine::general_purpose::STANDARD};
use ring::digest::{SHA256, digest};

use crate::{
    Options, VerifyError,
    headers::Headers,
    keys,
    time::{check_time, seconds},
};

/// The label of this service's signature. The request may have other signatures too.
const LABEL: &str = "svc=";
/// The components that the signature must cover, in the service's order.
const COMPONENTS: &str = "(\"@method\" \"@target-uri\" \"content-digest\" \"content-type\" \
                          \"webhook-id\" \"webhook-timestamp\")";

/// Returns the id of the signed event.
pub(crate) fn verify(
    body: &[u8],
    headers: Headers<'_>,
    options: &Options<'_>,
    now: u64,
) -> Result<String, VerifyError> {
    let input = member(headers.one("signature-input")?)?;
    let Parameters { created, expires, kid } = parameters(input).ok_or(VerifyError::Malformed)?;
    let signature = member(headers.one("signature")?)?;
    let encoded = signature.strip_prefix(':').and_then(|rest| rest.strip_suffix(':'));
    let signature = encoded.and_then(|encoded| STANDARD.decode(encoded).ok());
    let signature = signature.ok_or(VerifyError::Malformed)?;

    let id = headers.one("webhook-id")?;
    let content_digest = headers.one("content-digest")?;
    let base = format!(
        "\"@method\": POST\n\"@target-uri\": {}\n\"content-digest\": {content_digest}\n\
         \"content-type\": {}\n\"webhook-id\": {id}\n\"webhook-timestamp\": {}\n\
         \"@signature-params\": {input}",
        options.url,
        headers.one("content-type")?,
        headers.one("webhook-timestamp")?,
    );
    keys::verify(options.jwks, kid, base.as_bytes(), &signature).map_err(|why| match why {
        VerifyError::Signature => VerifyError::MessageSignature,
        why => why,
    })?;
    check_time(created, options, now)?;
    if now > expires {
        return Err(VerifyError::Time);
    }
    let own = format!("sha-256=:{}:", STANDARD.encode(digest(&SHA256, body)));
    if content_digest != own {
        return Err(VerifyError::Digest);
    }
    Ok(id.to_owned())
}

/// Returns this service's member of a dictionary (RFC 9651, 3.2). It must occur exactly once.
fn member(dictionary: &str) -> Result<&str, VerifyError> {
    let mut quoted = false;
    let members = dictionary.split(|letter: char| {
        quoted ^= letter == '"';
        letter == ',' && !quoted
    });
    let mut ours =
        members.filter_map(|member| member.trim_matches([' ', '\t']).strip_prefix(LABEL));
    match (ours.next(), ours.next()) {
        (Some(member), None) => Ok(member),
        _ => Err(VerifyError::Malformed),
    }
}

struct Parameters<'a> {
    created: u64,
    expires: u64,
    kid: &'a str,
}

/// Parses the parameters of a signature. The service always writes them in this form; other forms
/// are not parsed.
fn parameters(input: &str) -> Option<Parameters<'_>> {
    let rest = input.strip_prefix(COMPONENTS)?.strip_prefix(";created=")?;
    let (created, rest) = rest.split_once(";expires=")?;
    let (expires, rest) = rest.split_once(";keyid=\"")?;
    let (kid, rest) = rest.split_once('"')?;
    let fits = rest == ";alg=\"ed25519\";tag=\"svc-webhook-v1\"";
    fits.then_some(Parameters { created: seconds(created)?, expires: seconds(expires)?, kid })
}
