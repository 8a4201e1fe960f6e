//! Faults: the service is killed, the database fails, clocks differ, nodes are behind.

mod clocks;
mod cluster;
mod cuts;
mod database;
mod deadlines;
mod defaults;
mod deliveries;
mod failover;
mod figures;
mod goal;
mod hooks;
mod keys;
mod killed;
mod late;
mod log;
mod nodes;
mod numbering;
mod overload;
pub(crate) mod process;
mod readiness;
mod rolling;
mod room;
mod silence;
mod stopping;
pub(crate) mod writer;
