//! `standard-webhooks/v1`: the symmetric signatures of Standard Webhooks.

use super::{
    attempt::{Attempt, base64},
    secret::Secret,
};

/// The value of `webhook-signature`: `v1,` and an HMAC for each secret, the newest secret first.
pub(super) fn signature(attempt: &Attempt<'_>, secrets: &[Secret]) -> String {
    let signed = signed_bytes(attempt.event_id, attempt.at.timestamp(), attempt.body);
    let codes = secrets.iter().map(|secret| format!("v1,{}", base64(&secret.code(&signed))));
    codes.collect::<Vec<_>>().join(" ")
}

fn signed_bytes(id: &str, seconds: i64, body: &[u8]) -> Vec<u8> {
    [format!("{id}.{seconds}.").as_bytes(), body].concat()
}

#[cfg(test)]
mod tests {
    use authority_crypto::hmac_sha256;
    use base64::{Engine, engine::general_purpose::STANDARD};

    use super::*;

    /// The example of the Standard Webhooks libraries. Its secret has 24 bytes; ours have 32.
    #[test]
    fn the_signed_bytes_are_those_of_the_libraries() {
        let secret = STANDARD.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let body = br#"{"test": 2432232314}"#;
        let signed = signed_bytes("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body);
        let code = base64(&hmac_sha256(&secret, &signed));
        assert_eq!(code, "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }
}
