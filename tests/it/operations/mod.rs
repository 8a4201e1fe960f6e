//! What an operator sees and does: metrics, the dashboard and the alerts, logs, starting, the handbook.

mod handbook;
mod logs;
mod metrics;
mod settings;
mod start;
mod traces;
