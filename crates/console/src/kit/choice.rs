//! The choices of a filter.

/// A choice of a filter.
pub(crate) struct Choice {
    pub(crate) value: String,
    pub(crate) label: String,
    pub(crate) chosen: bool,
}

impl Choice {
    /// The values of a list, of which one is chosen.
    pub(crate) fn of_list(list: &[(&str, &str)], chosen: &str) -> Vec<Self> {
        let choice = |(value, label): &(&str, &str)| Self {
            value: (*value).to_owned(),
            label: (*label).to_owned(),
            chosen: *value == chosen,
        };
        list.iter().map(choice).collect()
    }

    /// The possible values of a filter, and its current value.
    pub(crate) fn of_values<'a>(
        values: impl Iterator<Item = &'a str>,
        chosen: Option<&'a str>,
        label: impl Fn(&str) -> &str,
    ) -> Vec<Self> {
        let mut values: Vec<&str> = values.chain(chosen).collect();
        values.sort_unstable();
        values.dedup();
        let choice = |value: &str| Self {
            value: value.to_owned(),
            label: label(value).to_owned(),
            chosen: chosen == Some(value),
        };
        values.into_iter().map(choice).collect()
    }
}
