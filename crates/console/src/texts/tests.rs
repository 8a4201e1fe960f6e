//! The catalogue is whole: templates, code and the script have no texts of their own.

use std::{fs, path::Path};

use super::script;

texts! {
    hello(name) = html "<b>{name}</b>";
    sent(count, name) = "{count} message to {name}" | "{count} messages to {name}";
    linked(count, link) = html "<i>{count}</i> of {link}" | "<i>{count}</i> of all {link}";
}

/// Literals that are not texts for people.
const NO_TEXTS: [&str; 6] =
    ["Basic {}", "Bearer {token}", "Escape", "note warn", "note warn ending", "use strict"];
/// Attributes that people read.
const READ: [&str; 5] = ["alt", "aria-label", "data-head", "placeholder", "title"];

#[test]
fn parts_are_escaped_unless_they_are_markup_and_counts_choose_a_form() {
    assert_eq!(sent(1, "<a>"), "1 message to <a>");
    assert_eq!(sent(0, "b"), "0 messages to b");
    assert_eq!(hello("<&>\u{202e}").0, "<b>&lt;&amp;&gt;⟨U+202E⟩</b>");
    assert_eq!(linked(1_i32, hello("a")).0, "<i>1</i> of <b>a</b>");
    assert_eq!(linked(21_usize, None::<&str>).0, "<i>21</i> of all ");
}

#[test]
fn templates_have_no_texts_of_their_own() {
    for (template, expected) in [
        ("<p title=\"Two\">{{ t::A }}{# no #}{% if a %}then{% endif %}</p>", &["then", "Two"][..]),
        ("<th class=\"num\">{{ t::b(x|escape(\"value\"), \", \") }}</th>: …", &[][..]),
        ("{% call head(\"All of them\", \"All\", \"all\") %}", &["All of them", "All"][..]),
    ] {
        assert_eq!(of_template(template), expected, "{template}");
    }
    each(Path::new("templates"), "html", &mut |path, text| {
        let own = of_template(text);
        assert!(own.is_empty(), "{path:?}: {own:?}");
    });
}

#[test]
fn code_has_no_texts_of_its_own() {
    assert_eq!(of_code("a(\"Not found\", \"not found\", '\"')"), ["Not found"]);
    assert!(of_code("/// \"Not found\"\nq(\"SELECT 1\")").is_empty());
    each(Path::new(""), "rs", &mut |path, text| {
        if path.starts_with("texts") {
            return;
        }
        let mut own = of_code(text.split("#[cfg(test)]").next().unwrap());
        own.retain(|literal| !NO_TEXTS.contains(&literal.as_str()));
        assert!(own.is_empty(), "{path:?}: {own:?}");
    });
}

#[test]
fn the_script_has_no_texts_of_its_own() {
    let script = "// \"Not this\"\nsay(`ends in ${left(a)}`, \"Copy\", \".top details\", `${b} `);";
    assert_eq!(of_script(script), ["Copy", "ends in "]);
    each(Path::new(""), "js", &mut |path, text| {
        let mut own = of_script(text);
        own.retain(|literal| !NO_TEXTS.contains(&literal.as_str()));
        assert!(own.is_empty(), "{path:?}: {own:?}");
    });
}

/// Every text that the script names is in the catalogue.
#[test]
fn the_script_has_its_texts() {
    let texts: serde_json::Value = serde_json::from_str(script::all()).unwrap();
    each(Path::new(""), "js", &mut |path, text| {
        for rest in text.split("texts.").skip(1) {
            let name = rest.split(|c: char| !c.is_alphanumeric()).next().unwrap();
            assert!(texts[name].is_string(), "{path:?}: {name}");
        }
    });
}

/// Visits the files with an extension below a folder of the crate's sources.
fn each(folder: &Path, extension: &str, visit: &mut dyn FnMut(&Path, &str)) {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    for entry in fs::read_dir(sources.join(folder)).unwrap() {
        let path = folder.join(entry.unwrap().file_name());
        if sources.join(&path).is_dir() {
            each(&path, extension, visit);
        } else if path.extension().is_some_and(|own| own == extension) {
            visit(&path, &fs::read_to_string(sources.join(&path)).unwrap());
        }
    }
}

/// Returns the texts of a template: outside tags and expressions, in attributes, and in literals.
fn of_template(template: &str) -> Vec<String> {
    let (mut texts, mut literals) = (Vec::new(), Vec::new());
    let (mut markup, mut rest) = (String::new(), template);
    while let Some(start) = ["{{", "{%", "{#"].iter().filter_map(|open| rest.find(open)).min() {
        let end = ["}}", "%}", "#}"].iter().filter_map(|close| rest[start..].find(close)).min();
        let end = start + end.unwrap();
        literals.extend(rest[start..end].split('"').skip(1).step_by(2).map(str::to_owned));
        markup.push_str(&rest[..start]);
        rest = &rest[end + 2..];
    }
    markup.push_str(rest);
    let has_letters = |text: &&str| text.contains(char::is_alphabetic);
    for part in markup.split('<') {
        let (tag, text) = part.split_once('>').unwrap_or(("", part));
        // A macro can be a list of attributes.
        let text = Some(text.trim()).filter(|text| has_letters(text) && !text.contains("=\""));
        texts.extend(text.map(str::to_owned));
        for name in READ {
            let value = tag.split(&format!(" {name}=\"")).nth(1).and_then(|v| v.split('"').next());
            texts.extend(value.filter(has_letters).map(str::to_owned));
        }
    }
    literals.retain(|literal| {
        literal.starts_with(char::is_uppercase)
            || literal.contains(' ') && has_letters(&literal.as_str())
    });
    texts.extend(literals);
    texts
}

/// Returns the literals of code that begin like a sentence.
fn of_code(code: &str) -> Vec<String> {
    let mut texts = Vec::new();
    for line in code.lines().filter(|line| !line.trim_start().starts_with("//")) {
        let line = line.replace("\\\"", "").replace("'\"'", "");
        let literals = line.split('"').skip(1).step_by(2);
        let is_text = |text: &&str| {
            let mut letters = text.chars();
            letters.next().is_some_and(char::is_uppercase)
                && letters.next().is_some_and(char::is_lowercase)
                && text.contains(' ')
        };
        texts.extend(literals.filter(is_text).map(str::to_owned));
    }
    texts
}

/// Returns the literals of a script that begin like a sentence, or are several words.
fn of_script(script: &str) -> Vec<String> {
    let lines = script.lines().filter(|line| !line.trim_start().starts_with("//"));
    let code = lines.collect::<Vec<_>>().join("\n");
    let quoted = code.split('"').skip(1).step_by(2);
    let templates = code.split('`').skip(1).step_by(2);
    let parts = templates.flat_map(|template| {
        let parts = template.split("${").enumerate();
        parts.map(|(at, part)| if at == 0 { part } else { part.split_once('}').unwrap().1 })
    });
    let is_text = |text: &&str| {
        let mut letters = text.chars();
        let mut words = text.split_whitespace();
        let is_word =
            |word: &str| word.trim_end_matches([',', '.', ':']).chars().all(char::is_alphabetic);
        letters.next().is_some_and(char::is_uppercase)
            && letters.next().is_some_and(char::is_lowercase)
            || text.split_whitespace().count() > 1 && words.all(is_word)
    };
    quoted.chain(parts).filter(is_text).map(str::to_owned).collect()
}
