//! The fields of an update: `google.protobuf.FieldMask`.

#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct FieldMask {
    #[prost(string, repeated, tag = "1")]
    pub paths: Vec<String>,
}
