//! A running `listen` process.

use std::{
    io::{BufRead, BufReader, Read},
    os::unix::process::CommandExt,
    process::{Child, Command, Stdio},
    sync::mpsc::{Receiver, Sender, channel},
    time::Duration,
};

use nix::{
    sys::signal::{Signal, kill, killpg},
    unistd::Pid,
};

const PATIENCE: Duration = Duration::from_secs(30);

const PROGRAM: &str = env!("CARGO_BIN_EXE_agent-authority");

pub(super) struct Listening {
    child: Child,
    /// The address at which it receives deliveries.
    pub(super) address: String,
    output: Receiver<String>,
    aside: Receiver<String>,
}

impl Listening {
    /// Starts `listen` on another port than the demonstration's, which a developer may be using.
    #[track_caller]
    pub(super) fn start(args: &[&str]) -> Self {
        Self::run(Command::new(PROGRAM), args)
    }

    /// Starts `listen` with its output piped into `head -n 1`.
    #[track_caller]
    pub(super) fn before_head(args: &[&str]) -> Self {
        let mut shell = Command::new("sh");
        shell.args(["-c", r#""$0" "$@" | head -n 1"#, PROGRAM]);
        Self::run(shell, args)
    }

    #[track_caller]
    fn run(mut program: Command, args: &[&str]) -> Self {
        let mut child = program
            .arg("listen")
            .args(args)
            .env_remove("DATABASE_URL")
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let output = lines(child.stdout.take().unwrap());
        let aside = lines(child.stderr.take().unwrap());
        let first = aside.recv_timeout(PATIENCE).expect("it ends");
        let address = first.split(['"', ' ']).find(|word| word.starts_with("127.0.0.1:"));
        let address = address.unwrap_or_else(|| panic!("{first}")).to_owned();
        Self { child, address, output, aside }
    }

    /// Returns the next line on standard output that contains this text.
    #[track_caller]
    pub(super) fn line(&self, part: &str) -> String {
        find(&self.output, part)
    }

    /// Returns the next line on standard error that contains this text.
    #[track_caller]
    pub(super) fn aside(&self, part: &str) -> String {
        find(&self.aside, part)
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Returns whether the process exits on its own.
    #[track_caller]
    pub(super) fn ends(&mut self) -> bool {
        let ended = (0..100).any(|_| {
            std::thread::sleep(Duration::from_millis(50));
            self.child.try_wait().unwrap().is_some()
        });
        ended && self.child.wait().unwrap().success()
    }

    /// Stops the process like Ctrl-C; returns the rest of its output.
    #[track_caller]
    pub(super) fn stop(mut self) -> Vec<String> {
        kill(Pid::from_raw(self.child.id().cast_signed()), Signal::SIGINT).unwrap();
        assert!(self.child.wait().unwrap().success());
        self.output.iter().collect()
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        // The group includes the processes that a shell started.
        let _ = killpg(Pid::from_raw(self.child.id().cast_signed()), Signal::SIGKILL);
        let _ = self.child.wait();
    }
}

fn lines(from: impl Read + Send + 'static) -> Receiver<String> {
    let (to, lines): (Sender<String>, _) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            println!("{line}"); // the test shows it when it fails
            let _ = to.send(line);
        }
    });
    lines
}

#[track_caller]
fn find(lines: &Receiver<String>, part: &str) -> String {
    loop {
        match lines.recv_timeout(PATIENCE) {
            Ok(line) if line.contains(part) => return line,
            Ok(_) => {}
            Err(error) => panic!("no line with `{part}`: {error}"),
        }
    }
}

/// Returns an unused address on this machine.
pub(super) fn free() -> String {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string()
}
