//! The library of state machines that is part of the service. The form for adopting a machine
//! offers the machines of the library.

use std::collections::{BTreeMap, BTreeSet};

use authority_model::proto::states::{
    LibraryMachine, ListStateLibraryRequest, ListStateLibraryResponse,
};

use super::field::Field;
use crate::kit::prelude::*;

/// The members that name a machine of the library, and a version of it.
const ID: &str = "library_id";
const VERSION: &str = "library_version";

/// A field's value, and its display name.
type Options = Vec<(String, String)>;

/// Offers the library's machines and versions in the form's fields. People type them if they can't be read.
pub(super) async fn fill(view: &View, fields: &mut [Field]) {
    let is_wanted = fields.iter().any(|field| field.member.name == ID);
    if !is_wanted || !view.may(rpc::LIST_STATE_LIBRARY) {
        return;
    }
    let request = ListStateLibraryRequest::default();
    let listed = view.calls.call(&request).await;
    let Ok(ListStateLibraryResponse { library, .. }) = listed else { return };
    let (machines, versions) = options(library);
    for field in fields {
        match field.member.name.as_str() {
            ID => field.options.clone_from(&machines),
            VERSION => field.options.clone_from(&versions),
            _ => {}
        }
    }
}

/// The machines by category and title, and the versions that any of them has.
fn options(library: Vec<LibraryMachine>) -> (Options, Options) {
    let (mut machines, mut versions) = (BTreeMap::new(), BTreeSet::new());
    let mut of = BTreeMap::<String, Vec<String>>::new();
    for machine in library {
        versions.insert(machine.version.clone());
        of.entry(machine.id.clone()).or_default().push(machine.version);
        machines.insert((machine.category, machine.title), machine.id);
    }
    let label = |((category, title), id): ((String, String), String)| {
        let has = of.get(&id).map(|versions| versions.join(", ")).unwrap_or_default();
        (id, t::records::machine(category.replace('_', " "), title, has))
    };
    let versions = versions.into_iter().map(|version| (version.clone(), version));
    (machines.into_iter().map(label).collect(), versions.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_offered_once_with_its_versions() {
        let machine = |category: &str, name: &str, version: &str| LibraryMachine {
            id: format!("{category}.{name}"),
            version: version.to_owned(),
            category: category.to_owned(),
            title: name.to_uppercase(),
            ..LibraryMachine::default()
        };
        let library = vec![
            machine("public_sector", "grant", "1.0.0"),
            machine("banking", "loan", "1.0.0"),
            machine("banking", "loan", "2.0.0"),
        ];
        let (machines, versions) = options(library);
        let shown: Vec<_> =
            machines.iter().map(|(id, label)| (id.as_str(), label.as_str())).collect();
        assert_eq!(
            shown,
            [
                ("banking.loan", "banking: LOAN, version 1.0.0, 2.0.0"),
                ("public_sector.grant", "public sector: GRANT, version 1.0.0"),
            ]
        );
        assert_eq!(versions.len(), 2);
    }
}
