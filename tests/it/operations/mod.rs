//! What an operator sees and does: metrics, the dashboard and the alerts, logs, logins, starting, the handbook.

mod deployed;
mod first_decision;
mod first_hour;
mod handbook;
mod logins;
mod logs;
mod metrics;
mod pooler;
mod rules;
mod settings;
mod start;
mod traces;
