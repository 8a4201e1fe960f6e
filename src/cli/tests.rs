//! Tests the commands against the service's contract: its lists, filters and responses.

use std::collections::BTreeSet;

use agent_authority::app::OPENAPI;
use authority_cli::{ANY, APPROVALS, LISTS, flag as flag_of};
use authority_client::Surface;
use clap::{Arg, CommandFactory, Parser, builder::PossibleValue};
use serde_json::Value;

use super::args::Args;

/// Each command that reads, and the paths of its operation.
const READS: [(&str, &str); 28] = [
    ("approvals list", "/api/v1/approvals"),
    ("approvals list", "/api/v1/app/approvals"),
    ("tenants list", "/api/v1/tenants"),
    ("tenants show", "/api/v1/tenants/{id}"),
    ("principals list", "/api/v1/principals"),
    ("principals show", "/api/v1/principals/{id}"),
    ("delegations list", "/api/v1/delegations"),
    ("delegations list", "/api/v1/app/delegations"),
    ("stop-signals list", "/api/v1/stop-signals"),
    ("quarantines list", "/api/v1/quarantines"),
    ("delegations show", "/api/v1/delegations/{id}"),
    ("policies list", "/api/v1/policies"),
    ("policies show", "/api/v1/policies/{id}"),
    ("decisions list", "/api/v1/decisions"),
    ("decisions list", "/api/v1/app/decisions"),
    ("decisions export", "/api/v1/decisions:export"),
    ("decisions show", "/v1/decisions/{decision_id}"),
    ("keys list", "/api/v1/keys"),
    ("webhooks list", "/api/v1/webhook-endpoints"),
    ("webhooks replays", "/api/v1/webhook-endpoints/{id}/replays"),
    ("webhooks list", "/api/v1/app/webhook-endpoints"),
    ("webhooks list", "/v1/webhook-endpoints"),
    ("webhooks show", "/api/v1/webhook-endpoints/{id}"),
    ("webhooks show", "/api/v1/app/webhook-endpoints/{id}"),
    ("webhooks show", "/v1/webhook-endpoints/{id}"),
    ("webhooks deliveries", "/api/v1/webhook-endpoints/{id}/deliveries"),
    ("webhooks deliveries", "/api/v1/app/webhook-endpoints/{id}/deliveries"),
    ("webhooks deliveries", "/v1/webhook-endpoints/{id}/deliveries"),
];

fn contract() -> Value {
    serde_json::from_str(OPENAPI).unwrap()
}

/// Returns the flags of a command, without the flags common to all.
fn flags(typed: &str) -> Vec<Arg> {
    let mut command = Args::command();
    command.build();
    let command = typed.split(' ').fold(&command, |command, name| {
        command.find_subcommand(name).unwrap_or_else(|| panic!("no `{typed}`"))
    });
    let common = |arg: &Arg| {
        arg.is_global_set() || ["help", "version", "url", "token"].contains(&arg.get_id().as_str())
    };
    let flags = command.get_arguments().filter(|arg| !arg.is_positional() && !common(arg));
    flags.cloned().collect()
}

#[test]
fn each_query_parameter_is_a_flag_and_takes_the_same_values() {
    let contract = contract();
    for (typed, path) in READS {
        let operation = &contract["paths"][path]["get"];
        assert!(operation.is_object(), "no GET {path}");
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        let parameters: Vec<_> = parameters.filter(|given| given["in"] == "query").collect();
        let flags = flags(typed);
        let named: BTreeSet<_> = flags.iter().map(|flag| flag.get_id().as_str()).collect();
        let expected: BTreeSet<_> =
            parameters.iter().map(|given| given["name"].as_str().unwrap()).collect();
        assert_eq!(named, expected, "{typed}");
        for parameter in parameters {
            let flag = flags.iter().find(|flag| parameter["name"] == flag.get_id().as_str());
            let flag = flag.unwrap();
            let long = format!("--{}", flag.get_long().unwrap());
            // If a command takes the principal as an argument, it has no flag for the principal.
            let named = flag_of(flag.get_id().as_str());
            let is_argument = ["actor_id", "subject_id"].contains(&flag.get_id().as_str());
            assert_eq!(named, if is_argument { "the principal" } else { &long }, "{typed}");
            let words = parameter["schema"]["enum"].as_array().into_iter().flatten();
            let words: Vec<_> = words.filter_map(Value::as_str).collect();
            if !words.is_empty() {
                let values = flag.get_possible_values();
                let values = values.iter().map(PossibleValue::get_name);
                // A flag with a default also has a value that means no filter.
                let values: Vec<_> = values.filter(|value| *value != ANY).collect();
                assert_eq!(values, words, "{typed} {long}");
            }
            for (bound, beyond) in [("minimum", -1), ("maximum", 1)] {
                if let Some(bound) = parameter["schema"][bound].as_i64() {
                    let parses = |value: i64| {
                        let id = if path.contains('{') { " id" } else { "" };
                        let typed = format!("x {typed} {long}={value}{id}");
                        Args::try_parse_from(typed.split(' ')).is_ok()
                    };
                    assert!(parses(bound) && !parses(bound + beyond), "{typed} {long} {bound}");
                }
            }
        }
    }
}

#[test]
fn each_table_shows_members_of_its_records() {
    let contract = contract();
    let resolve = |schema: &Value| match schema["$ref"].as_str() {
        Some(reference) => contract.pointer(reference.trim_start_matches('#')).unwrap().clone(),
        None => schema.clone(),
    };
    let on_surfaces = LISTS.into_iter().flat_map(|list| {
        Surface::ALL.map(|surface| (surface, surface.path(list.path), list.member, list.columns))
    });
    for (surface, path, member, columns) in on_surfaces {
        let operation = &contract["paths"][format!("/{}", path.join("/"))]["get"];
        // The owner can list everything; a tenant's people and API keys cannot.
        if operation.is_null() && surface != Surface::Owner {
            continue;
        }
        // API keys list only their own requests, with fewer fields.
        if surface == Surface::ApiKeys && columns == APPROVALS.columns {
            continue;
        }
        let response = &operation["responses"]["200"]["content"]["application/json"]["schema"];
        let record = resolve(&resolve(response)["properties"][member]["items"]);
        for column in columns {
            assert!(record["properties"][column].is_object(), "no `{column}` in {member}");
        }
    }
}

#[test]
fn an_id_is_not_a_path() {
    for id in ["", ".", ".."] {
        assert!(Args::try_parse_from(["x", "tenants", "show", id]).is_err(), "{id}");
        for operation in ["deliveries", "redrive", "test", "enable"] {
            assert!(Args::try_parse_from(["x", "webhooks", operation, id]).is_err(), "{id}");
        }
    }
}
