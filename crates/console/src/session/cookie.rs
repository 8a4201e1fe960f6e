//! Cookies. A session's cookie is an opaque 256-bit number, which only its browser has.

use authority_crypto::{Error, random, sha256};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use http::{HeaderMap, HeaderValue, header};

/// How cookies are set. Over https their names begin with `__Host-`. A browser then refuses cookies
/// from another host or over a plain connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cookies {
    pub(crate) https: bool,
}

/// A cookie of the console.
#[derive(Clone, Copy)]
pub(crate) enum Cookie<'a> {
    Session,
    /// The sign-in with this `state`. Several tabs can sign in at once, because each sign-in has its own cookie.
    SignIn(&'a str),
}

const SIGN_IN: &str = "sign-in-";
/// The number of characters of the `state` in a cookie's name.
const STATE: usize = 16;

impl Cookie<'_> {
    fn name(self, https: bool) -> String {
        let prefix = prefix(https);
        match self {
            Self::Session => format!("{prefix}session"),
            Self::SignIn(state) => {
                format!("{prefix}{SIGN_IN}{}", state.get(..STATE).unwrap_or_default())
            }
        }
    }
}

fn prefix(https: bool) -> &'static str {
    if https { "__Host-" } else { "" }
}

impl Cookies {
    /// The value of a cookie. `None` if there is none, or if several make it unclear which counts.
    pub(crate) fn read<'h>(self, headers: &'h HeaderMap, cookie: Cookie<'_>) -> Option<&'h str> {
        let name = cookie.name(self.https);
        let mut found = pairs(headers).filter(|(known, _)| *known == name).map(|(_, value)| value);
        found.next().filter(|_| found.next().is_none())
    }

    /// Names and values of the cookies for unfinished sign-ins.
    pub(crate) fn sign_ins(self, headers: &HeaderMap) -> impl Iterator<Item = (&str, &str)> {
        let prefix = prefix(self.https);
        pairs(headers).filter(move |(name, _)| {
            name.strip_prefix(prefix).is_some_and(|name| name.starts_with(SIGN_IN))
        })
    }

    /// The header that sets a cookie until the browser is closed. With `Lax`, a link in a message
    /// opens its page also for people who are signed in already.
    pub(crate) fn set(self, cookie: Cookie<'_>, value: &str) -> Option<HeaderValue> {
        self.header(&cookie.name(self.https), value, "")
    }

    /// The header that removes a cookie.
    pub(crate) fn remove(self, cookie: Cookie<'_>) -> Option<HeaderValue> {
        self.remove_named(&cookie.name(self.https))
    }

    pub(crate) fn remove_named(self, name: &str) -> Option<HeaderValue> {
        self.header(name, "", "; Max-Age=0")
    }

    fn header(self, name: &str, value: &str, age: &str) -> Option<HeaderValue> {
        let secure = if self.https { "; Secure" } else { "" };
        let text = format!("{name}={value}; Path=/; HttpOnly; SameSite=Lax{secure}{age}");
        HeaderValue::from_str(&text).ok()
    }
}

/// The cookies of a request.
fn pairs(headers: &HeaderMap) -> impl Iterator<Item = (&str, &str)> {
    let lines = headers.get_all(header::COOKIE).iter().filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='))
}

/// Creates the value of a new session's cookie.
pub(crate) fn new_value() -> Result<String, Error> {
    Ok(URL_SAFE_NO_PAD.encode(random::<32>()?))
}

/// The digest that finds a session. The table therefore does not contain usable cookies.
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
    fn each_sign_in_has_a_cookie_of_its_own() {
        let cookies = Cookies { https: true };
        let [first, second] = ["aaaaaaaaaaaaaaaaXX", "bbbbbbbbbbbbbbbbXX"].map(Cookie::SignIn);
        let mut headers = HeaderMap::new();
        for (cookie, value) in [(first, "1"), (second, "2"), (Cookie::Session, "3")] {
            let set = cookies.set(cookie, value).unwrap();
            let pair = set.to_str().unwrap().split(';').next().unwrap();
            headers.append(header::COOKIE, HeaderValue::from_str(pair).unwrap());
        }
        assert_eq!(cookies.read(&headers, first), Some("1"));
        assert_eq!(cookies.read(&headers, second), Some("2"));
        assert_eq!(cookies.read(&headers, Cookie::SignIn("short")), None);
        let values: Vec<_> = cookies.sign_ins(&headers).map(|(_, value)| value).collect();
        assert_eq!(values, ["1", "2"]);
    }

    #[test]
    fn of_two_cookies_with_one_name_none_counts() {
        let mut headers = HeaderMap::new();
        let cookies = Cookies { https: true };
        headers
            .append(header::COOKIE, HeaderValue::from_static("a=1; __Host-session=x; session=y"));
        assert_eq!(cookies.read(&headers, Cookie::Session), Some("x"));
        assert_eq!(cookies.read(&headers, Cookie::SignIn("")), None);
        headers.append(header::COOKIE, HeaderValue::from_static("__Host-session=z"));
        assert_eq!(cookies.read(&headers, Cookie::Session), None);
    }
}
