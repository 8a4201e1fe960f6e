//! The limit of gRPC messages, the same on each path to the services.

/// The largest gRPC request message, in bytes.
pub(super) const GRPC_LIMIT: usize = 1 << 20;
