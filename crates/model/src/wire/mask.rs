//! The fields that a change names: `google.protobuf.FieldMask`.

#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct FieldMask {
    #[prost(string, repeated, tag = "1")]
    pub paths: Vec<String>,
}
