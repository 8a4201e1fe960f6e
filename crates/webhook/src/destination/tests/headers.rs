//! The headers of an endpoint.

use proptest::prelude::*;

use crate::destination::{HeaderError, check_headers};

fn one(name: &str, value: &str) -> Result<(), HeaderError> {
    check_headers([(name, value)]).map(drop)
}

#[test]
fn names_are_in_lower_case_and_values_are_not_printed() {
    let headers = [("Authorization", "Bearer secret"), ("X-Tenant", "a b\tc")];
    let checked = check_headers(headers).unwrap();
    assert_eq!(checked[0].0, "authorization");
    assert_eq!(checked[1].1, "a b\tc");
    assert!(!format!("{checked:?}").contains("secret"));
}

#[test]
fn refused_names() {
    for name in [
        "Connection",
        "Keep-Alive",
        "TE",
        "Trailer",
        "Transfer-Encoding",
        "Upgrade",
        "Host",
        "Content-Type",
        "Content-Length",
        "Content-Digest",
        "Cookie",
        "Set-Cookie",
        "Forwarded",
        "X-Forwarded-For",
        "x-forwarded-host",
        "Proxy-Authorization",
        "Proxy-Connection",
        "Signature",
        "Signature-Input",
        "Webhook-Id",
        "webhook-signature",
        "Svc-Replay",
        "Expect",
        "Accept-Encoding",
        "Via",
        "User-Agent",
        "Date",
        "Range",
        "If-None-Match",
        "Max-Forwards",
        "Proxy",
        "X-Real-IP",
        "X-Forwarded",
        "X-HTTP-Method-Override",
        "X-Method-Override",
        "X-Original-URL",
        "X-Rewrite-URL",
        "True-Client-IP",
        "CF-Connecting-IP",
        "X-Client-IP",
        "X-Original-Host",
        "X-Host",
        // Further headers of proxies and clouds.
        "X-Cluster-Client-IP",
        "CF-Connecting-IPv6",
        "X-Azure-ClientIP",
        "X-Remote-Addr",
        "X-Original-Forwarded-For",
        "X-Vercel-Forwarded-For",
        "X-HTTP-Host-Override",
        "X-Envoy-External-Address",
    ] {
        let refused = HeaderError::Refused(name.to_lowercase());
        assert_eq!(one(name, "a"), Err(refused), "{name}");
    }
    for name in ["X-Tenant", "X-Hostname-Of-Ours", "X-Trip", "X-Shipping-Address", "Authorization"]
    {
        assert_eq!(one(name, "a"), Ok(()), "{name}");
    }
    for name in ["", "a b", "a:b", ":path", "ä", "a\n", "a\r\nb", "content_length", "webhook_id"] {
        assert!(matches!(one(name, "a"), Err(HeaderError::Name(_))), "{name:?}");
    }
    let twice = check_headers([("X-A", "1"), ("x-a", "2")]);
    assert_eq!(twice.map(drop), Err(HeaderError::Twice("x-a".to_owned())));
}

#[test]
fn refused_values() {
    for value in ["", " a", "a ", "\ta", "a\nb", "a\r\nHost: b", "é", "a\0b", "\u{7f}"] {
        assert_eq!(one("x-a", value), Err(HeaderError::Value("x-a".to_owned())), "{value:?}");
    }
}

#[test]
fn ten_headers_of_4_kib() {
    let names: Vec<_> = (0..11).map(|number| format!("x-{number:02}")).collect();
    let some = |count: usize| names[..count].iter().map(|name| (name.as_str(), "v"));
    assert!(check_headers(some(10)).is_ok());
    assert_eq!(check_headers(some(11)).map(drop), Err(HeaderError::TooMany(11)));
    assert!(one("x-a", &"v".repeat(4093)).is_ok());
    assert_eq!(one("x-a", &"v".repeat(4094)), Err(HeaderError::TooLong(4097)));
}

proptest! {
    #[test]
    fn nothing_can_end_a_header(name in "\\PC{0,12}|[a-z\\r\\n: -]{0,12}", value in any::<String>()) {
        for (name, value) in check_headers([(name.as_str(), value.as_str())]).unwrap_or_default() {
            let control = |byte: &u8| byte.is_ascii_control() && *byte != b'\t';
            prop_assert!(!name.as_str().bytes().any(|byte| byte == b':' || control(&byte)));
            prop_assert!(!value.as_bytes().iter().any(control));
        }
    }
}
