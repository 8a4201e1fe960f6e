//! Makes the decisions of all operations. These are evaluate, authorize, and the operations with
//! requests in the normal form: `EvaluateDecision` and `BatchEvaluate`.
//!
//! Each service has a file with its name in the proto. Each command that a service calls has
//! another file. `decide.rs` is the pipeline. `normalize.rs` converts each operation's request to
//! the normal form. `answer.rs` converts the outcome to the operation's response. Streams (`live/`)
//! follow a decision afterwards, and agents report its outcome (`report.rs`).

mod admission;
mod answer;
mod asked_before;
mod authority_service;
mod batch;
mod budgets;
mod cache;
mod call;
mod candidates;
mod changes;
mod cited;
mod compared;
mod decide;
mod decided;
mod decision_cursor;
mod decision_details;
pub mod decision_filter;
mod decision_key;
mod decision_service;
mod decision_summary;
mod denied_by;
mod entity;
mod explainer;
mod export;
mod fact_query;
mod facts;
mod fault;
mod find;
mod grants;
mod history;
mod hold;
mod holding;
mod hook_service;
mod idempotency;
mod impact;
mod live;
mod normalize;
mod observations;
mod own_acts;
mod permission_status;
pub mod queue;
pub mod rates;
mod ready_approval;
pub mod recorder;
mod report;
mod requester;
mod runtime_service;
mod sealed_facts;
mod search;
mod settings;
mod simulate;
mod stage;
mod stored_permission;
mod turn;
mod usage;
mod view;

use std::sync::Arc;

use authority_api::{credentials::Credentials, identity::Exports};
use authority_archive::Archives;
use authority_graph::Graph;
use authority_keys::Keys;
use authority_model::service::{self, Service};
use authority_process::{clock::Clock, compute::ComputePool, worker::Worker};
use authority_store::Store;

use admission::PurposeAdmission;
use authority_service::AuthorityHandlers;
use candidates::CandidatePolicies;
use decide::Decider;
use decision_service::DecisionHandlers;
use explainer::Explainer;
use facts::FactSource;
use find::DecisionQueries;
use grants::GrantQueries;
use history::EntityQueries;
use hook_service::HookHandlers;
use impact::ImpactRun;
use live::Watches;
pub use observations::PolicyObserver;
use queue::DecisionQueue;
use rates::DecisionRates;
use recorder::Recorder;
use report::Reports;
use runtime_service::RuntimeHandlers;
pub use search::FactIndex;
use search::SearchHandlers;
pub use settings::{ReceiptUrls, Settings};
use simulate::Simulator;
use tokio_util::sync::CancellationToken;
use usage::UsageHandlers;
pub use usage::UsageRollUp;

/// The dependencies of the runtime.
pub struct Parts {
    pub settings: Settings,
    pub clock: Clock,
    pub store: Store,
    pub keys: Keys,
    pub graph: Arc<Graph>,
    /// The pool for simulations, dry runs and explanations.
    pub pool: ComputePool,
    /// The running exports of any kind.
    pub exports: Exports,
    /// The queue in which calls for decisions wait for their places.
    pub queue: DecisionQueue,
    pub rates: DecisionRates,
    pub recorder: Recorder,
    /// Decisions that have been moved out of the tables.
    pub archives: Archives,
    /// Ends the streams, which would otherwise block the drain.
    pub shutdown: CancellationToken,
}

/// Returns the services for decisions, and the background work of their streams.
pub fn services(parts: Parts) -> ([Service; 6], [Worker; 5]) {
    let Parts {
        settings,
        clock,
        store,
        keys,
        graph,
        pool,
        exports,
        queue,
        rates,
        recorder,
        archives,
        shutdown,
    } = parts;
    let facts = FactSource::new(Arc::clone(&graph), store.clone());
    let credentials = Credentials { graph: Arc::clone(&graph) };
    let explainer = Explainer { facts: facts.clone(), pool: pool.clone() };
    let candidates = CandidatePolicies { store: store.clone(), pool: pool.clone() };
    let (watches, [feed, judge]) =
        Watches::new(&clock, &facts, &credentials, &pool, settings.heartbeat, shutdown);
    let queries = DecisionQueries {
        store: store.clone(),
        graph: Arc::clone(&graph),
        clock: clock.clone(),
        pool: pool.clone(),
        keys: keys.clone(),
        receipts: settings.receipts.clone(),
        exports: exports.clone(),
        archives,
    };
    let index = FactIndex::new(store.clone(), keys.clone(), Arc::clone(&graph));
    let decider = Arc::new(Decider {
        settings,
        clock: clock.clone(),
        keys: keys.clone(),
        facts: facts.clone(),
        credentials,
        queue,
        rates,
        recorder,
        explainer: explainer.clone(),
    });
    let entities = EntityQueries { store: store.clone(), keys: keys.clone(), exports };
    let search = SearchHandlers { queries: queries.clone(), entities: entities.clone() };
    let decisions = DecisionHandlers {
        decider: Arc::clone(&decider),
        queries,
        reports: Reports { store: store.clone(), clock: clock.clone(), keys: keys.clone() },
        simulator: Simulator {
            clock: clock.clone(),
            facts: facts.clone(),
            candidates: candidates.clone(),
            explainer,
            pool: pool.clone(),
        },
        impact: ImpactRun::new(&graph, &store, candidates, pool.clone(), &clock),
    };
    let grants = GrantQueries { graph, store: store.clone(), clock: clock.clone() };
    let purposes = PurposeAdmission { clock, facts };
    let hooks = HookHandlers { decider: Arc::clone(&decider) };
    let services = [
        service::hook_service(Arc::new(hooks)),
        service::runtime_service(Arc::new(RuntimeHandlers { decider, watches: Arc::new(watches) })),
        service::decision_service(Arc::new(decisions)),
        service::authority_service(Arc::new(AuthorityHandlers { entities, grants, purposes })),
        service::usage_service(Arc::new(UsageHandlers { store: store.clone(), keys })),
        service::search_service(Arc::new(search)),
    ];
    let observer = PolicyObserver::new(store.clone(), pool).worker();
    (services, [feed, judge, UsageRollUp::new(store).worker(), index.worker(), observer])
}
