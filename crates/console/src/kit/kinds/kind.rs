//! The kinds of records, and the operations of each, as the protos describe them: a message with
//! `google.api.resource` is a kind, and the service that lists it has its operations.

use std::sync::LazyLock;

use authority_ids::IdParts;
use authority_model::DESCRIPTORS;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use prost_reflect::{DescriptorPool, DynamicMessage, FieldDescriptor, MessageDescriptor};
use tonic::Status;

use super::{
    describe::{comment, extension, sentence, words},
    exceptions::Exception,
    member::Member,
    message::{set_text, text},
    operation::{Operation, Shape},
    states,
};
use crate::texts as t;

/// A kind of records.
pub(crate) struct Kind {
    /// Its part of an address: `api-keys`.
    pub(crate) path: String,
    /// The name in ids: `api_key`.
    pub(crate) singular: String,
    /// `API key`.
    pub(crate) one: String,
    /// `API keys`.
    pub(crate) many: String,
    /// The description, one sentence.
    pub(crate) about: String,
    /// The heading that it stands under.
    pub(crate) area: &'static str,
    pub(crate) record: MessageDescriptor,
    /// The differences of its pages from the protos.
    pub(crate) exception: &'static Exception,
    /// The final states, in which a record can no longer change.
    pub(super) finals: Vec<String>,
    pub(crate) list: Operation,
    pub(crate) get: Operation,
    /// The members that identify a link between records instead of an id. Empty for any other kind.
    key: Vec<String>,
    /// All other operations.
    pub(crate) operations: Vec<Operation>,
}

/// The headings, in their order. Each has a package, whether the records can be edited, and a label.
const AREAS: [(&str, Option<bool>, &str); 8] = [
    ("authority.delegation.v1", None, t::kit::DELEGATIONS_AND_KEYS),
    ("authority.keys.v1", None, t::kit::DELEGATIONS_AND_KEYS),
    ("authority.registry.v1", Some(true), t::kit::REGISTRY),
    ("authority.registry.v1", Some(false), t::kit::GRANTS_LINKS_STOPS),
    ("authority.events.v1", None, t::kit::WEBHOOKS),
    ("authority.reality.v1", None, t::kit::REALITY),
    ("authority.states.v1", None, t::kit::STATES),
    ("authority.programme.v1", None, t::kit::PROGRAMME),
];

static POOL: LazyLock<DescriptorPool> = LazyLock::new(|| {
    DescriptorPool::decode(DESCRIPTORS).unwrap_or_else(|error| {
        tracing::error!(%error, "failed to read the descriptors; the console shows no records");
        DescriptorPool::new()
    })
});

/// Every kind, in the order of the headings.
pub(crate) static KINDS: LazyLock<Vec<Kind>> = LazyLock::new(|| {
    let mut kinds: Vec<Kind> = POOL.all_messages().filter_map(|message| kind(&message)).collect();
    let place = |kind: &Kind| AREAS.iter().position(|(.., area)| *area == kind.area);
    kinds.sort_by_cached_key(|kind| (place(kind), kind.many.clone()));
    kinds
});

impl Kind {
    /// The kind at this part of an address.
    pub(crate) fn at(path: &str) -> Option<&'static Self> {
        KINDS.iter().find(|kind| kind.path == path)
    }

    /// The kind at this part of an address, or the error of an unknown page.
    pub(crate) fn known(path: &str) -> Result<&'static Self, Status> {
        Self::at(path).ok_or_else(|| Status::not_found(t::NO_SUCH_PAGE))
    }

    /// The kind in an id: `svc:<kind>:…`, or `svc:ent:<tenant>:<kind>:…`.
    pub(crate) fn of_id(id: &str) -> Option<&'static Self> {
        let singular = match IdParts::of(id)?.kind {
            "agent" => "principal",
            kind => kind,
        };
        KINDS.iter().find(|kind| kind.singular == singular)
    }

    /// The operation on one record with this word in an address.
    pub(crate) fn verb(&self, word: &str) -> Option<&Operation> {
        let is_verb = |shape| matches!(shape, Shape::Edit | Shape::Verb);
        self.operations.iter().find(|verb| is_verb(verb.shape) && verb.word == word)
    }

    /// The operation without a record, with this word in an address.
    pub(crate) fn maker(&self, word: &str) -> Option<&Operation> {
        let is_maker = |shape| matches!(shape, Shape::Create | Shape::Other);
        self.operations.iter().find(|maker| is_maker(maker.shape) && maker.word == word)
    }

    /// The text that identifies a record in an address: its id, or the members that replace it.
    pub(crate) fn key_of(&self, record: &DynamicMessage) -> String {
        if self.key.is_empty() {
            return text(record, "id");
        }
        let parts = self.key.iter().map(|name| text(record, name));
        URL_SAFE_NO_PAD.encode(parts.collect::<Vec<_>>().join("|"))
    }

    /// Sets the record's id in a request.
    pub(crate) fn name_in(&self, request: &mut DynamicMessage, name: &str) {
        set_text(request, "id", name);
        let decoded = URL_SAFE_NO_PAD.decode(name).ok();
        let text = decoded.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
        for (member, part) in self.key.iter().zip(text.splitn(self.key.len(), '|')) {
            set_text(request, member, part);
        }
    }

    /// Whether the id alone identifies a record.
    pub(crate) fn has_ids(&self) -> bool {
        self.key.is_empty()
    }

    /// The page of an operation that creates such records.
    pub(crate) fn maker_page(&self, maker: &Operation) -> String {
        let own = self.exception.new_page.filter(|_| maker.shape == Shape::Create);
        let usual = || format!("/console/records/{}/new/{}", self.path, maker.word);
        own.map_or_else(usual, str::to_owned)
    }

    /// The reason why an operation is not possible in the record's current state.
    pub(crate) fn barrier(&self, word: &str, record: &DynamicMessage) -> Option<String> {
        let operation = self.operations.iter().find(|operation| operation.word == word);
        let changed = operation.map_or(&[][..], |operation| operation.states.as_slice());
        states::barrier(&self.singular, word, (self.finals.as_slice(), changed), record)
    }

    /// Whether setting a member to this word is final: a final state, or a revocation.
    pub(crate) fn is_final(&self, member: &Member, word: &str) -> bool {
        match member.name.as_str() {
            "state" | "status" => self.finals.iter().any(|state| state == word),
            "revoke" => word == "true",
            _ => false,
        }
    }

    /// The separate page of a record of this kind, with its label.
    pub(crate) fn own_page(&self, id: &str) -> Option<(String, &'static str)> {
        let (place, label) = self.exception.page?;
        Some((format!("/console/{place}/{}", crate::kit::query::encoded(id)), label))
    }

    /// The address of a record's page.
    pub(crate) fn address(&self, id: &str) -> String {
        format!("/console/records/{}/{}", self.path, crate::kit::query::encoded(id))
    }
}

