//! The runtime of a command.

use tokio::runtime::{Builder, Runtime};

use crate::outcome::Failure;

/// Starts a runtime for a command, and for the server.
///
/// # Errors
/// The system has no thread or memory left.
pub fn runtime() -> Result<Runtime, Failure> {
    let mut runtime = Builder::new_multi_thread();
    // A large stack takes address space, not memory. Decisions then never need to allocate a
    // further stack.
    runtime.thread_stack_size(16 * 1024 * 1024);
    runtime.enable_all().build().map_err(Failure::new)
}

/// Starts a runtime on this thread alone, for a command that relays messages. Each message passes
/// several tasks: waking another thread for each would take longer than their work.
///
/// # Errors
/// The system has no file descriptor left.
pub(crate) fn relaying() -> Result<Runtime, Failure> {
    Builder::new_current_thread().enable_all().build().map_err(Failure::new)
}
