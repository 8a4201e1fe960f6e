//! The Helm chart, Compose and the unit of systemd use only settings that exist, and stop nodes no
//! earlier than the documentation permits. `script/check` renders the chart where Helm is installed.

use std::{collections::BTreeSet, fs, path::Path};

use regex::Regex;
use serde_json::Value;

const CHART: &str = "deploy/helm/agent-authority";
const COMPOSE: &str = "deploy/compose/compose.yaml";
const PAGE: &str = "docs/operations/kubernetes.md";

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// Returns the files below a folder, with their texts.
fn texts(folder: &str) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)).unwrap() {
        let entry = entry.unwrap();
        let path = format!("{folder}/{}", entry.file_name().to_str().unwrap());
        if entry.file_type().unwrap().is_dir() {
            found.extend(texts(&path));
        } else {
            found.push((path.clone(), read(&path)));
        }
    }
    found
}

/// The names in the documentation's table of settings.
fn settings() -> BTreeSet<String> {
    let page = read("docs/reference/settings.md");
    let names = page.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    names.map(str::to_owned).collect()
}

/// The YAML documents in the code blocks of the page.
fn examples() -> Vec<Value> {
    let page = read(PAGE);
    let blocks = page.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    blocks.map(|block| serde_yaml_ng::from_str(block).unwrap()).collect()
}

fn seconds(value: &Value) -> u64 {
    value.as_str().unwrap().strip_suffix('s').unwrap().parse().unwrap()
}

#[test]
fn each_variable_of_an_environment_is_a_setting() {
    let known = settings();
    let variable = Regex::new(r"\bAGENT_AUTHORITY__([A-Z0-9_]+)\b").unwrap();
    let mut files = texts("deploy");
    files.extend(texts("docs/operations"));
    let mut checked = BTreeSet::new();
    for (path, text) in &files {
        for found in variable.captures_iter(text) {
            let name = found[1].to_lowercase().replace("__", ".");
            assert!(known.contains(&name), "{path}: {} is not a setting", &found[0]);
            checked.insert(name);
        }
    }
    for used in ["database.owner_url", "environment", "keys.ring", "listen.ops"] {
        assert!(checked.contains(used), "{used} was not found: {checked:?}");
    }
}

#[test]
fn each_setting_in_the_values_of_the_chart_exists() {
    let known = settings();
    let mut all = examples();
    for (path, text) in texts(CHART) {
        if path.ends_with("values.yaml") {
            all.push(serde_yaml_ng::from_str(&text).unwrap());
        }
    }
    let mut checked = 0;
    for values in &all {
        for part in ["settings", "secrets"] {
            for name in values[part].as_object().into_iter().flat_map(|part| part.keys()) {
                // The settings of a further issuer have its name.
                let section = "console.issuers";
                let is_issuers = name
                    .strip_prefix(section)
                    .is_some_and(|rest| rest.starts_with('.') && rest.ends_with(".client_secret"));
                let listed = if is_issuers { section } else { name };
                assert!(known.contains(listed), "`{name}` is not a setting: {values:#}");
                checked += 1;
            }
        }
    }
    assert!(checked > 20, "{checked}");
}

/// The chart's own checks of names refuse secrets among the settings, and know no other names.
#[test]
fn the_schema_of_the_values_names_settings_that_exist() {
    let known = settings();
    let schema: Value =
        serde_json::from_str(&read(&format!("{CHART}/values.schema.json"))).unwrap();
    let settings = &schema["properties"]["settings"];
    let secrets = &schema["properties"]["secrets"];
    let lists = [
        &settings["required"],
        &settings["propertyNames"]["not"]["enum"],
        &schema["anyOf"][0]["properties"]["secrets"]["required"],
        &schema["anyOf"][1]["properties"]["settings"]["required"],
        &secrets["propertyNames"]["not"]["enum"],
    ];
    let listed = lists.into_iter().flat_map(|list| list.as_array().unwrap());
    let mut names: BTreeSet<_> = listed.map(|name| name.as_str().unwrap().to_owned()).collect();
    names.extend(settings["properties"].as_object().unwrap().keys().cloned());
    assert!(names.is_subset(&known), "{names:?}");
    let values: Value = serde_yaml_ng::from_str(&read(&format!("{CHART}/values.yaml"))).unwrap();
    assert_eq!(values["settings"]["environment"], "production");
    // Each value has a rule in the schema, which refuses unknown values.
    let described = schema["properties"].as_object().unwrap();
    for name in values.as_object().unwrap().keys() {
        assert!(described.contains_key(name), "`{name}` is not in values.schema.json");
    }
}

