//! The headers of an attempt, for each suite alone and for all together.

use authority_crypto::Signer;
use base64::{Engine, engine::general_purpose::STANDARD, engine::general_purpose::URL_SAFE_NO_PAD};
use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use super::{attempt::base64, *};
use crate::destination::{EndpointUrl, UrlRules};

const EVENT: &str = "svc:event:0198c0ffee017c4f8a2d5b6e7f809a1b";

fn signer() -> Signer {
    let private = "MC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF";
    Signer::read("svc-webhook-2026-01234567", &STANDARD.decode(private).unwrap()).unwrap()
}

fn at() -> DateTime<Utc> {
    DateTime::from_timestamp(1_790_000_000, 999_000_000).unwrap()
}

fn signed(suites: &[Suite], secrets: &[Secret], body: &[u8]) -> Vec<(String, String)> {
    let url = EndpointUrl::parse("https://example.com/hooks", &UrlRules::default()).unwrap();
    let attempt = Attempt { event_id: EVENT, url: &url, body, at: at() };
    let keys = SigningKeys { secrets, signer: &signer(), issuer: "https://authority.example" };
    let headers = sign(&attempt, suites, &keys).unwrap();
    let text = |value: HeaderValue| value.to_str().unwrap().to_owned();
    headers.into_iter().map(|(name, value)| (name.to_string(), text(value))).collect()
}

fn value<'a>(headers: &'a [(String, String)], name: &str) -> &'a str {
    &headers.iter().find(|(own, _)| own == name).unwrap().1
}

#[test]
fn each_suite_has_its_headers() {
    let secrets = [Secret::new([1; 32])];
    let names = |suites: &[Suite]| {
        signed(suites, &secrets, b"{}").into_iter().map(|(name, _)| name).collect::<Vec<_>>()
    };
    let common = ["content-type", "webhook-id", "webhook-timestamp"];
    assert_eq!(names(&[]), common);
    assert_eq!(names(&[Suite::StandardWebhooks])[3..], ["webhook-signature"]);
    let three = ["content-digest", "signature-input", "signature"];
    assert_eq!(names(&[Suite::Rfc9421])[3..], three);
    assert_eq!(names(&[Suite::Jwt])[3..], ["webhook-jwt"]);
    assert_eq!(names(&Suite::ALL).len(), 8);
}

#[test]
fn a_rotation_signs_with_both_secrets() {
    let (new, old) = (Secret::new([2; 32]), Secret::new([1; 32]));
    let of = |secrets: &[Secret]| {
        value(&signed(&[Suite::StandardWebhooks], secrets, b"{}"), "webhook-signature").to_owned()
    };
    let both = of(&[new.clone(), old.clone()]);
    assert_eq!(both, format!("{} {}", of(&[new]), of(std::slice::from_ref(&old))));
    let expected = old.code(format!("{EVENT}.1790000000.{{}}").as_bytes());
    assert_eq!(of(&[old]), format!("v1,{}", base64(&expected)));
}

#[test]
fn a_message_signature_covers_digest_target_and_time() {
    let headers = signed(&[Suite::Rfc9421], &[], b"{}");
    let digest = "sha-256=:RBNvo1WzZ4oRRq0W9+hknpT7T8If536DEMBg9hyq/4o=:";
    assert_eq!(value(&headers, "content-digest"), digest);
    let parameters = "(\"@method\" \"@target-uri\" \"content-digest\" \"content-type\" \"webhook-id\" \
                      \"webhook-timestamp\");created=1790000000;expires=1790000300;\
                      keyid=\"svc-webhook-2026-01234567\";alg=\"ed25519\";tag=\"svc-webhook-v1\"";
    assert_eq!(value(&headers, "signature-input"), format!("svc={parameters}"));
    let base = format!(
        "\"@method\": POST\n\"@target-uri\": https://example.com/hooks\n\"content-digest\": {digest}\n\
         \"content-type\": application/json\n\"webhook-id\": {EVENT}\n\
         \"webhook-timestamp\": 1790000000\n\"@signature-params\": {parameters}"
    );
    let signature = base64(&signer().sign(base.as_bytes()));
    assert_eq!(value(&headers, "signature"), format!("svc=:{signature}:"));
}

#[test]
fn a_token_names_audience_event_and_digest() {
    let headers = signed(&[Suite::Jwt], &[], b"{}");
    let parts: Vec<_> = value(&headers, "webhook-jwt").split('.').collect();
    let [header, claims, signature] = parts[..] else { panic!("{parts:?}") };
    let json = |part: &str| -> Value {
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
    };
    let kid = "svc-webhook-2026-01234567";
    assert_eq!(json(header), json!({"alg": "EdDSA", "kid": kid, "typ": "svc-webhook+jwt"}));
    assert_eq!(
        json(claims),
        json!({"iss": "https://authority.example", "aud": "https://example.com/hooks",
            "iat": 1_790_000_000, "exp": 1_790_000_300, "jti": EVENT, "body_sha256":
            "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"})
    );
    let signed = signer().sign(format!("{header}.{claims}").as_bytes());
    assert_eq!(URL_SAFE_NO_PAD.decode(signature).unwrap(), signed);
}

#[test]
fn what_cannot_stand_in_a_header_is_not_signed() {
    let url = EndpointUrl::parse("https://example.com/", &UrlRules::default()).unwrap();
    let attempt = Attempt { event_id: "a\r\nb", url: &url, body: b"{}", at: at() };
    let keys = SigningKeys { secrets: &[], signer: &signer(), issuer: "a" };
    let why = sign(&attempt, &Suite::ALL, &keys).unwrap_err();
    assert_eq!(why.to_string(), "the event's id is not allowed in a header");
}

#[test]
fn a_secret_is_shown_once_and_read_back() {
    let secret = Secret::new([7; 32]);
    assert_eq!(secret.reveal(), "whsec_BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=");
    assert_eq!(Secret::parse(&secret.reveal()), Ok(secret.clone()));
    assert_eq!(secret.as_bytes(), &[7; 32]);
    assert!(!format!("{secret:?}").contains("BwcH"));
    for text in
        ["", "whsec_", "whsec_BwcH", "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=", "whsec_!"]
    {
        assert_eq!(Secret::parse(text), Err(SecretError), "{text}");
    }
}

#[test]
fn suites_are_named() {
    let check = |names: &[&str]| {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        check_suites(&names).map_err(|why| why.to_string())
    };
    let all = Suite::ALL.map(Suite::as_str);
    assert_eq!(check(&all), Ok(Suite::ALL.to_vec()));
    assert_eq!(check(&["rfc9421", "standard-webhooks/v1"]).unwrap()[0], Suite::Rfc9421);
    let twice = check(&["jwt", "jwt"]).unwrap_err();
    assert_eq!(twice, "signing_suites: `jwt` comes twice");
    assert!(check(&["v1a"]).unwrap_err().contains("unknown suite `v1a`; there are"));
    assert!(check(&[]).unwrap_err().contains("at least one; leave it out"));
}
