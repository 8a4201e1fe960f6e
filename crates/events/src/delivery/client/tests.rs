//! Tests of the client with receivers on the loopback address. Most pass the addresses of a name
//! directly, without a look-up.

mod bodies;
mod tls;

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    process::Command,
    sync::Arc,
};

use authority_webhook::destination::UrlRules;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::{ServerConfig, SupportedProtocolVersion};
use rustls_pki_types::PrivateKeyDer;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};
use tokio_rustls::TlsAcceptor;

use super::*;

const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn rules() -> UrlRules {
    let addresses = AddressRules::new(&[], true).unwrap();
    UrlRules { development: true, addresses, ports: Vec::new() }
}

fn url(text: &str) -> EndpointUrl {
    EndpointUrl::of_record(text).unwrap()
}

fn client(rules: AddressRules, roots: RootCertStore) -> Client {
    Client::new(rules, roots).unwrap()
}

fn local() -> Client {
    client(rules().addresses, RootCertStore::empty())
}

fn soon() -> Instant {
    Instant::now() + Duration::from_secs(5)
}

fn post(url: &EndpointUrl) -> Outgoing {
    let host = host_header(url).unwrap();
    Request::post("/").header("host", host).body(Full::new(Bytes::from_static(b"{}"))).unwrap()
}

/// Connects to a given address without resolving the name.
async fn among(
    client: &Client,
    url: &EndpointUrl,
    resolved: &[IpAddr],
) -> Result<Connection, ErrorClass> {
    client.vet(url, resolved)?;
    connect::open(&client.tls, url, resolved, soon()).await
}

/// Starts a receiver. Each connection gets these responses, one for each request, and is then
/// closed. Returns the receiver's address and the received requests.
async fn receiver(answers: Vec<String>) -> (SocketAddr, Arc<parking_lot::Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let heard: Arc<parking_lot::Mutex<Vec<String>>> = Arc::default();
    let noted = Arc::clone(&heard);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (answers, noted) = (answers.clone(), Arc::clone(&noted));
            tokio::spawn(async move {
                for answer in answers {
                    let mut request = vec![0; 4096];
                    let read = stream.read(&mut request).await.unwrap_or(0);
                    if read == 0 {
                        return;
                    }
                    noted.lock().push(String::from_utf8_lossy(&request[..read]).into_owned());
                    let _ = stream.write_all(answer.as_bytes()).await;
                }
            });
        }
    });
    (address, heard)
}

fn answer(status: u16, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status} X\r\n{headers}content-length: {}\r\n\r\n{body}", body.len())
}

#[tokio::test]
async fn all_addresses_of_a_name_are_vetted_and_one_of_them_is_connected_to() {
    let strict = client(AddressRules::default(), RootCertStore::empty());
    let named = url("https://receiver.example/hooks");
    for refused in [
        &["127.0.0.1"][..],
        &["10.0.0.1"],
        // One internal address, at any position, is enough to refuse the name.
        &["93.184.216.34", "10.0.0.1"],
        &["192.168.1.1", "93.184.216.34"],
        &["169.254.169.254"],
        &["100.64.0.1"],
        &["::1"],
        &["::ffff:127.0.0.1"],
        &["::127.0.0.1"],
        &["64:ff9b::7f00:1"],
        &["2002:7f00:1::"],
        &["2001:0:1::"],
        &["fe80::1"],
        &["fd00::1"],
        &["ff02::1"],
        &[],
    ] {
        let resolved: Vec<IpAddr> = refused.iter().map(|text| text.parse().unwrap()).collect();
        let refusal = among(&strict, &named, &resolved).await.err();
        assert_eq!(refusal, Some(ErrorClass::Address), "{refused:?}");
    }
    // The client connects to a vetted address and doesn't look the name up again.
    let (address, heard) = receiver(vec![answer(204, "", "")]).await;
    let rebound = url(&format!("http://receiver.invalid:{}/", address.port()));
    let connection = among(&local(), &rebound, &[LOOPBACK]).await.ok().unwrap();
    let received = local().send(connection, post(&rebound), soon()).await.ok().unwrap();
    assert_eq!(received.status, 204);
    let host = format!("host: receiver.invalid:{}", address.port());
    assert!(heard.lock()[0].to_ascii_lowercase().contains(&host));
}

