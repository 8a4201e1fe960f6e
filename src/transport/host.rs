//! The host of a request: named exactly once, and required in HTTP/1.1.
//!
//! The service does not depend on the name. With two names, however, a proxy could route by one
//! while a server behind it reads the other.

use axum::http::{HeaderValue, Request, Version, header::HOST};

/// The problem with a request's host, if any (RFC 9112 section 3.2, RFC 9113 section 8.3.1).
pub(super) fn problem<B>(request: &Request<B>) -> Option<&'static str> {
    let mut hosts = request.headers().get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        (_, Some(_)) => Some("is given more than once; send it once"),
        (None, None) => {
            (request.version() == Version::HTTP_11).then_some("is missing; HTTP/1.1 needs it")
        }
        (Some(host), None) if !is_host(host) => {
            Some("must be a host's name or address, with a port or without")
        }
        (Some(host), None) => {
            let other = |host: &HeaderValue| {
                let authority = request.uri().authority();
                authority
                    .is_some_and(|a| !a.as_str().as_bytes().eq_ignore_ascii_case(host.as_bytes()))
            };
            (request.version() == Version::HTTP_2 && other(host))
                .then_some("must be the same as `:authority`, or left out")
        }
    }
}

/// Checks the characters (RFC 3986, section 3.2.2): no user, path or space. Empty is allowed.
fn is_host(host: &HeaderValue) -> bool {
    let may = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:[]%".contains(byte);
    host.as_bytes().iter().all(may)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_named_once_and_well() {
        for (version, uri, hosts, sound) in [
            (Version::HTTP_11, "/", vec!["example.com:8080"], true),
            (Version::HTTP_11, "/", vec!["[::1]:80"], true),
            (Version::HTTP_11, "/", vec![""], true),
            (Version::HTTP_11, "/", vec![], false),
            (Version::HTTP_11, "/", vec!["a", "a"], false),
            (Version::HTTP_11, "/", vec!["me@a"], false),
            (Version::HTTP_11, "/", vec!["a/b"], false),
            (Version::HTTP_10, "/", vec![], true),
            (Version::HTTP_2, "http://a/", vec![], true),
            (Version::HTTP_2, "http://a/", vec!["A"], true),
            (Version::HTTP_2, "http://a/", vec!["b"], false),
            (Version::HTTP_2, "http://a/", vec!["a", "b"], false),
        ] {
            let mut request = Request::builder().version(version).uri(uri);
            for host in &hosts {
                request = request.header(HOST, *host);
            }
            let found = problem(&request.body(()).unwrap());
            assert_eq!(found.is_none(), sound, "{uri} {hosts:?}: {found:?}");
        }
    }
}
