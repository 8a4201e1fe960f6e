//! The parts of a running process that know neither the database nor authority: its clock, background
//! work, threads for computation, the stop signal and private folders.

pub mod clock;
pub mod compute;
pub mod folder;
pub mod log_limit;
pub mod network;
pub mod shutdown;
pub mod worker;
