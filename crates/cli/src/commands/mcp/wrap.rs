//! `mcp wrap`: relays one MCP server over standard input and output.

use std::{
    io::{self, Read, Write},
    path::PathBuf,
    sync::Arc,
    thread,
    time::Duration,
};

use crate::mcp::{Asker, Ended, Relay, Service, Settings, Streams, kill as kill_group, run};
use authority_crypto::sha256;
use clap::Args;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex},
    runtime::Handle,
    sync::{
        Notify,
        oneshot::{Receiver, Sender, channel},
    },
    time::timeout,
};

use super::upstream::{start, unfixed};
use crate::{
    connect::{Connector, ServerArgs},
    files,
    logins::folder,
    outcome::{CommandOutput, Failure},
};

/// How long the server may take to end after its input has.
const LAST_WORDS: Duration = Duration::from_secs(2);

#[derive(Debug, Args)]
pub struct Wrap {
    /// The slug of the MCP server at the service
    #[arg(long = "server", value_name = "SLUG")]
    slug: String,
    /// The agent that calls, by its id
    #[arg(long, value_name = "ID")]
    agent: String,
    /// The purpose of its calls, by its slug
    #[arg(long, value_name = "SLUG")]
    purpose: Option<String>,
    /// How long a held call may wait, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 420)]
    hold_budget: u64,
    /// End the server if a stopped call has not ended after 2 s
    #[arg(long)]
    kill_on_stop: bool,
    /// Give the server the signed permission of each call, in `_meta`
    #[arg(long)]
    permit_to_tool: bool,
    /// Answer a denial as a JSON-RPC error instead of a result that the model reads
    #[arg(long)]
    denial_as_error: bool,
    /// The service's trusted keys, read once: a saved copy of its /.well-known/jwks.json [default: the service's, read
    /// every ten minutes]
    #[arg(long, value_name = "FILE")]
    jwks: Option<PathBuf>,
    /// A file with the key of redacted arguments, 64 hexadecimal digits
    #[arg(long, value_name = "FILE")]
    redaction_key: Option<PathBuf>,
    #[command(flatten)]
    service: ServerArgs,
    /// The command that starts the MCP server, after `--`
    #[arg(required = true, last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// The size of a part of the standard input, in bytes.
const PART: usize = 64 * 1024;

impl Wrap {
    pub(super) async fn run(self, connector: &Connector<'_>) -> Result<CommandOutput, Failure> {
        if let Some(warning) = unfixed(&self.command) {
            eprintln!("agent-authority: {warning}");
        }
        let settings = self.settings()?;
        let keys = self.jwks.as_deref().map(files::json).transpose()?;
        let identity = hex::encode(sha256(format!("{} {}", self.agent, self.slug).as_bytes()));
        let journal =
            folder(connector.sources).ok().map(|folder| folder.join("mcp").join(identity));
        let client = connector.connect(self.service).await?.into_client();
        let service = Service::new(client, &self.slug, &self.agent, keys.as_ref());
        let service = Arc::new(service.map_err(|why| Failure::usage(format!("--agent: {why}")))?);
        let relay = Relay::new(settings).map_err(Failure::new)?;
        let crate::mcp::Server { mut child, stdin: to, stdout: from } = start(&self.command)?;
        let kill = Arc::new(Notify::new());
        let (stdout, written) = standard_output();
        let client = Streams { from: standard_input(), to: stdout };
        let server = Streams { from, to };
        let relayed = run(relay, service, client, server, journal, Arc::clone(&kill));
        tokio::pin!(relayed);
        let ended = tokio::select! {
            ended = &mut relayed => ended,
            () = kill.notified() => {
                // Its end is an event of the relay.
                kill_group(&child).map_err(Failure::new)?;
                relayed.await
            }
        };
        if timeout(LAST_WORDS, child.wait()).await.is_err() {
            kill_group(&child).map_err(Failure::new)?;
        }
        let _ = timeout(LAST_WORDS, written).await;
        match ended {
            Ended::Client => Ok(CommandOutput::nothing()),
            Ended::Server => Err(Failure::new("the MCP server has ended")),
        }
    }

    fn settings(&self) -> Result<Settings, Failure> {
        Ok(Settings {
            asker: Asker {
                server: self.slug.clone(),
                agent: self.agent.clone(),
                purpose: self.purpose.clone(),
                redaction_key: self.key()?,
            },
            hold_budget: Duration::from_secs(self.hold_budget),
            kill_on_stop: self.kill_on_stop,
            permit_to_tool: self.permit_to_tool,
            denial_is_error: self.denial_as_error,
        })
    }

    fn key(&self) -> Result<Option<[u8; 32]>, Failure> {
        let Some(file) = &self.redaction_key else { return Ok(None) };
        let bytes = hex::decode(files::text(file)?.trim()).unwrap_or_default();
        let key = bytes.try_into().map_err(|_| {
            Failure::usage(format!("`{}`: must be 64 hexadecimal digits", file.display()))
        })?;
        Ok(Some(key))
    }
}

/// Reads the standard input on a thread of its own. A reader of the runtime would keep the command from
/// ending until the client writes or ends.
fn standard_input() -> DuplexStream {
    let (mut to, from) = duplex(PART);
    let runtime = Handle::current();
    thread::spawn(move || {
        let (mut stdin, mut part) = (io::stdin().lock(), vec![0; PART]);
        while let Ok(read @ 1..) = stdin.read(&mut part) {
            let bytes = part.get(..read).unwrap_or_default();
            if runtime.block_on(to.write_all(bytes)).is_err() {
                return;
            }
        }
    });
    from
}

/// Writes the standard output on a thread of its own. The receiver ends after the last byte is written.
fn standard_output() -> (DuplexStream, Receiver<()>) {
    let (to, mut from) = duplex(PART);
    let runtime = Handle::current();
    let (done, written) = channel();
    thread::spawn(move || {
        let _done: Sender<()> = done;
        let (mut stdout, mut part) = (io::stdout().lock(), vec![0; PART]);
        while let Ok(read @ 1..) = runtime.block_on(from.read(&mut part)) {
            let bytes = part.get(..read).unwrap_or_default();
            if stdout.write_all(bytes).and_then(|()| stdout.flush()).is_err() {
                return;
            }
        }
    });
    (to, written)
}
