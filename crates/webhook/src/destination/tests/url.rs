//! URLs checked at creation, in encodings that clients might try.

use crate::destination::{AddressRules, EndpointUrl, UrlError, UrlRules};

fn production(text: &str) -> Result<EndpointUrl, UrlError> {
    EndpointUrl::parse(text, &UrlRules::default())
}

fn development(text: &str) -> Result<EndpointUrl, UrlError> {
    let addresses = AddressRules::new(&[], true).unwrap();
    EndpointUrl::parse(text, &UrlRules { ports: vec![9000], development: true, addresses })
}

#[test]
fn normal_forms() {
    let table = [
        ("https://example.com", "https://example.com/"),
        ("HTTPS://EXAMPLE.com:443/a/../b?c=d", "https://example.com/b?c=d"),
        ("https://example.com:8443/", "https://example.com:8443/"),
        ("https://bücher.example/é", "https://xn--bcher-kva.example/%C3%A9"),
        ("https://8.8.8.8/", "https://8.8.8.8/"),
        ("https://0x08.0x8.010.8/", "https://8.8.8.8/"),
        ("https://134744072/", "https://8.8.8.8/"),
        ("https://[2606:4700:4700:0::1111]/", "https://[2606:4700:4700::1111]/"),
        ("https://example.com/a%2Fb", "https://example.com/a%2Fb"),
    ];
    for (text, normal) in table {
        assert_eq!(production(text).unwrap().as_str(), normal, "{text}");
        assert_eq!(production(normal).unwrap().to_string(), normal, "{text}");
    }
}

#[test]
fn refused_in_production() {
    let port = |port| UrlError::Port { port, allowed: "443, 8443".to_owned() };
    let long = format!("https://example.com/{}", "a".repeat(2048));
    let grows = format!("https://example.com/{}", "é".repeat(1000));
    let table = [
        (long.as_str(), UrlError::Long),
        (grows.as_str(), UrlError::Long),
        ("", UrlError::Unreadable),
        ("example.com", UrlError::Unreadable),
        ("https:example.com", UrlError::Unreadable),
        ("https:/example.com", UrlError::Unreadable),
        ("https://", UrlError::Unreadable),
        ("https:////example.com", UrlError::Unreadable),
        ("https://exa%00mple.com/", UrlError::Unreadable),
        ("https://example.com:99999/", UrlError::Unreadable),
        ("https://[::1", UrlError::Unreadable),
        ("https://1.2.3.4.5/", UrlError::Unreadable),
        ("https://256.1.1.1/", UrlError::Unreadable),
        ("http://example.com", UrlError::Scheme),
        ("ftp://example.com", UrlError::Scheme),
        ("file:///etc/passwd", UrlError::Scheme),
        ("gopher://127.0.0.1/", UrlError::Scheme),
        (" https://example.com", UrlError::Character),
        ("https://example.com/a b", UrlError::Character),
        ("https://exam\tple.com", UrlError::Character),
        ("https://example.com\\@10.0.0.1/", UrlError::Character),
        ("https://example.com/\u{a0}", UrlError::Character),
        ("https://me@example.com", UrlError::UserInfo),
        ("https://me:secret@example.com", UrlError::UserInfo),
        ("https://@example.com", UrlError::UserInfo),
        ("https://:@example.com", UrlError::UserInfo),
        ("https://example.com@10.0.0.1", UrlError::UserInfo),
        ("https://example.com/#a", UrlError::Fragment),
        ("https://example.com/#", UrlError::Fragment),
        ("https://example.com:80/", port(80)),
        ("https://example.com:22/", port(22)),
        ("https://example.com:0/", port(0)),
        ("https://localhost/", UrlError::Host),
        ("https://LOCALHOST/", UrlError::Host),
        ("https://api.localhost/", UrlError::Host),
        ("https://localhost./", UrlError::Host),
        ("https://example.com./", UrlError::Host),
        ("https://127.0.0.1/", UrlError::Host),
        ("https://127.1/", UrlError::Host),
        ("https://0x7f.1/", UrlError::Host),
        ("https://0177.0.0.1/", UrlError::Host),
        ("https://2130706433/", UrlError::Host),
        ("https://0x7f000001/", UrlError::Host),
        ("https://１２７.0.0.1/", UrlError::Host),
        ("https://127.0.0.1./", UrlError::Host),
        ("https://%31%32%37.0.0.1/", UrlError::Host),
        ("https://①②⑦.0.0.1/", UrlError::Host),
        ("https://0/", UrlError::Host),
        ("https://10.0.0.1/", UrlError::Host),
        ("https://169.254.169.254/latest", UrlError::Host),
        ("https://0xa9fea9fe/", UrlError::Host),
        ("https://[::1]/", UrlError::Host),
        ("https://[::]/", UrlError::Host),
        ("https://[::ffff:127.0.0.1]/", UrlError::Host),
        ("https://[::ffff:8.8.8.8]/", UrlError::Host),
        ("https://[64:ff9b::8.8.8.8]/", UrlError::Host),
        ("https://[2002:808:808::]/", UrlError::Host),
        ("https://[fd00:ec2::254]/", UrlError::Host),
    ];
    for (text, why) in table {
        assert_eq!(production(text), Err(why), "{text}");
    }
}

#[test]
fn development_permits_http_and_any_port_of_the_machine() {
    for text in [
        "http://example.com/",
        "http://example.com:9000/",
        "https://example.com:9000/",
        "http://localhost:3000/hook",
        "http://127.0.0.1:54321/",
        "http://127.1:54321/",
        "http://[::1]:1/",
        "https://api.localhost:8081/",
    ] {
        assert!(development(text).is_ok(), "{text}: {:?}", development(text));
    }
    let allowed = "443, 8443, 9000".to_owned();
    assert_eq!(development("http://example.com:81/"), Err(UrlError::Port { port: 81, allowed }));
    for text in ["https://10.0.0.1/", "http://169.254.169.254/", "http://[::ffff:127.0.0.1]/"] {
        assert_eq!(development(text), Err(UrlError::Host), "{text}");
    }
    assert!(matches!(development("http://localhost:0/"), Err(UrlError::Port { port: 0, .. })));
}

#[test]
fn parts_that_a_client_connects_by() {
    let url = production("https://[2606:4700:4700::1111]:8443/a").unwrap();
    assert_eq!((url.host(), url.port(), url.is_https()), ("[2606:4700:4700::1111]", 8443, true));
    assert_eq!(url.address(), Some("2606:4700:4700::1111".parse().unwrap()));
    let url = development("http://Example.com").unwrap();
    assert_eq!((url.host(), url.port(), url.is_https()), ("example.com", 80, false));
    assert_eq!(url.address(), None);
}

#[test]
fn an_origin_is_scheme_host_and_port() {
    let same = |left: &str, right: &str| {
        development(left).unwrap().has_origin_of(&development(right).unwrap())
    };
    assert!(same("https://example.com/a", "https://EXAMPLE.com:443/b?c"));
    assert!(!same("https://example.com", "https://example.com:8443"));
    assert!(!same("https://example.com", "http://example.com"));
    assert!(!same("https://example.com", "https://www.example.com"));
}
