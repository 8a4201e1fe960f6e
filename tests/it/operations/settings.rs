//! The table of settings in `docs/reference/settings.md`, and the output of `config --print
//! --all`. The table is generated from the types of the settings.

use std::{collections::BTreeMap, env, fmt::Write, fs, os::unix::fs::PermissionsExt, path::Path};

use authority_config::{Config, Secret};
use serde_json::Value;

use crate::command_line::run;

const PAGE: &str = "docs/reference/settings.md";
const BEGIN: &str = "<!-- settings -->\n";
const END: &str = "<!-- end of settings -->";

/// A field of a settings struct.
struct Field {
    name: String,
    kind: String,
    about: String,
}

/// Returns the fields of each struct in the source file that defines the settings.
fn structs() -> BTreeMap<String, Vec<Field>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("crates/config/src/settings.rs");
    let text = fs::read_to_string(path).unwrap();
    let mut found = BTreeMap::new();
    let mut within: Option<(String, Vec<Field>)> = None;
    let mut about: Vec<&str> = Vec::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("pub struct ").and_then(|l| l.strip_suffix(" {")) {
            within = Some((name.to_owned(), Vec::new()));
        } else if line == "}" {
            found.extend(within.take());
        } else if let Some(text) = line.strip_prefix("    /// ") {
            about.push(text);
            continue;
        } else if let (Some((_, fields)), Some(rest)) = (&mut within, line.strip_prefix("    pub "))
        {
            let (name, kind) = rest.trim_end_matches(',').split_once(": ").unwrap();
            let about = about.join(" ");
            fields.push(Field { name: name.to_owned(), kind: kind.to_owned(), about });
        } else if line.trim_start().starts_with("#[") {
            continue;
        }
        about.clear();
    }
    found
}

fn shown(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::Array(items) if items.is_empty() => "none".to_owned(),
        Value::Object(members) if members.is_empty() => "none".to_owned(),
        Value::String(text) => format!("`{text}`"),
        other => format!("`{other}`"),
    }
}

/// Returns the table, with the settings in the order of the source file.
fn table() -> String {
    let structs = structs();
    let defaults = serde_json::to_value(Config::default()).unwrap();
    let mut table = "| Setting | Default | Meaning |\n|---|---|---|\n".to_owned();
    let mut row = |name: &str, default: &Value, about: &str| {
        assert!(!about.is_empty(), "`{name}` has no doc comment");
        writeln!(table, "| `{name}` | {} | {about} |", shown(default)).unwrap();
    };
    for field in &structs["Config"] {
        let default = &defaults[&field.name];
        match structs.get(&field.kind) {
            None => row(&field.name, default, &field.about),
            Some(fields) => {
                for inner in fields {
                    let name = format!("{}.{}", field.name, inner.name);
                    row(&name, &default[&inner.name], &inner.about);
                }
            }
        }
    }
    table
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a switch of the test run, not a setting")]
fn the_table_of_settings_is_that_of_their_types() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGE);
    let page = fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (listed, after) = rest.split_once(END).unwrap();
    let table = table();
    if env::var_os("AUTHORITY_UPDATE").is_some() {
        fs::write(&path, format!("{before}{BEGIN}{table}{END}{after}")).unwrap();
        return;
    }
    assert!(listed == table, "AUTHORITY_UPDATE=1 cargo test --test it settings\n{table}");
}

#[test]
fn all_settings_are_printed_as_a_file_that_can_be_read() {
    let (code, printed, told) =
        run(&["config", "--print", "--all"], &[("DATABASE_URL", "postgres://u:hush@db/x")]);
    assert_eq!(code, 0, "{told}");
    assert!(!printed.contains("hush"), "{printed}");
    let mut section = String::new();
    let mut names = Vec::new();
    for line in printed.lines() {
        if let Some(name) = line.strip_prefix('[') {
            section = format!("{}.", name.trim_end_matches(']'));
        } else if let Some(name) = line.trim_start_matches("# ").split(' ').next()
            && !name.is_empty()
        {
            names.push(format!("{section}{name}"));
        }
    }
    let table = table();
    let listed: Vec<_> = table.lines().filter_map(|line| line.split('`').nth(1)).collect();
    assert_eq!(names, listed);
    // The printed settings are a valid file, and a masked secret in it is not read as a value.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("authority.toml");
    fs::write(&file, printed).unwrap();
    let (code, again, told) =
        run(&["config", "--print", "--all", "--config", file.to_str().unwrap()], &[]);
    assert_eq!(code, 0, "{told}");
    assert_eq!(again, fs::read_to_string(&file).unwrap());
    assert_eq!(format!("{:?}", Secret::new("hush")), "***");
}

#[test]
fn the_check_refuses_what_serving_refuses_and_warns_of_secrets_that_all_may_read() {
    for name in ["JWKS_URL", "ISSUER"] {
        let mut settings = vec![("AGENT_AUTHORITY__IDENTITY__ISSUER", "https://id.example.org")];
        let setting = format!("AGENT_AUTHORITY__IDENTITY__{name}");
        settings.push((&setting, "http://id.example.org/jwks"));
        let (code, _, told) = run(&["config"], &settings);
        assert_eq!(code, 2, "{told}");
        let named = format!("`identity.{}`", name.to_lowercase());
        assert!(told.contains(&named) && told.contains("https only"), "{told}");
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("authority.toml");
    for (text, mode, warns) in [
        ("[database]\nurl = \"postgres://u:hush@db/x\"", 0o644, true),
        ("[database]\nurl = \"postgres://u:hush@db/x\"", 0o640, false),
        ("[limits]\nstreams = 7", 0o644, false),
    ] {
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        let (code, printed, told) = run(&["config", "--config", file.to_str().unwrap()], &[]);
        assert_eq!((code, printed.as_str()), (0, "sound\n"), "{told}");
        assert_eq!(told.contains("all users of this machine may read it"), warns, "{told}");
        assert!(!told.contains("hush"), "{told}");
    }
}
