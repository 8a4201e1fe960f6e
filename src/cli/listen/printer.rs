//! Prints lines on a separate thread. While a terminal is stopped, deliveries wait, but Ctrl-C
//! still works.

use std::{
    io::{self, Write},
    thread,
    time::Duration,
};

use tokio::{sync::mpsc, time::timeout};
use tokio_util::sync::CancellationToken;

/// The most lines that may wait.
const QUEUE: usize = 64;
/// The time to print waiting lines when the command ends.
const TO_FINISH: Duration = Duration::from_secs(1);

pub(super) enum Line {
    /// On standard output.
    Output(String),
    /// On standard error.
    Aside(String),
}

pub(super) struct Printer {
    /// `None` marks the end.
    lines: mpsc::Sender<Option<Line>>,
    done: CancellationToken,
}

impl Printer {
    /// Starts the thread. It cancels `shutdown` once the reader of the lines is gone.
    pub(super) fn start(shutdown: CancellationToken) -> Self {
        let (lines, mut waiting) = mpsc::channel::<Option<Line>>(QUEUE);
        let done = CancellationToken::new();
        let ended = done.clone();
        thread::spawn(move || {
            while let Some(Some(line)) = waiting.blocking_recv() {
                let written = match line {
                    Line::Output(line) => write(&mut io::stdout(), &line),
                    Line::Aside(line) => write(&mut io::stderr(), &line),
                };
                if written.is_err() {
                    shutdown.cancel();
                    break;
                }
            }
            ended.cancel();
        });
        Self { lines, done }
    }

    pub(super) async fn print(&self, line: Line) {
        // Fails only if the command is ending.
        let _ = self.lines.send(Some(line)).await;
    }

    /// Waits briefly for pending lines.
    pub(super) async fn finish(&self) {
        let finished = async {
            let _ = self.lines.send(None).await;
            self.done.cancelled().await;
        };
        let _ = timeout(TO_FINISH, finished).await;
    }
}

fn write(to: &mut impl Write, line: &str) -> io::Result<()> {
    writeln!(to, "{line}")?;
    to.flush()
}
