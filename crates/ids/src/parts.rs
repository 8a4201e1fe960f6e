//! The kind and tenant of any record's id, read leniently.

/// The kind of the record with an id, and the slug of the record's tenant if the id contains it.
///
/// The rest of the id is not checked. Use this for references to records that need not exist.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdParts<'a> {
    /// `tenant`, `agent`, `delegation`, `principal`, `approval`, …; empty if the id has no such
    /// part.
    pub kind: &'a str,
    pub tenant_slug: Option<&'a str>,
}

impl<'a> IdParts<'a> {
    /// Returns `None` if the text is not an id of this service.
    pub fn of(id: &'a str) -> Option<Self> {
        let (prefix, rest) = id.strip_prefix("svc:")?.split_once(':')?;
        let mut rest = rest.split(':');
        let slug = rest.next();
        Some(match prefix {
            "ent" => Self { kind: rest.next().unwrap_or_default(), tenant_slug: slug },
            "del" => Self { kind: "delegation", tenant_slug: slug },
            "tenant" | "agent" => Self { kind: prefix, tenant_slug: slug },
            kind => Self { kind, tenant_slug: None },
        })
    }

    /// Whether the text begins like an id of this service. The rest is not checked.
    pub fn begins(text: &str) -> bool {
        text.starts_with("svc:")
    }

    /// Whether the text is an id of this kind of record, as far as [`IdParts::of`] reads it.
    pub fn is(text: &str, kind: &str) -> bool {
        IdParts::of(text).is_some_and(|parts| parts.kind == kind)
    }

    /// Returns the id at the end of a reference: `svc:approval:1` in `approval:svc:approval:1`.
    pub fn id_in(reference: &str) -> Option<&str> {
        reference.find("svc:").and_then(|at| reference.get(at..))
    }
}
