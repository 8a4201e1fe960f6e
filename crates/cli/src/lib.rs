//! The command line's commands that call a service or verify evidence offline.
//!
//! The commands are in `commands/`. The other files are what commands share: `connect.rs` finds the
//! service, `server.rs` calls it at the paths of the credential, `list.rs` and `record.rs` show the
//! responses, `outcome.rs` prints. The server's own commands are in the server's crate.

mod actor;
mod arguments;
mod blast;
mod cells;
mod commands;
mod confirm;
mod connect;
mod files;
pub mod health;
mod http;
mod identity;
mod jwks;
mod list;
mod logins;
mod mcp;
mod names;
mod narrow;
mod outcome;
mod paint;
pub mod place;
mod reason;
mod record;
mod refusal;
mod runtime;
mod server;
mod table;
mod tenant;
pub mod text;
mod times;
mod token_request;
mod unified_diff;
mod unknown_names;
mod view;

pub use arguments::{tenant, tenant_id};
pub use commands::{
    ANY, APPROVALS, LISTS, Remote,
    archive::Archive,
    hook::Hook,
    hooks::Hooks,
    keys::Keys,
    login::{LoginArgs, LogoutArgs},
    verify::{Replay, Verify},
};
pub use confirm::Confirm;
pub use connect::{Connector, IssueToken, ServerArgs};
pub use http::keys_address;
pub use jwks::Jwks;
pub use list::List;
pub use outcome::{CommandOutput, Failure, print};
pub use refusal::flag;
pub use runtime::{runtime, with_huge_pages};
pub use server::Server;
pub use token_request::TokenRequest;
pub use view::View;
