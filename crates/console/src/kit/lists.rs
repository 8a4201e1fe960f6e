//! Parts of the lists: the address with its filter, and links to other filters and pages.

use crate::kit::query::{Pairs, encoded};

/// The address of a list, with its filter and order as parameters.
#[derive(Clone)]
pub(crate) struct ListAddress {
    path: String,
    members: Vec<(String, String)>,
}

/// An active filter.
pub(crate) struct Chip {
    pub(crate) label: String,
    /// The list without this filter.
    pub(crate) without: String,
}

/// A link to a list with another filter or order.
pub(crate) struct ListLink {
    pub(crate) label: String,
    /// The number of its entries, if it is known.
    pub(crate) count: Option<String>,
    pub(crate) address: String,
    /// Whether the list has this filter or order.
    pub(crate) chosen: bool,
}

/// The links to other pages of a list.
pub(crate) struct Pages {
    /// Set on later pages.
    pub(crate) first: Option<String>,
    pub(crate) next: Option<String>,
}

impl ListAddress {
    /// The address with these parameters, as far as they have a value.
    pub(crate) fn of<'a>(
        path: impl Into<String>,
        members: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        let given = members.into_iter().filter(|(_, value)| !value.is_empty());
        let members = given.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Self { path: path.into(), members: members.collect() }
    }

    /// The parameters.
    pub(crate) fn members(&self) -> &[(String, String)] {
        &self.members
    }

    /// The query of the address.
    pub(crate) fn query(&self) -> String {
        let members = self.members.iter().map(|(name, value)| format!("{name}={}", encoded(value)));
        members.collect::<Vec<_>>().join("&")
    }

    /// The whole address.
    pub(crate) fn text(&self) -> String {
        let query = self.query();
        if query.is_empty() { self.path.clone() } else { format!("{}?{query}", self.path) }
    }

    /// The address with another value of a parameter. An empty value removes the parameter.
    pub(crate) fn with(&self, name: &str, value: &str) -> Self {
        let mut other = self.clone();
        match other.members.iter_mut().find(|(known, _)| known == name) {
            Some(member) => value.clone_into(&mut member.1),
            None => other.members.push((name.to_owned(), value.to_owned())),
        }
        other.members.retain(|(_, value)| !value.is_empty());
        other
    }

    /// The link to the list with this value of a parameter.
    pub(crate) fn link(&self, label: impl Into<String>, name: &str, value: &str) -> ListLink {
        let known = self.members.iter().find(|(known, _)| known == name);
        ListLink {
            label: label.into(),
            count: None,
            address: self.with(name, value).text(),
            chosen: known.map_or("", |(_, value)| value) == value,
        }
    }

    /// A chip for each parameter that has a label.
    pub(crate) fn chips(&self, label: impl Fn(&str, &str) -> Option<String>) -> Vec<Chip> {
        let chip = |(name, value): &(String, String)| {
            Some(Chip { label: label(name, value)?, without: self.with(name, "").text() })
        };
        self.members.iter().filter_map(chip).collect()
    }

    /// The links to the first and the next page. `query` is the query of the page.
    pub(crate) fn pages(&self, query: &Pairs, next: Option<&str>) -> Pages {
        Pages {
            first: query.one("page").map(|_| self.text()),
            next: next.map(|token| self.with("page", token).text()),
        }
    }
}

impl ListLink {
    pub(crate) fn counted(mut self, count: Option<usize>) -> Self {
        self.count = count.map(|count| count.to_string());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_filter_can_be_removed_and_the_others_stay() {
        let members = [("state", ""), ("agent", "svc:agent:acme:a"), ("action", "a b")];
        let list = ListAddress::of("/list", members);
        assert_eq!(list.text(), "/list?agent=svc%3Aagent%3Aacme%3Aa&action=a+b");
        let chips = list.chips(|name, value| (name == "action").then(|| value.to_owned()));
        let chips: Vec<_> = chips.iter().map(|chip| (&*chip.label, &*chip.without)).collect();
        assert_eq!(chips, [("a b", "/list?agent=svc%3Aagent%3Aacme%3Aa")]);
        assert_eq!(list.with("agent", "b").query(), "agent=b&action=a+b");
        assert_eq!(list.with("agent", "").with("action", "").text(), "/list");
        for (value, chosen) in [("a b", true), ("other", false), ("", false)] {
            assert_eq!(list.link("", "action", value).chosen, chosen, "{value}");
        }
        assert!(list.link("", "sort", "").chosen);
        let first = list.pages(&Pairs::default(), None);
        assert!(first.first.is_none() && first.next.is_none());
        let later = list.pages(&Pairs::read(b"page=x"), Some("y"));
        assert_eq!(later.first, Some(list.text()));
        assert_eq!(later.next, Some(format!("{}&page=y", list.text())));
    }
}
