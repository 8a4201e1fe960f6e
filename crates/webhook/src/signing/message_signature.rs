//! `rfc9421`: HTTP Message Signatures with a digest of the body (RFC 9530).

use authority_crypto::Signer;

use super::attempt::{Attempt, CONTENT_TYPE, VALID_FOR, base64};

/// The label that identifies this signature among other signatures of the request.
const LABEL: &str = "svc";
const TAG: &str = "svc-webhook-v1";

/// The value of `Content-Digest`.
pub(super) fn content_digest(digest: &[u8; 32]) -> String {
    format!("sha-256=:{}:", base64(digest))
}

/// The values of `Signature-Input` and `Signature`.
pub(super) fn signature(
    attempt: &Attempt<'_>,
    content_digest: &str,
    signer: &Signer,
) -> (String, String) {
    let created = attempt.at.timestamp();
    let timestamp = created.to_string();
    let components = [
        ("@method", "POST"),
        ("@target-uri", attempt.url.as_str()),
        ("content-digest", content_digest),
        ("content-type", CONTENT_TYPE),
        ("webhook-id", attempt.event_id),
        ("webhook-timestamp", &timestamp),
    ];
    let expires = created + VALID_FOR.num_seconds();
    let kid = signer.kid();
    let parameters = parameters(
        &components,
        &format!(
            "created={created};expires={expires};keyid=\"{kid}\";alg=\"ed25519\";tag=\"{TAG}\""
        ),
    );
    let signature = signer.sign(signature_base(&components, &parameters).as_bytes());
    (format!("{LABEL}={parameters}"), format!("{LABEL}=:{}:", base64(&signature)))
}

/// The names of the covered components and the parameters: RFC 9421, 2.3.
fn parameters(components: &[(&str, &str)], parameters: &str) -> String {
    let names: Vec<_> = components.iter().map(|(name, _)| format!("\"{name}\"")).collect();
    format!("({});{parameters}", names.join(" "))
}

/// The signature base: RFC 9421, 2.5.
fn signature_base(components: &[(&str, &str)], parameters: &str) -> String {
    let lines = components.iter().map(|(name, value)| format!("\"{name}\": {value}\n"));
    lines.collect::<String>() + "\"@signature-params\": " + parameters
}

#[cfg(test)]
mod tests {
    use authority_crypto::sha256;
    use base64::{Engine, engine::general_purpose::STANDARD};

    use super::*;

    /// RFC 9421, B.1.4 and B.2.6.
    #[test]
    fn the_signature_base_is_rfc_9421s() {
        let private = "MC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF";
        let pkcs8 = STANDARD.decode(private).unwrap();
        let signer = Signer::read("test-key-ed25519", &pkcs8).unwrap();
        let components = [
            ("date", "Tue, 20 Apr 2021 02:07:55 GMT"),
            ("@method", "POST"),
            ("@path", "/foo"),
            ("@authority", "example.com"),
            ("content-type", "application/json"),
            ("content-length", "18"),
        ];
        let parameters = parameters(&components, "created=1618884473;keyid=\"test-key-ed25519\"");
        assert_eq!(
            parameters,
            "(\"date\" \"@method\" \"@path\" \"@authority\" \"content-type\" \"content-length\")\
             ;created=1618884473;keyid=\"test-key-ed25519\""
        );
        let base = signature_base(&components, &parameters);
        assert_eq!(
            base64(&signer.sign(base.as_bytes())),
            "wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw=="
        );
    }

    /// RFC 9530, appendix B.1; RFC 9421, 2.5.
    #[test]
    fn the_digest_is_rfc_9530s() {
        let of = |body: &str| content_digest(&sha256(body.as_bytes()));
        let line = "sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:";
        assert_eq!(of("{\"hello\": \"world\"}\n"), line);
        let text = "sha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:";
        assert_eq!(of("{\"hello\": \"world\"}"), text);
    }
}
