//! Removes credentials from error messages.
//!
//! Errors quote invalid values. If such a value is a credential in the wrong field, clients would
//! log it. Any text that looks like an API key or a JWT is therefore withheld.

/// The replacement for a withheld credential.
const WITHHELD: &str = "[withheld]";
/// The minimum length of a part of a key or token.
const LEAST: usize = 8;

/// The text without the secrets of API keys (`svc_<env>_<public id>_` stays, to identify the key)
/// and without JWTs.
pub fn without_secrets(text: String) -> String {
    if !text.contains("svc_") && !text.contains("eyJ") {
        return text;
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let word = rest.find(|letter| !is_inner(letter)).unwrap_or(rest.len());
        let (word, after) = rest.split_at(word);
        out.push_str(kept(word));
        if kept(word).len() < word.len() {
            out.push_str(WITHHELD);
        }
        let between = after.find(is_inner).unwrap_or(after.len());
        let (between, next) = after.split_at(between);
        out.push_str(between);
        rest = next;
    }
    out
}

/// The characters of keys and tokens.
fn is_inner(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '.')
}

/// The part of a word that may be shown.
fn kept(word: &str) -> &str {
    let secret = [after_public_id(word), token(word)].into_iter().flatten().min();
    secret.and_then(|at| word.get(..at)).unwrap_or(word)
}

/// Where the secret of an API key starts: `svc_<env>_<public id>_<secret>_<checksum>`.
fn after_public_id(word: &str) -> Option<usize> {
    let start = word.find("svc_")?;
    let key = word.get(start..)?;
    let mut parts = key.splitn(4, '_');
    let (_, env, id, secret) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let fits = !env.is_empty() && id.len() >= LEAST && secret.len() >= LEAST;
    fits.then(|| start + key.len() - secret.len())
}

/// Where a JWT starts: its first part begins with `{"` in base64url, and a second part follows.
fn token(word: &str) -> Option<usize> {
    let start = word.find("eyJ")?;
    let mut parts = word.get(start..)?.split('.');
    let long = |part: Option<&str>| part.is_some_and(|part| part.len() >= LEAST);
    (long(parts.next()) && long(parts.next())).then_some(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_withheld_and_nothing_else() {
        let id = "0193a1b2c3d47e8f9a0b1c2d3e4f5a6b";
        let key = format!("svc_sandbox_{id}_{}_25490566", "a1B2".repeat(11));
        let token = "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2lnbmF0dXJlX19f";
        for (text, shown) in [
            (
                format!("`subject` `{key}` does not match"),
                format!("`subject` `svc_sandbox_{id}_[withheld]` does not match"),
            ),
            (format!("no entity `{key}`"), format!("no entity `svc_sandbox_{id}_[withheld]`")),
            (key.clone(), format!("svc_sandbox_{id}_[withheld]")),
            (format!("x{key}{key}"), format!("xsvc_sandbox_{id}_[withheld]")),
            (
                format!("Bearer {token}: no, {token}"),
                "Bearer [withheld]: no, [withheld]".to_owned(),
            ),
            (format!("ä{token}ö"), "ä[withheld]ö".to_owned()),
        ] {
            assert_eq!(without_secrets(text), shown);
        }
        for text in [
            "the API key lacks the scope `runtime:read`",
            "`prefix` svc_sandbox_0193a1b2c3d47e8f9a0b1c2d3e4f5a6b",
            "svc_evidence_packs",
            "eyJ",
            "eyJhbGciOiJSUzI1NiJ9",
            "",
        ] {
            assert_eq!(without_secrets(text.to_owned()), text);
        }
    }
}
