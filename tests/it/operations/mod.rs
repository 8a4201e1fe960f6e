//! Operations: metrics, dashboard, alerts, logs, logins, starting, and the documented commands.

mod coding_agent;
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
