//! Receivers that never finish the response head or its body.

use tokio::sync::mpsc;

use super::*;

/// The texts that a receiver writes, each after a pause.
///
/// If `goes_on` is set, the receiver then repeats the last text while the client reads; otherwise
/// it stays silent.
#[derive(Clone)]
struct Script {
    pieces: Vec<(Duration, String)>,
    goes_on: bool,
}

/// Writes everything at once and then stays silent. The connection stays open.
fn once(text: &str) -> Script {
    Script { pieces: vec![(Duration::ZERO, text.to_owned())], goes_on: false }
}

/// Serves the script on each connection, and reports when the other side has closed it.
async fn endless(script: Script) -> (EndpointUrl, mpsc::UnboundedReceiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (closed, closings) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let (script, closed) = (script.clone(), closed.clone());
            tokio::spawn(async move {
                let mut request = vec![0; 4096];
                while stream.read(&mut request).await.is_ok_and(|read| read > 0) {
                    play(&script, &mut stream).await;
                }
                let _ = closed.send(());
            });
        }
    });
    (url(&format!("http://{address}/")), closings)
}

async fn play(script: &Script, stream: &mut tokio::net::TcpStream) {
    for (pause, text) in &script.pieces {
        tokio::time::sleep(*pause).await;
        let _ = stream.write_all(text.as_bytes()).await;
    }
    let Some((pause, text)) = script.pieces.last().filter(|_| script.goes_on) else { return };
    while stream.write_all(text.as_bytes()).await.is_ok() {
        tokio::time::sleep(*pause).await;
    }
}

/// Returns the result of an attempt and the attempt's duration.
async fn attempt(client: &Client, url: &EndpointUrl) -> (Result<Received, ErrorClass>, Duration) {
    let connection = client.connect(url).await.ok().unwrap();
    let begun = Instant::now();
    let received = client.exchange(url, connection, post(url), soon()).await;
    (received, begun.elapsed())
}

/// The longest acceptable duration of an immediate result: more than a busy machine needs, and well
/// below the time limit for a response head.
const AT_ONCE: Duration = Duration::from_millis(800);
const SOON: Duration = Duration::from_secs(2);

#[tokio::test]
async fn the_head_of_a_success_decides_whatever_its_body_does() {
    let chunk = "2\r\nok\r\n";
    for script in [
        once("HTTP/1.1 200 OK\r\n\r\nok"),
        once("HTTP/1.0 200 OK\r\n\r\nok"),
        once(&format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{chunk}")),
        once("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nok"),
        once("HTTP/1.1 202 Accepted\r\ncontent-length: 100\r\n\r\n"),
        // The receiver writes for as long as the client reads.
        Script {
            pieces: vec![
                (
                    Duration::ZERO,
                    "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_owned(),
                ),
                (Duration::from_millis(1), chunk.to_owned()),
            ],
            goes_on: true,
        },
        // Informational responses before the final one do no harm.
        once("HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 299 X\r\ncontent-length: 9\r\n\r\n"),
    ] {
        let ((client, (url, mut closings)), text) =
            ((local(), endless(script.clone()).await), script.pieces[0].1.clone());
        let (received, took) = attempt(&client, &url).await;
        let received = received.ok().unwrap();
        assert!((200..300).contains(&received.status), "{text:?}");
        assert!(took < AT_ONCE, "{text:?}: it took {took:?}");
        assert!(received.shown(&[]).is_none(), "{text:?}");
        let closed = tokio::time::timeout(SOON, closings.recv()).await;
        assert!(closed.is_ok(), "{text:?}: the connection stays open");
        assert!(!client.connect(&url).await.ok().unwrap().reused, "{text:?}");
    }
}

#[tokio::test]
async fn a_connection_is_used_again_after_a_success_whose_body_ends_soon() {
    let mut script = once("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\no");
    script.pieces.push((Duration::from_millis(20), "kay".to_owned()));
    let (client, (url, _closings)) = (local(), endless(script).await);
    let (received, took) = attempt(&client, &url).await;
    assert!(received.is_ok_and(|received| received.status == 200) && took < AT_ONCE);
    tokio::time::sleep(REST).await;
    assert!(client.connect(&url).await.ok().unwrap().reused);
}

/// Tests the limit. Without it, a receiver that never ends its responses would occupy a connection
/// for each event.
#[tokio::test]
async fn connections_that_are_read_to_their_end_are_bounded() {
    let (client, (url, mut closings)) =
        (local(), endless(once("HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\no")).await);
    let all = client.finishing.clone().acquire_many_owned(u32::try_from(FINISHING).unwrap());
    let all = all.await.unwrap();
    let (received, _) = attempt(&client, &url).await;
    assert!(received.is_ok());
    let closed = tokio::time::timeout(REST, closings.recv()).await;
    assert!(closed.is_ok(), "it is read nevertheless");
    drop(all);
}

#[tokio::test]
async fn the_body_of_another_answer_has_a_second_of_its_own() {
    let late = (Duration::from_millis(300), "body".to_owned());
    let mut script =
        once("HTTP/1.1 500 X\r\ntransfer-encoding: chunked\r\n\r\n4\r\nsome\r\n5\r\n ");
    script.pieces.push(late);
    for script in [script, once("HTTP/1.1 429 X\r\ncontent-length: 100\r\n\r\nsome body")] {
        let (client, (url, mut closings)) = (local(), endless(script).await);
        let (received, took) = attempt(&client, &url).await;
        let received = received.ok().unwrap();
        assert_eq!(
            (String::from_utf8(received.body).unwrap(), received.is_whole),
            ("some body".to_owned(), false)
        );
        assert!(took >= BODY && took < BODY + AT_ONCE, "it took {took:?}");
        // The latency ends at the response head and does not include the body.
        assert!(received.answered_at.elapsed() >= BODY);
        assert!(tokio::time::timeout(SOON, closings.recv()).await.is_ok());
    }
}

#[tokio::test]
async fn a_head_that_does_not_end_is_no_answer_in_time() {
    let dripping = |text: &str, pause| Script {
        pieces: vec![
            (Duration::ZERO, "HTTP/1.1 200 OK\r\nx: ".to_owned()),
            (Duration::from_millis(pause), text.to_owned()),
        ],
        goes_on: true,
    };
    let informed = "HTTP/1.1 100 Continue\r\n\r\n".to_owned();
    for script in [
        once("HTTP/1.1 200 OK\r\n"),
        dripping("y", 5),
        Script { pieces: vec![(Duration::from_millis(1), informed)], goes_on: true },
    ] {
        let (client, (url, mut closings)) = (local(), endless(script).await);
        let connection = client.connect(&url).await.ok().unwrap();
        let (begun, limit) = (Instant::now(), Duration::from_millis(400));
        let received = client.exchange(&url, connection, post(&url), begun + limit).await;
        assert_eq!(received.err(), Some(ErrorClass::Timeout));
        assert!(begun.elapsed() < limit + AT_ONCE, "it took {:?}", begun.elapsed());
        assert!(tokio::time::timeout(SOON, closings.recv()).await.is_ok(), "it stays open");
    }
}
