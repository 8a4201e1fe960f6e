//! The cases that are specific to `jwt`.

use authority_webhook::signing::Suite::Jwt;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::{Value, json};

use super::{MISREAD, TARGET, bad, good};
use crate::delivery::{Delivery, URL, body, signer};

pub(super) fn cases() -> Vec<Value> {
    let named = |what: &str| format!("jwt: {what}");
    let own = Token::genuine();
    let more = Token::genuine().claim("{", "{\"nonce\":1,");
    let valid = [
        good(&named("the test's own signer"), &own.delivery(), &json!({})),
        good(&named("a claim that is not known"), &more.delivery(), &json!({})),
    ];
    let refused = [by_others(), altered(), signed_otherwise()].concat();
    let refused = refused.iter().map(|(what, delivery, code)| bad(&named(what), delivery, code));
    let delivery = Delivery::signed(&[Jwt]);
    let misread = MISREAD.iter();
    let misread = misread.map(|(what, url)| delivery.misread(&named(what), url, "url", &["url"]));
    valid.into_iter().chain(refused).chain(misread).collect()
}

type Case = (&'static str, Delivery, &'static str);

/// The JSON of header and claims, which a case changes and signs with the service's key.
struct Token {
    header: String,
    claims: String,
}

impl Token {
    fn genuine() -> Self {
        let [header, claims, _] = parts();
        let read = |part| String::from_utf8(URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap();
        Self { header: read(header), claims: read(claims) }
    }

    fn header(self, from: &str, to: &str) -> Self {
        assert!(self.header.contains(from), "{from}");
        Self { header: self.header.replace(from, to), ..self }
    }

    fn claim(self, from: &str, to: &str) -> Self {
        assert!(self.claims.contains(from), "{from}");
        Self { claims: self.claims.replace(from, to), ..self }
    }

    fn encoded(&self) -> [String; 2] {
        [&self.header, &self.claims].map(|part| URL_SAFE_NO_PAD.encode(part))
    }

    fn delivery(&self) -> Delivery {
        let signed = self.encoded().join(".");
        let signature = signer("webhook", 1).sign(signed.as_bytes());
        with(&format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }
}

/// Header, claims and signature of a genuine token.
fn parts() -> [String; 3] {
    let delivery = Delivery::signed(&[Jwt]);
    let parts: Vec<_> = delivery.get("webhook-jwt").split('.').map(str::to_owned).collect();
    parts.try_into().unwrap()
}

fn with(token: &str) -> Delivery {
    Delivery::signed(&[Jwt]).set("webhook-jwt", token)
}

fn by_others() -> Vec<Case> {
    let by = |key| Delivery::signed_by(&[Jwt], &[], &key, URL, &body());
    let elsewhere = Delivery::signed_by(&[Jwt], &[], &signer("webhook", 1), TARGET, &body());
    vec![
        ("a key that is not published", by(signer("webhook", 3)), "unknown_key"),
        ("a key of another purpose", by(signer("evidence", 2)), "unknown_key"),
        ("for another URL", elsewhere, "url"),
    ]
}

/// Deliveries altered after signing.
fn altered() -> Vec<Case> {
    let [header, claims, signature] = parts();
    let whole = format!("{header}.{claims}.{signature}");
    let [unsigned, _] = Token::genuine().header("EdDSA", "none").encoded();
    let [_, elsewhere] = Token::genuine().claim(URL, TARGET).encoded();
    let twice = Delivery::signed(&[Jwt]).add("webhook-jwt", &whole);
    vec![
        ("algorithm none", with(&format!("{unsigned}.{claims}.")), "malformed"),
        ("other claims", with(&format!("{header}.{elsewhere}.{signature}")), "signature"),
        ("two parts", with(&format!("{header}.{claims}")), "malformed"),
        ("four parts", with(&format!("{header}.{claims}.{claims}.{signature}")), "malformed"),
        ("padding", with(&format!("{whole}=")), "malformed"),
        ("half a signature", with(&format!("{header}.{claims}.AAAA")), "signature"),
        ("two headers", twice, "malformed"),
    ]
}

/// Deliveries signed with the service's key, but not in the form the service uses.
fn signed_otherwise() -> Vec<Case> {
    let header = |from: &str, to: &str| Token::genuine().header(from, to).delivery();
    let claim = |from: &str, to: &str| Token::genuine().claim(from, to).delivery();
    let quoted = format!("\"{URL}\"");
    let no_object = Token { claims: "[]".to_owned(), ..Token::genuine() };
    vec![
        ("another algorithm", header("EdDSA", "HS256"), "malformed"),
        ("another type", header("svc-webhook+jwt", "JWT"), "malformed"),
        ("a critical member", header("{", "{\"crit\":[\"b64\"],"), "malformed"),
        ("no kid", header("\"kid\"", "\"key\""), "malformed"),
        ("expired", claim("1790000300", "1790000004"), "time"),
        ("a signed old time", claim("\"iat\":1790000000", "\"iat\":1789999000"), "time"),
        ("another digest", claim("\"body_sha256\":\"", "\"body_sha256\":\"0"), "digest"),
        ("another event", claim("9a1b", "9a1c"), "event_id"),
        ("no audience", claim("\"aud\"", "\"for\""), "malformed"),
        ("audiences", claim(&quoted, &format!("[{quoted}]")), "malformed"),
        ("no digest", claim("\"body_sha256\"", "\"sha256\""), "malformed"),
        ("no expiry", claim("\"exp\"", "\"end\""), "malformed"),
        ("an expiry that is text", claim("1790000300", "\"1790000300\""), "malformed"),
        ("a negative time", claim("\"iat\":1790000000", "\"iat\":-1"), "malformed"),
        ("claims that are no object", no_object.delivery(), "malformed"),
    ]
}