#[tokio::test]
async fn addresses_in_urls_are_vetted_too() {
    let strict = client(AddressRules::default(), RootCertStore::empty());
    for text in [
        "https://127.0.0.1/",
        "https://[::1]/",
        "https://[::ffff:10.0.0.1]/",
        "https://0x7f000001/",
        "https://2130706433/",
        "https://localhost/",
        "https://name.invalid/",
    ] {
        assert_eq!(strict.connect(&url(text)).await.err(), Some(ErrorClass::Address), "{text}");
    }
}

#[tokio::test]
async fn a_redirect_is_an_answer_and_is_not_followed() {
    let (inside, reached) = receiver(vec![answer(200, "", "")]).await;
    let location = format!("location: http://{inside}/\r\n");
    for status in [301, 302, 303, 307, 308] {
        let (address, _) = receiver(vec![answer(status, &location, "")]).await;
        let url = url(&format!("http://{address}/"));
        let (client, connection) = (local(), local().connect(&url).await.ok().unwrap());
        let received = client.send(connection, post(&url), soon()).await.ok().unwrap();
        assert_eq!(received.status, status);
    }
    assert!(reached.lock().is_empty());
}

#[tokio::test]
async fn connections_are_used_again_and_replaced_when_they_were_closed() {
    let (address, heard) = receiver(vec![answer(204, "", ""), answer(204, "", "")]).await;
    let (client, url) = (local(), url(&format!("http://{address}/")));
    let mut reused = Vec::new();
    for _ in 0..4 {
        let connection = client.connect(&url).await.ok().unwrap();
        reused.push(connection.reused);
        assert_eq!(client.send(connection, post(&url), soon()).await.ok().unwrap().status, 204);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(reused, [false, true, false, true]);
    assert_eq!(heard.lock().len(), 4);
}

#[tokio::test]
async fn no_more_than_16_kib_of_an_answer_are_read() {
    for (length, whole) in [(0, true), (READ, true), (READ + 1, false), (1 << 20, false)] {
        let (address, _) = receiver(vec![answer(500, "", &"x".repeat(length)); 2]).await;
        let (client, url) = (local(), url(&format!("http://{address}/")));
        let connection = client.connect(&url).await.ok().unwrap();
        let received = client.send(connection, post(&url), soon()).await.ok().unwrap();
        assert_eq!((received.body.len(), received.is_whole), (length.min(READ), whole));
        // A connection with unread data is not reused.
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert_eq!(client.connect(&url).await.ok().unwrap().reused, whole);
    }
}

#[tokio::test]
async fn each_failure_has_its_class() {
    let refusing = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let closed = url(&format!("http://{refusing}/"));
    assert_eq!(local().connect(&closed).await.err(), Some(ErrorClass::Connect));

    let (garbage, _) = receiver(vec!["this is no HTTP\r\n\r\n".to_owned()]).await;
    let garbage = url(&format!("http://{garbage}/"));
    let connection = local().connect(&garbage).await.ok().unwrap();
    let error = local().send(connection, post(&garbage), soon()).await.err().unwrap();
    assert_eq!((error.class, error.again), (ErrorClass::Http, false));

    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = url(&format!("http://{}/", silent.local_addr().unwrap()));
    let connection = local().connect(&silent).await.ok().unwrap();
    let until = Instant::now() + Duration::from_millis(100);
    let error = local().send(connection, post(&silent), until).await.err().unwrap();
    assert_eq!(error.class, ErrorClass::Timeout);
}

/// Starts a receiver with TLS. Returns its port and the roots that trust its certificate.
async fn secured(
    name: &str,
    versions: &[&'static SupportedProtocolVersion],
) -> (u16, RootCertStore) {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed([name.to_owned()]).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(cert.der().clone()).unwrap();
    let key = PrivateKeyDer::try_from(signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![cert.der().clone()], key)
        .unwrap();
    let (acceptor, listener) =
        (TlsAcceptor::from(Arc::new(config)), TcpListener::bind("127.0.0.1:0").await.unwrap());
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                let _ = stream.read(&mut [0; 4096]).await;
                let _ = stream.write_all(answer(204, "", "").as_bytes()).await;
            });
        }
    });
    (port, roots)
}