/// The documentation requires the sum of both times and 5 s.
#[test]
fn a_node_has_the_time_to_stop() {
    let values: Value = serde_yaml_ng::from_str(&read(&format!("{CHART}/values.yaml"))).unwrap();
    let stop = |name: &str| values["settings"][name].as_u64().unwrap();
    let needed = stop("limits.lame_duck_seconds") + stop("limits.drain_seconds") + 5;
    let nodes = read(&format!("{CHART}/templates/nodes.yaml"));
    let line = Regex::new(r"terminationGracePeriodSeconds: \{\{ add (.*) (\d+) \}\}").unwrap();
    let found = line.captures(&nodes).unwrap();
    for name in ["limits.lame_duck_seconds", "limits.drain_seconds"] {
        assert!(found[1].contains(&format!("(index $settings \"{name}\")")), "{}", &found[0]);
    }
    assert!(found[2].parse::<u64>().unwrap() >= 5, "{}", &found[0]);

    // Compose leaves both times at their defaults in production: 5 and 10 s.
    let compose = compose();
    for node in ["node1", "node2"] {
        assert!(seconds(&compose["services"][node]["stop_grace_period"]) >= needed, "{node}");
    }
}

fn compose() -> Value {
    let mut file: serde_yaml_ng::Value = serde_yaml_ng::from_str(&read(COMPOSE)).unwrap();
    file.apply_merge().unwrap();
    serde_json::to_value(file).unwrap()
}

/// A restart of the proxy must not end the network of the nodes.
#[test]
fn the_proxy_and_the_nodes_of_compose_are_in_the_network_of_another_container() {
    let compose = compose();
    let services = &compose["services"];
    for name in ["proxy", "node1", "node2"] {
        assert_eq!(services[name]["network_mode"], "service:net", "{name}");
    }
    assert_eq!(services["net"]["ports"], serde_json::json!(["443:443"]));
}

#[test]
fn the_nodes_of_compose_have_no_rights_and_serve_in_production_mode() {
    let compose = compose();
    for name in ["migrate", "node1", "node2"] {
        let service = &compose["services"][name];
        assert_eq!(service["user"], "65532:65532", "{name}");
        assert_eq!(service["read_only"], true, "{name}");
        assert_eq!(service["cap_drop"], serde_json::json!(["ALL"]), "{name}");
        assert_eq!(
            service["security_opt"],
            serde_json::json!(["no-new-privileges:true"]),
            "{name}"
        );
        assert_eq!(service["environment"]["AGENT_AUTHORITY__ENVIRONMENT"], "production", "{name}");
        let has_owner = !service["environment"]["AGENT_AUTHORITY__DATABASE__OWNER_URL"].is_null();
        assert_eq!(has_owner, name == "migrate", "{name}");
    }
    // The proxy's configuration has the addresses of the nodes.
    let proxy = read("deploy/haproxy/haproxy.cfg");
    for node in ["node1", "node2"] {
        let address = &compose["services"][node]["environment"]["AGENT_AUTHORITY__LISTEN__MAIN"];
        let server = format!("server {node} {}", address.as_str().unwrap());
        assert_eq!(proxy.matches(&server).count(), 2, "{server}");
    }
}
