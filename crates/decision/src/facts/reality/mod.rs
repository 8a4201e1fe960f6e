//! The state of the world as last observed: anchors, their snapshots, drift events and overrides.
//!
//! The tables are in docs/reference/reality.md.

pub(crate) mod anchors;
pub(crate) mod check;
pub(crate) mod finding;
pub(crate) mod words;

pub use self::{
    anchors::{
        Anchor, CheckedState, Drift, FreshnessContract, Lifted, Observed, Override, Reality,
        Snapshot,
    },
    check::{Assumption, Checked, CheckedAnchor, Observations, Tolerated, judge},
    finding::{CLOCK_SKEW, Finding, FindingKind},
    words::{AnchorType, CouplingResult, DriftType, RealitySource, Severity},
};
