//! Operations: metrics, dashboard, alerts, logs, logins, starting, containers, and the documented
//! commands.

mod coding_agent;
mod containers;
mod deployed;
mod first_decision;
mod first_hour;
mod handbook;
mod logins;
mod logs;
mod metrics;
mod metrics_export;
mod pooler;
mod rules;
mod settings;
mod start;
mod traces;
