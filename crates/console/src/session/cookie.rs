//! Cookies: a session's is an opaque 256-bit number, which only its browser has.

use authority_crypto::{Error, random, sha256};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use http::{HeaderMap, HeaderValue, header};

/// How cookies are set. Over https their names begin with `__Host-`, by which a browser refuses one that another
/// host or a plain connection sets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cookies {
    pub(crate) https: bool,
}

/// A cookie of the console.
#[derive(Clone, Copy)]
pub(crate) enum Cookie {
    Session,
    /// A sign-in that has begun.
    SignIn,
}

impl Cookie {
    fn name(self, https: bool) -> &'static str {
        match (self, https) {
            (Self::Session, true) => "__Host-session",
            (Self::Session, false) => "session",
            (Self::SignIn, true) => "__Host-sign-in",
            (Self::SignIn, false) => "sign-in",
        }
    }
}

impl Cookies {
    /// The value of a cookie; `None` if there is none, or several: it is unclear which counts.
    pub(crate) fn read(self, headers: &HeaderMap, cookie: Cookie) -> Option<&str> {
        let name = cookie.name(self.https);
        let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
        let pairs =
            lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
        let mut found = pairs.filter(|(known, _)| *known == name).map(|(_, value)| value);
        found.next().filter(|_| found.next().is_none())
    }

    /// The header that sets a cookie until the browser is closed. `Lax`, so that a link in a message leads to the
    /// page that it names, also for who is signed in already.
    pub(crate) fn set(self, cookie: Cookie, value: &str) -> Option<HeaderValue> {
        self.header(cookie, value, "")
    }

    /// The header that removes a cookie.
    pub(crate) fn remove(self, cookie: Cookie) -> Option<HeaderValue> {
        self.header(cookie, "", "; Max-Age=0")
    }

    fn header(self, cookie: Cookie, value: &str, age: &str) -> Option<HeaderValue> {
        let name = cookie.name(self.https);
        let secure = if self.https { "; Secure" } else { "" };
        let text = format!("{name}={value}; Path=/; HttpOnly; SameSite=Lax{secure}{age}");
        HeaderValue::from_str(&text).ok()
    }
}

/// A new session's cookie.
pub(crate) fn new_value() -> Result<String, Error> {
    Ok(URL_SAFE_NO_PAD.encode(random::<32>()?))
}

/// By what a session is found: whoever reads the table has no cookie.
pub(crate) fn digest(value: &str) -> [u8; 32] {
    sha256(value.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn over_https_a_cookie_is_this_hosts_alone() {
        let set = |https| {
            let header = Cookies { https }.set(Cookie::Session, "v").unwrap();
            header.to_str().unwrap().to_owned()
        };
        assert_eq!(set(true), "__Host-session=v; Path=/; HttpOnly; SameSite=Lax; Secure");
        assert_eq!(set(false), "session=v; Path=/; HttpOnly; SameSite=Lax");
    }

    #[test]
    fn of_two_cookies_with_one_name_none_counts() {
        let mut headers = HeaderMap::new();
        let cookies = Cookies { https: true };
        headers
            .append(header::COOKIE, HeaderValue::from_static("a=1; __Host-session=x; session=y"));
        assert_eq!(cookies.read(&headers, Cookie::Session), Some("x"));
        assert_eq!(cookies.read(&headers, Cookie::SignIn), None);
        headers.append(header::COOKIE, HeaderValue::from_static("__Host-session=z"));
        assert_eq!(cookies.read(&headers, Cookie::Session), None);
    }
}
