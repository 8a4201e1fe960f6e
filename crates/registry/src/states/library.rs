//! The library of state machines. It contains the machines bundled with this release, and the
//! machines of earlier releases that are stored in the database.

use std::{collections::BTreeMap, sync::LazyLock};

use authority_model::{
    proto::states::*, schema::state_library, service::StateLibraryService, wire::Json,
};
use serde_json::Value;
use tonic::Response;

use crate::flow::prelude::*;
use authority_store as store;

include!(concat!(env!("OUT_DIR"), "/state_library.rs"));

/// The machines of this release. A test checks that every file can be read.
static BUNDLED: LazyLock<Vec<LibraryMachine>> =
    LazyLock::new(|| FILES.iter().filter_map(|file| serde_json::from_str(file).ok()).collect());

fn written(machine: &LibraryMachine) -> Result<Value, Error> {
    let broken = |error: serde_json::Error| Error::Store(store::Error::Internal(error.to_string()));
    serde_json::to_value(machine).map_err(broken)
}

/// Machines by ID and version.
type Library = BTreeMap<(String, Version), LibraryMachine>;

/// A version, ordered by its numbers. Parts that can't be parsed sort as 0.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Version(Vec<u64>, String);

impl Version {
    fn of(text: &str) -> Self {
        let numbers = text.split('.').map(|part| part.parse().unwrap_or_default());
        Self(numbers.collect(), text.to_owned())
    }
}

/// Returns every machine in every version.
pub(super) async fn every(db: &mut Db) -> Result<Library, Error> {
    let stored: Vec<Value> = state_library::table.select(state_library::body).load(db).await?;
    let stored = stored.into_iter().filter_map(|body| match serde_json::from_value(body) {
        Ok(machine) => Some(machine),
        Err(problem) => {
            tracing::error!(error = %problem, "failed to read a stored state machine");
            None
        }
    });
    // A stored version takes precedence. Adopted versions therefore never change.
    let all = BUNDLED.iter().cloned().chain(stored);
    Ok(all.map(|m| ((m.id.clone(), Version::of(&m.version)), m)).collect())
}

/// Returns the newest version of each machine.
pub(super) fn newest(library: &Library) -> BTreeMap<String, String> {
    library.keys().map(|(id, version)| (id.clone(), version.1.clone())).collect()
}

/// Returns one version of one machine.
pub(super) async fn find(db: &mut Db, id: &str, version: &str) -> Result<LibraryMachine, Error> {
    let mut library = every(db).await?;
    if let Some(found) = library.remove(&(id.to_owned(), Version::of(version))) {
        return Ok(found);
    }
    let versions: Vec<_> =
        library.into_keys().filter(|(known, _)| known == id).map(|(_, v)| v.1).collect();
    if versions.is_empty() {
        return Err(Error::unknown("library_id", id));
    }
    let problem = format!("is unknown; `{id}` has {}", versions.join(", "));
    Err(Error::field("library_version", problem))
}

/// Stores machines in the database. Machines that are already stored do not change.
pub(super) async fn keep(db: &mut Db, machines: &[LibraryMachine]) -> Result<(), Error> {
    let mut rows = Vec::with_capacity(machines.len());
    for machine in machines {
        rows.push((
            state_library::id.eq(&machine.id),
            state_library::version.eq(&machine.version),
            state_library::category.eq(&machine.category),
            state_library::body.eq(written(machine)?),
        ));
    }
    diesel::insert_into(state_library::table)
        .values(rows)
        .on_conflict_do_nothing()
        .execute(db)
        .await?;
    Ok(())
}

/// Converts a library entry to a machine without a tenant.
pub(super) fn machine(of: LibraryMachine) -> StateMachine {
    let named = |kind: &'static str| {
        let states = of.states.iter().filter(move |state| state.kind == kind);
        states.map(|state| state.name.clone())
    };
    let described =
        |state: &LibraryState| (state.name.clone(), Value::String(state.description.clone()));
    StateMachine {
        title: Some(of.title.clone()),
        description: Some(of.description.clone()),
        initial_state: named("initial").next(),
        final_states: named("final").collect(),
        states: of.states.iter().map(|state| state.name.clone()).collect(),
        state_descriptions: Some(Json(of.states.iter().map(described).collect())),
        transitions: of.transitions,
        library_id: Some(of.id),
        library_version: Some(of.version),
        ..StateMachine::default()
    }
}

#[tonic::async_trait]
impl StateLibraryService for Registry {
    async fn list_state_library(
        &self,
        call: Request<ListStateLibraryRequest>,
    ) -> Reply<ListStateLibraryResponse> {
        let (caller, request) = admitted(call)?;
        let whose = caller.scope();
        let library = self.store.read_tx(&whose, async move |db| every(db).await).await?;
        let meant = |machine: &LibraryMachine| {
            request.category.as_ref().is_none_or(|category| machine.category == *category)
        };
        let shown = |mut machine: LibraryMachine| {
            if request.include.is_none() {
                machine.states.clear();
                machine.transitions.clear();
            }
            machine
        };
        let library = library.into_values().filter(meant).map(shown).collect();
        Ok(Response::new(ListStateLibraryResponse { library }))
    }

    async fn seed_state_library(
        &self,
        call: Request<SeedStateLibraryRequest>,
    ) -> Reply<SeedStateLibraryResponse> {
        let key = IdempotencyKey::of(&call)?;
        let (caller, _) = admitted(call)?;
        let seeded = self.idempotent(&caller, key, async move |db| {
            keep(db, &BUNDLED).await?;
            let total: i64 = state_library::table.count().get_result(db).await?;
            Ok::<_, Error>(SeedStateLibraryResponse {
                bundled_total: i32::try_from(BUNDLED.len()).unwrap_or(i32::MAX),
                db_total: i32::try_from(total).unwrap_or(i32::MAX),
            })
        });
        Ok(seeded.await?.reply())
    }
}

#[cfg(test)]
mod tests {
    use authority_model::validate::{Validate, Violations};

    use super::*;
    use crate::flow::entity::RecordRow;

    #[test]
    fn every_bundled_machine_can_be_adopted() {
        for file in FILES {
            let read: LibraryMachine =
                serde_json::from_str(file).unwrap_or_else(|why| panic!("{why}\n{file}"));
            let id = read.id.clone();
            let mut adopted = machine(read);
            adopted.entity_class = "own".to_owned();
            adopted.defaults();
            let mut found = Violations::default();
            adopted.validate(&mut found);
            adopted.validate_record(&mut found);
            assert!(found.is_empty(), "{id}: {:?}", found.list);
        }
    }

    #[test]
    fn versions_are_ordered_by_number() {
        let mut versions = ["1.10.0", "1.9.0", "2.0.0", "1.9.1"].map(Version::of);
        versions.sort();
        assert_eq!(versions.map(|version| version.1), ["1.9.0", "1.9.1", "1.10.0", "2.0.0"]);
    }
}
