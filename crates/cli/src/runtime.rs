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
