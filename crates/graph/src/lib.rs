//! The authority of all tenants in memory, built from Postgres and kept current by the change log.
//!
//! A decision reads one tenant's graph under a short lock and never waits for the database. The
//! tail (`tail.rs`) follows `authority_changes` in the order of commits. If its last read is too
//! old, no decisions are made. The fence at commit detects changes that the tail has not read.

mod acts;
mod api_key;
mod approvers;
mod authority;
mod clock_distance;
mod decision_limits;
mod delegation_row;
mod demanded_events;
mod event_demand;
mod faulty_policies;
mod fields;
mod grants;
mod graph;
mod indexed;
mod key_row;
mod load;
mod log;
mod node;
mod orgs;
mod people;
mod performers;
mod persons;
pub mod policy_check;
mod present;
mod reality;
mod rows;
mod same_person;
mod schemas;
mod settings;
mod tables;
mod tail;
mod tenant;
pub mod time_zones;
mod tool_index;
mod tool_row;
mod world;

pub use acts::{GivenActs, actor, decide_by, decide_on};
pub use api_key::{ApiKey, Unusable, allow_list};
pub use approvers::{Barrier, ProposedAction};
pub use decision_limits::DecisionLimit;
pub use demanded_events::{DECISION_ALLOWED, DECISION_DENIED, DemandedEvents};
pub use grants::GrantView;
pub use graph::{Error, Graph, TenantHandle};
pub use node::{Maker, Profile};
pub use persons::{Person, Persons};
pub use present::{Fence, hold_fence, revision};
pub use reality::{AnchorRow, HeadRow};
pub use settings::Settings;
pub use tenant::TenantGraph;
pub use tool_row::binding_tool;
pub use world::AnchorHead;
