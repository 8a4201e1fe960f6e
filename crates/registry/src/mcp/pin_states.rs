//! The values of `mcp.pin` of a tool.

/// No definition was pinned yet.
pub(super) const QUARANTINED: &str = "quarantined";
/// The newest seen definition is the pinned one.
pub(super) const PINNED: &str = "pinned";
/// Another definition was seen since the pin.
pub(super) const DRIFTED: &str = "drifted";