fn kind(record: &MessageDescriptor) -> Option<Kind> {
    let resource = extension(&record.options(), "google.api.resource")?;
    let resource = resource.as_message()?;
    let (plural, singular) = (text(resource, "plural"), text(resource, "singular"));
    let exception = Exception::of(&singular);
    if exception.is_left_out {
        return None;
    }
    let services = POOL.services();
    let of_service = |service: prost_reflect::ServiceDescriptor| -> Vec<Operation> {
        service.methods().filter_map(|method| Operation::of(&method, record)).collect()
    };
    let mut operations = services
        .map(of_service)
        .find(|found| found.iter().any(|operation| operation.shape == Shape::List))?;
    // The kind's place in the menu depends on any existing edit operation, offered or not.
    let is_edited = operations.iter().any(|operation| operation.shape == Shape::Edit);
    operations.retain(|operation| exception.offers(operation));
    let mut take = |shape| {
        let place = operations.iter().position(|operation| operation.shape == shape)?;
        Some(operations.remove(place))
    };
    let (list, get) = (take(Shape::List)?, take(Shape::Get)?);
    let package = record.package_name();
    let area = AREAS
        .iter()
        .find(|(of, edited, _)| *of == package && edited.is_none_or(|edited| edited == is_edited));
    Some(Kind {
        path: plural.replace('_', "-"),
        one: words(&singular, false),
        many: words(&plural, true),
        about: exception.about.map_or_else(
            || sentence(&comment(&record.parent_file(), record.path())),
            str::to_owned,
        ),
        area: area.map_or(t::kit::OTHER, |(.., area)| area),
        finals: states::finals(record),
        record: record.clone(),
        exception,
        key: key(&get.input, record),
        singular,
        list,
        get,
        operations,
    })
}

/// The members of a request that identify a record instead of an id, as for links between records.
fn key(request: &MessageDescriptor, record: &MessageDescriptor) -> Vec<String> {
    let mut fields: Vec<_> = request.fields().collect();
    fields.sort_by_key(FieldDescriptor::number);
    let names = fields.iter().map(FieldDescriptor::name);
    let parts = names.filter(|name| *name != "id" && record.get_field_by_name(name).is_some());
    parts.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_operations() {
        let words = |path: &str| {
            let kind = Kind::at(path).unwrap();
            kind.operations.iter().map(|operation| operation.word.as_str()).collect::<Vec<_>>()
        };
        assert_eq!(words("api-keys"), ["create", "update", "revoke", "rotate"]);
        // A stop is always made on a page that shows its consequences.
        assert!(words("stop-signals").is_empty() && words("quarantines").is_empty());
        assert_eq!(
            words("delegations"),
            ["create", "revoke", "suspend", "reinstate", "narrow", "renew", "approve", "withdraw"]
        );
        // Operations that the API always refuses are not offered.
        assert_eq!(words("state-events"), ["create-state-transition", "request-state-transition"]);
        assert!(Kind::at("approvals").is_none());
    }

    #[test]
    fn an_id_says_its_kind() {
        for (id, path) in [
            ("svc:agent:acme:invoice-bot", "principals"),
            ("svc:ent:acme:principal:0198", "principals"),
            ("svc:ent:acme:tool:0198", "tools"),
            ("svc:del:acme:0198", "delegations"),
            ("svc:tenant:acme", "tenants"),
            ("svc:api_key:abc", "api-keys"),
        ] {
            assert_eq!(Kind::of_id(id).map(|kind| kind.path.as_str()), Some(path), "{id}");
        }
        for id in ["", "svc:", "svc:approval:1", "acme", "svc:ent:acme"] {
            assert!(Kind::of_id(id).is_none(), "{id}");
        }
    }
}
