//! Looks up the TXT records that prove the ownership of a domain.

use std::{
    fs, io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    string::FromUtf8Error,
    sync::Arc,
    time::Duration,
};

use authority_crypto::random;
use simple_dns::{
    CLASS, Name, Packet, PacketFlag, Question, RCODE, ResourceRecord, TYPE, header_buffer,
    rdata::RData,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpStream, UdpSocket},
    time::timeout,
};

/// The longest time for a look-up.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long one server may take to answer.
const ANSWERED: Duration = Duration::from_secs(2);
/// How often each server is asked.
const ATTEMPTS: usize = 2;
/// The maximum number of TXT records that are read for a name.
const MOST: usize = 100;
/// The servers of this machine (resolv.conf(5)).
const SYSTEM: &str = "/etc/resolv.conf";
/// The port of DNS servers.
const PORT: u16 = 53;

/// A DNS client. It does not cache: a record is found as soon as it is published. Cheap to clone.
#[derive(Clone)]
pub struct Dns(Arc<[SocketAddr]>);

/// The error if no DNS server answered. It is then unknown whether there is a record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unanswered;

impl Dns {
    /// Creates a client of these servers. An empty list selects the system's servers. If the
    /// system's configuration names none, look-ups fail.
    pub fn new(servers: &[SocketAddr]) -> Self {
        if !servers.is_empty() {
            return Self(servers.into());
        }
        let system = fs::read_to_string(SYSTEM).map(|text| named(&text));
        match system {
            Ok(servers) if !servers.is_empty() => Self(servers.into()),
            Ok(_) => {
                tracing::error!("found no DNS server in /etc/resolv.conf; set dns.servers");
                Self(Arc::default())
            }
            Err(error) => {
                tracing::error!(%error, "failed to read /etc/resolv.conf; set dns.servers");
                Self(Arc::default())
            }
        }
    }

    /// Returns the TXT records of a name. The list is empty if a server reports that there are
    /// none.
    pub(crate) async fn texts(&self, name: &str) -> Result<Vec<Vec<u8>>, Unanswered> {
        match timeout(PATIENCE, self.first(name)).await {
            Ok(Ok(texts)) => Ok(texts),
            Ok(Err(error)) => {
                tracing::warn!(%error, dns.question.name = name, "failed to look up a DNS name");
                Err(Unanswered)
            }
            Err(_) => {
                tracing::warn!(dns.question.name = name, "failed to look up a DNS name in time");
                Err(Unanswered)
            }
        }
    }

    /// Asks one server after the other, and returns the first usable answer.
    async fn first(&self, name: &str) -> io::Result<Vec<Vec<u8>>> {
        let mut last = io::Error::other("no DNS server is known");
        for _ in 0..ATTEMPTS {
            for server in &*self.0 {
                match timeout(ANSWERED, ask(*server, name)).await {
                    Ok(Ok(texts)) => return Ok(texts),
                    Ok(Err(error)) => last = error,
                    Err(error) => last = error.into(),
                }
            }
        }
        Err(last)
    }
}

/// Returns the servers in the text of resolv.conf.
fn named(text: &str) -> Vec<SocketAddr> {
    let server = |line: &str| {
        let address = line.strip_prefix("nameserver")?.split_ascii_whitespace().next()?;
        Some(SocketAddr::new(address.parse::<IpAddr>().ok()?, PORT))
    };
    text.lines().filter_map(server).collect()
}

/// Asks a server by UDP, and again by TCP if the answer is truncated.
async fn ask(server: SocketAddr, name: &str) -> io::Result<Vec<Vec<u8>>> {
    let name = Name::new(name).map_err(io::Error::other)?;
    let id = u16::from_ne_bytes(random().map_err(io::Error::other)?);
    let mut query = Packet::new_query(id);
    query.set_flags(PacketFlag::RECURSION_DESIRED);
    query.questions.push(Question::new(name.clone(), TYPE::TXT.into(), CLASS::IN.into(), false));
    let query_bytes = query.build_bytes_vec().map_err(io::Error::other)?;
    let mut answer = by_udp(server, id, &name, &query_bytes).await?;
    if header_buffer::has_flags(&answer, PacketFlag::TRUNCATION).map_err(io::Error::other)? {
        answer = by_tcp(server, &query_bytes).await?;
    }
    let answer = Packet::parse(&answer).map_err(io::Error::other)?;
    if !answers(&answer, id, &name) {
        return Err(io::Error::other("the answer is to another question"));
    }
    match answer.rcode() {
        RCODE::NoError => Ok(texts(&name, answer.answers)),
        RCODE::NameError => Ok(Vec::new()),
        code => Err(io::Error::other(format!("{server} answered {code:?}"))),
    }
}

/// Sends a query from a random port, and returns the first datagram that answers it.
async fn by_udp(server: SocketAddr, id: u16, name: &Name<'_>, query: &[u8]) -> io::Result<Vec<u8>> {
    let any: IpAddr = match server {
        SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let socket = UdpSocket::bind((any, 0)).await?;
    // A connected socket receives only from this server.
    socket.connect(server).await?;
    socket.send(query).await?;
    let mut buffer = vec![0; 4096];
    loop {
        let length = socket.recv(&mut buffer).await?;
        let datagram = &buffer[..length];
        // The sections of a truncated answer may be incomplete.
        let is_truncated = header_buffer::id(datagram).is_ok_and(|found| found == id)
            && header_buffer::has_flags(datagram, PacketFlag::RESPONSE | PacketFlag::TRUNCATION)
                .is_ok_and(|truncated| truncated);
        if is_truncated || Packet::parse(datagram).is_ok_and(|found| answers(&found, id, name)) {
            return Ok(datagram.to_vec());
        }
    }
}

/// Sends a query over TCP, where each message follows its length (RFC 1035, 4.2.2).
async fn by_tcp(server: SocketAddr, query: &[u8]) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(server).await?;
    let length = u16::try_from(query.len()).map_err(io::Error::other)?;
    stream.write_all(&[&length.to_be_bytes(), query].concat()).await?;
    let mut answer = vec![0; stream.read_u16().await?.into()];
    stream.read_exact(&mut answer).await?;
    Ok(answer)
}

