//! The fields of an update: `google.protobuf.FieldMask`.

#[derive(Clone, PartialEq, Eq, Hash, prost::Message)]
pub struct FieldMask {
    #[prost(string, repeated, tag = "1")]
    pub paths: Vec<String>,
}

impl FieldMask {
    /// Returns each path once.
    ///
    /// Merging moves each value out of the patch. For a repeated path, the second move would set
    /// the default value.
    pub fn distinct(&self) -> impl Iterator<Item = &str> {
        let paths = self.paths.iter().enumerate();
        let first = |(at, path): &(usize, &String)| self.paths.iter().take(*at).all(|p| p != *path);
        paths.filter(first).map(|(_, path)| path.as_str())
    }
}

#[cfg(test)]
mod tests {
    use crate::{proto::keys::ApiKey, record::Record, wire::FieldMask};

    #[test]
    fn a_member_that_a_mask_names_twice_is_set_once() {
        let patch = ApiKey { principal_ids: vec!["a".to_owned()], ..ApiKey::default() };
        let mask = FieldMask { paths: ["principal_ids"; 2].map(str::to_owned).into() };
        let mut key = ApiKey::default();
        key.merge(patch, &mask);
        assert_eq!(key.principal_ids, ["a"]);
    }
}
