//! The data that sealing needs on a node.

use super::{elsewhere::Elsewhere, room::Room, witness::Witness};
use authority_keys::Keys;
use authority_process::clock::Clock;
use authority_store::Store;

/// This node's sealer.
pub(super) struct Sealer {
    pub(super) public_url: String,
    pub(super) clock: Clock,
    pub(super) store: Store,
    pub(super) keys: Keys,
    pub(super) witness: Witness,
    pub(super) room: Room,
    pub(super) elsewhere: Elsewhere,
}
