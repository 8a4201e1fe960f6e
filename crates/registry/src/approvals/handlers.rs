//! The data that the operations on approval requests use.

use std::sync::Arc;

use authority_graph::Graph;

use crate::flow::registry::Registry;

/// The service of approvals.
#[derive(Clone)]
pub struct Approvals {
    pub registry: Registry,
    pub graph: Arc<Graph>,
}
