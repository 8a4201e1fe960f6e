//! The collections that can be read, and their operations: found in the route table.

use authority_model::rest::ROUTES;
use gateway_rest::{Cardinality, Field, Kind, Route, Segment, Shape};

/// REST collections by the last word of their path, in the order of `--help`. Each name becomes a command
/// with the operations of its routes.
const NAMES: &[&str] = &["tenants", "principals", "delegations", "policies", "decisions", "keys"];

/// A collection and its operations; it has at least one.
#[derive(Debug)]
pub(super) struct Collection {
    pub(super) name: &'static str,
    pub(super) list: Option<Listing>,
    /// Reads one record by its id.
    pub(super) item: Option<&'static Route>,
}

/// An operation that lists records.
#[derive(Debug)]
pub(super) struct Listing {
    pub(super) route: &'static Route,
    /// The member of its response that holds the records.
    pub(super) member: &'static Field,
    /// The shape of a record.
    pub(super) record: &'static Shape,
}

pub(super) fn all() -> impl Iterator<Item = Collection> {
    NAMES.iter().filter_map(|name| find(name))
}

pub(super) fn named(name: &str) -> Option<Collection> {
    NAMES.iter().find(|known| **known == name).and_then(|name| find(name))
}

pub(super) fn find(name: &'static str) -> Option<Collection> {
    let reads = || {
        let plain = |route: &&Route| route.verb.is_empty() && !route.streams && route.raw.is_none();
        ROUTES.iter().filter(|route| route.method == "GET").filter(plain)
    };
    let is = |segment: &Segment| *segment == Segment::Literal(name);
    // The shortest of several paths: the owner's, before one that is limited to a tenant.
    let list = reads()
        .filter(|route| route.variables.is_empty() && route.segments.last().is_some_and(is))
        .filter_map(Listing::of)
        .min_by_key(|listing| listing.route.segments.len());
    let item = reads()
        .filter(|route| route.variables.len() == 1)
        .filter(|route| matches!(route.segments, [.., last, Segment::One] if is(last)))
        .min_by_key(|route| route.segments.len());
    (list.is_some() || item.is_some()).then_some(Collection { name, list, item })
}

impl Listing {
    fn of(route: &'static Route) -> Option<Self> {
        if route.response_body.is_some() || !route.envelope.is_empty() {
            return None;
        }
        route.output.fields.iter().find_map(|member| match (&member.kind, member.cardinality) {
            (Kind::Message(record), Cardinality::Repeated) => Some(Self { route, member, record }),
            _ => None,
        })
    }
}

/// The member that identifies a record: `id`, or else its first.
pub(super) fn identity(record: &'static Shape) -> Option<&'static Field> {
    record.field("id").or(record.fields.first())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_has_operations_and_the_shortest_path_counts() {
        assert_eq!(all().count(), NAMES.len());
        let tenants = named("tenants").unwrap();
        assert_eq!(tenants.list.unwrap().route.path, "/api/v1/tenants");
        assert_eq!(tenants.item.unwrap().path, "/api/v1/tenants/{id}");
        let keys = find("api-keys").unwrap();
        assert_eq!(keys.list.unwrap().route.path, "/api/v1/api-keys");
        assert_eq!(keys.item.unwrap().path, "/api/v1/api-keys/{id}");
    }

    #[test]
    fn what_is_not_there_is_not_offered() {
        let keys = named("keys").unwrap();
        assert!(keys.item.is_none());
        assert_eq!(identity(keys.list.unwrap().record).unwrap().name, "kid");
        assert!(find("nothing").is_none());
        // Neither a list of words nor a part of a longer path is a collection.
        assert!(find("health").is_none());
        assert!(find("versions").is_none());
    }
}
