//! A DNS server on this machine (RFC 1035), because tests must not query the internet.

use std::{collections::BTreeMap, net::SocketAddr, sync::Arc};

use parking_lot::Mutex;
use tokio::net::UdpSocket;

const FAILURE: u8 = 2;
const NO_SUCH_NAME: u8 = 3;
const TXT: [u8; 2] = [0, 16];

/// Answers with the TXT records that a test sets.
#[derive(Clone, Default)]
pub(crate) struct DnsServer(Arc<Mutex<Zone>>);

#[derive(Default)]
struct Zone {
    texts: BTreeMap<String, Vec<String>>,
    is_broken: bool,
}

impl DnsServer {
    pub(crate) async fn start() -> (Self, SocketAddr) {
        let server = Self::default();
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let serving = server.clone();
        tokio::spawn(async move {
            let mut question = [0; 1500];
            while let Ok((length, from)) = socket.recv_from(&mut question).await {
                let answer = serving.answer(&question[..length]);
                let _ = socket.send_to(&answer, from).await;
            }
        });
        (server, address)
    }

    pub(crate) fn set(&self, name: &str, texts: &[&str]) {
        let texts = texts.iter().map(|text| (*text).to_owned()).collect();
        self.0.lock().texts.insert(name.to_owned(), texts);
    }

    /// Makes every query fail from now on.
    pub(crate) fn break_down(&self) {
        self.0.lock().is_broken = true;
    }

    fn answer(&self, message: &[u8]) -> Vec<u8> {
        let (mut name, mut at) = (Vec::new(), 12);
        while message[at] != 0 {
            let label = &message[at + 1..at + 1 + usize::from(message[at])];
            name.push(String::from_utf8_lossy(label).to_lowercase());
            at += label.len() + 1;
        }
        let question = &message[12..at + 5];
        let zone = self.0.lock();
        let texts = zone.texts.get(&name.join(".")).cloned().unwrap_or_default();
        let texts = if question[question.len() - 4..][..2] == TXT { texts } else { Vec::new() };
        let mut answer = message[..2].to_vec();
        let code = match texts.is_empty() {
            _ if zone.is_broken => FAILURE,
            true => NO_SUCH_NAME,
            false => 0,
        };
        // The header: a response, recursion desired and available, one question.
        answer.extend([0x81, 0x80 | code, 0, 1, 0, u8::try_from(texts.len()).unwrap(), 0, 0, 0, 0]);
        answer.extend(question);
        for text in texts {
            let length = u8::try_from(text.len()).unwrap();
            // The answer: the question's name, type TXT, class internet, TTL 0, one string.
            answer.extend([0xc0, 12, 0, 16, 0, 1, 0, 0, 0, 0, 0, length + 1, length]);
            answer.extend(text.as_bytes());
        }
        answer
    }
}