#[tokio::test]
async fn a_certificate_must_be_valid_for_the_name_in_the_url() {
    for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
        let (port, roots) = secured("receiver.invalid", &[version]).await;
        let trusting = client(rules().addresses, roots);
        let right = url(&format!("https://receiver.invalid:{port}/"));
        let connection = among(&trusting, &right, &[LOOPBACK]).await.ok().unwrap();
        let received = trusting.send(connection, post(&right), soon()).await.ok().unwrap();
        assert_eq!(received.status, 204);
        let other = url(&format!("https://other.invalid:{port}/"));
        let refusal = among(&trusting, &other, &[LOOPBACK]).await.err();
        assert_eq!(refusal, Some(ErrorClass::TlsName));
        // The certificate is from an untrusted authority.
        let refusal = among(&local(), &right, &[LOOPBACK]).await.err();
        assert_eq!(refusal, Some(ErrorClass::TlsAuthority));
    }
    let (plain, _) = receiver(vec![answer(204, "", "")]).await;
    let plain = url(&format!("https://receiver.invalid:{}/", plain.port()));
    assert_eq!(among(&local(), &plain, &[LOOPBACK]).await.err(), Some(ErrorClass::TlsProtocol));
}

/// Runs the next test again, in a process with these environment variables.
#[test]
fn a_proxy_in_the_environment_is_not_used() {
    let proxy = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    proxy.set_nonblocking(true).unwrap();
    let address = format!("http://{}", proxy.local_addr().unwrap());
    let mut run = Command::new(std::env::current_exe().unwrap());
    for name in ["http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]
    {
        run.env(name, &address);
    }
    let name = "delivery::client::tests::sends_to_a_receiver";
    let run = run.args([name, "--exact"]).output().unwrap();
    assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stdout));
    assert!(String::from_utf8_lossy(&run.stdout).contains("1 passed"));
    assert_eq!(proxy.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
}

#[tokio::test]
async fn sends_to_a_receiver() {
    let (address, _) = receiver(vec![answer(204, "", "")]).await;
    let (client, url) = (local(), url(&format!("http://{address}/")));
    let connection = client.connect(&url).await.ok().unwrap();
    assert_eq!(client.send(connection, post(&url), soon()).await.ok().unwrap().status, 204);
}

#[test]
fn what_is_shown_of_an_answer_holds_no_secret_and_no_control_character() {
    let secrets = ["whsec_c2VjcmV0".to_owned(), "c2VjcmV0".to_owned(), "Bearer x".to_owned()];
    for (body, shown) in [
        ("plain", "plain"),
        ("got whsec_c2VjcmV0 and c2VjcmV0, Bearer x", "got *** and ***, ***"),
        ("a\r\nb\u{1b}[31m", "a\\u{d}\\u{a}b\\u{1b}[31m"),
        ("\u{202e}evil\u{200b}\u{0}", "\\u{202e}evil\\u{200b}\\u{0}"),
        ("ü €", "ü €"),
    ] {
        assert_eq!(answer::body_start(body.as_bytes(), true, &secrets), shown);
    }
    assert_eq!(answer::body_start(&[0xff, b'a'], true, &[]), "\u{fffd}a");
    let long = "é".repeat(READ);
    assert_eq!(answer::body_start(long.as_bytes(), true, &[]).len(), 1024);
    // Masking shortens the text. More of the body's end is then shown. A secret that is cut off
    // there must not be shown in part.
    let repeated = "whsec_c2VjcmV0".repeat(READ / 14) + "whsec_c2Vj";
    let shown = answer::body_start(&repeated.as_bytes()[..repeated.len()], false, &secrets);
    assert!(!shown.contains("c2Vj") && !shown.contains("whsec"), "{}", &shown[shown.len() - 20..]);
}

#[test]
fn answers_from_inside_a_network_are_not_shown() {
    let received = |address: &str, status| Received {
        status,
        retry_after: None,
        body: b"text".to_vec(),
        is_whole: true,
        address: address.parse().unwrap(),
        answered_at: Instant::now(),
    };
    assert_eq!(received("93.184.216.34", 500).shown(&[]).as_deref(), Some("text"));
    assert_eq!(received("93.184.216.34", 302).shown(&[]).as_deref(), Some("text"));
    assert_eq!(received("93.184.216.34", 200).shown(&[]), None);
    for inside in ["10.0.0.1", "127.0.0.1", "fd00::1", "100.64.0.1"] {
        assert_eq!(received(inside, 500).shown(&[]), None, "{inside}");
    }
}
