//! @generated from sample.proto.

pub use packages::authority::sample::v1 as sample;
