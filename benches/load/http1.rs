//! One HTTP/1.1 connection with keep-alive: sends an encoded request and reads the whole response.

use std::{sync::Arc, time::Instant};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout_at,
};

use crate::{
    Fault,
    call::Call,
    drive::{Tally, Work},
};

/// Makes the first of the calls again and again until the window is over.
pub(crate) async fn run(calls: &[Arc<Call>], work: Work) -> Result<Tally, Fault> {
    let call = calls.first().ok_or("there is no call")?;
    let mut tally = Tally::new()?;
    let mut connection = Connection::open(call).await?;
    loop {
        let begun = match &work.due {
            None => Instant::now(),
            Some(due) => match due.lock().await.recv().await {
                Some(due) => due,
                None => return Ok(tally),
            },
        };
        if work.window.over(begun) {
            return Ok(tally);
        }
        let answer = timeout_at(work.window.patience().into(), connection.ask()).await;
        let allowed = match answer {
            Ok(answer) => answer.map(|(status, body)| status == 200 && (call.allowed)(body))?,
            Err(_) => false,
        };
        tally.note(&work.window, begun, Instant::now(), allowed);
        if work.window.over(Instant::now()) && work.due.is_none() {
            return Ok(tally);
        }
    }
}

pub(crate) struct Connection {
    socket: TcpStream,
    request: Vec<u8>,
    answer: Vec<u8>,
}

impl Connection {
    pub(crate) async fn open(call: &Call) -> Result<Self, Fault> {
        let socket = TcpStream::connect(call.address).await?;
        socket.set_nodelay(true)?;
        let credential = match &call.credential {
            Some(credential) => format!("authorization: {credential}\r\n"),
            None => String::new(),
        };
        let mut request = format!(
            "{} {} HTTP/1.1\r\nhost: {}\r\n{credential}content-type: application/json\r\n\
             content-length: {}\r\n\r\n",
            if call.body.is_empty() { "GET" } else { "POST" },
            call.path,
            call.address,
            call.body.len()
        )
        .into_bytes();
        request.extend(&call.body);
        Ok(Self { socket, request, answer: Vec::with_capacity(64 * 1024) })
    }

    /// Returns the status and the body.
    pub(crate) async fn ask(&mut self) -> Result<(u16, &[u8]), Fault> {
        self.socket.write_all(&self.request).await?;
        self.answer.clear();
        let head = loop {
            self.more().await?;
            if let Some(head) = Head::of(&self.answer)? {
                break head;
            }
        };
        while !head.complete(&self.answer) {
            self.more().await?;
        }
        Ok((head.status, self.answer.get(head.length..).unwrap_or_default()))
    }

    async fn more(&mut self) -> Result<(), Fault> {
        if self.socket.read_buf(&mut self.answer).await? == 0 {
            return Err("the server closed a connection".into());
        }
        Ok(())
    }
}

struct Head {
    status: u16,
    length: usize,
    /// `None` if the body is chunked.
    body: Option<usize>,
}

impl Head {
    /// Parses the head of a response; `None` if it is incomplete.
    fn of(answer: &[u8]) -> Result<Option<Self>, Fault> {
        let Some(end) = answer.windows(4).position(|window| window == b"\r\n\r\n") else {
            return Ok(None);
        };
        let text = std::str::from_utf8(&answer[..end])?;
        let mut lines = text.split("\r\n");
        let status = lines.next().and_then(|line| line.get(9..12)).unwrap_or_default().parse()?;
        let mut body = None;
        for line in lines {
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                body = Some(value.trim().parse()?);
            }
        }
        Ok(Some(Self { status, length: end + 4, body }))
    }

    fn complete(&self, answer: &[u8]) -> bool {
        match self.body {
            Some(body) => answer.len() >= self.length + body,
            None => answer.ends_with(b"0\r\n\r\n"),
        }
    }
}