/// Whether a message answers the question with this id and name.
fn answers(message: &Packet<'_>, id: u16, name: &Name<'_>) -> bool {
    let is_ours = |question: &Question<'_>| {
        question.qname == *name
            && question.qtype == TYPE::TXT.into()
            && question.qclass == CLASS::IN.into()
    };
    message.id() == id
        && message.has_flags(PacketFlag::RESPONSE)
        && matches!(message.questions.as_slice(), [question] if is_ours(question))
}

/// Returns the TXT records of a name or, if the name is an alias, of the alias's target.
fn texts(name: &Name<'_>, records: Vec<ResourceRecord<'_>>) -> Vec<Vec<u8>> {
    let mut owner = name.clone();
    // An alias may lead to another alias, with at most one step for each record.
    for _ in 0..records.len() {
        let alias = records.iter().find_map(|record| match &record.rdata {
            RData::CNAME(target) if record.name == owner => Some(target.0.clone()),
            _ => None,
        });
        let Some(alias) = alias else { break };
        owner = alias;
    }
    let text = |record: ResourceRecord<'_>| match record.rdata {
        RData::TXT(text) if record.name == owner => {
            Some(String::try_from(text).map_or_else(FromUtf8Error::into_bytes, String::into_bytes))
        }
        _ => None,
    };
    records.into_iter().filter_map(text).take(MOST).collect()
}

#[cfg(test)]
mod tests {
    use simple_dns::rdata::{CNAME, TXT};
    use tokio::net::TcpListener;

    use super::*;

    const NAME: &str = "_svc-challenge.acme.example";

    #[test]
    fn resolv_conf_names_servers() {
        let text = "# nameserver 192.0.2.1\nsearch example\nnameserver 192.0.2.53\n\
                    nameserver\t2001:db8::53 # second\nnameserver here\noptions rotate\n";
        let servers = ["192.0.2.53:53", "[2001:db8::53]:53"].map(|one| one.parse().unwrap());
        assert_eq!(named(text), servers);
    }

    fn record<'a>(name: &'a str, data: RData<'a>) -> ResourceRecord<'a> {
        ResourceRecord::new(Name::new(name).unwrap(), CLASS::IN, 0, data)
    }

    #[test]
    fn records_of_other_names_are_not_read() {
        let alias = RData::CNAME(CNAME(Name::new("proof.example").unwrap()));
        let text = |text| RData::TXT(TXT::new().with_string(text).unwrap());
        let mut records = vec![
            record("proof.example", text("ours")),
            record("other.example", text("theirs")),
            record("_SVC-challenge.acme.example", alias),
        ];
        let name = Name::new(NAME).unwrap();
        assert_eq!(texts(&name, records.clone()), [b"ours"]);
        records.pop();
        assert!(texts(&name, records).is_empty());
    }

    /// Answers a query with these flags and a TXT record of each text.
    fn answer(query: &[u8], flags: PacketFlag, texts: &[&'static str]) -> Vec<u8> {
        let mut answer = Packet::parse(query).unwrap().into_reply();
        answer.set_flags(flags);
        for text in texts {
            let text = RData::TXT(TXT::new().with_string(text).unwrap());
            answer.answers.push(record(NAME, text));
        }
        answer.build_bytes_vec().unwrap()
    }

    #[tokio::test]
    async fn a_truncated_answer_is_read_over_tcp_and_strange_datagrams_are_ignored() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let socket = UdpSocket::bind(address).await.unwrap();
        tokio::spawn(async move {
            let mut query = [0; 512];
            let (length, from) = socket.recv_from(&mut query).await.unwrap();
            let mut strange = answer(&query[..length], PacketFlag::empty(), &["strange"]);
            strange[0] ^= 1;
            socket.send_to(&strange, from).await.unwrap();
            socket.send_to(b"strange", from).await.unwrap();
            let truncated = answer(&query[..length], PacketFlag::TRUNCATION, &[]);
            socket.send_to(&truncated, from).await.unwrap();
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut query = vec![0; stream.read_u16().await.unwrap().into()];
            stream.read_exact(&mut query).await.unwrap();
            let answer = answer(&query, PacketFlag::empty(), &["one", "two"]);
            stream.write_u16(answer.len().try_into().unwrap()).await.unwrap();
            stream.write_all(&answer).await.unwrap();
        });
        let found = Dns::new(&[address]).texts(NAME).await.unwrap();
        assert_eq!(found, [b"one", b"two"]);
    }

    #[tokio::test]
    async fn the_next_server_is_asked_if_one_does_not_answer() {
        let closed = UdpSocket::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        tokio::spawn(async move {
            let mut query = [0; 512];
            let (length, from) = socket.recv_from(&mut query).await.unwrap();
            let answer = answer(&query[..length], PacketFlag::empty(), &["one"]);
            socket.send_to(&answer, from).await.unwrap();
        });
        let found = Dns::new(&[closed, address]).texts(NAME).await.unwrap();
        assert_eq!(found, [b"one"]);
    }
}
