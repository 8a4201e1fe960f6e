//! To come.
use crate::{Info, Options};
use prost_reflect::DescriptorPool;
use serde_json::Value;
pub(crate) fn document(_: &DescriptorPool, _: &Options, info: &Info<'_>) -> Value {
    serde_json::json!({"openapi": "3.1.0", "info": {"title": info.title}})
}
