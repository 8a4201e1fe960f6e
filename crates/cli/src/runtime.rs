//! The runtime of a command, and its memory.

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
/// several tasks: waking another thread for each would take longer than their work. The process
/// then uses no huge pages.
///
/// # Errors
/// The system has no file descriptor left.
pub(crate) fn relaying() -> Result<Runtime, Failure> {
    set_huge_pages(false);
    Builder::new_current_thread().enable_all().build().map_err(Failure::new)
}

/// Runs a function while the system gives this process, and the processes that it starts, huge
/// pages or none. The first allocations of a command are spread over several such pages of 2 MiB
/// each, although they would fit into a fraction of one.
pub fn with_huge_pages<T>(are_on: bool, run: impl FnOnce() -> T) -> T {
    let were_on = has_huge_pages();
    set_huge_pages(are_on);
    let result = run();
    set_huge_pages(were_on);
    result
}

#[cfg(target_os = "linux")]
fn has_huge_pages() -> bool {
    !rustix::thread::transparent_huge_pages_are_disabled().unwrap_or_default()
}

#[cfg(target_os = "linux")]
fn set_huge_pages(are_on: bool) {
    // If the system refuses, the process takes more memory.
    let _ = rustix::thread::disable_transparent_huge_pages(!are_on);
}

#[cfg(not(target_os = "linux"))]
fn has_huge_pages() -> bool {
    true
}

#[cfg(not(target_os = "linux"))]
fn set_huge_pages(_: bool) {}
