//! Reads the elements `Cube` from the daily XML of the European Central Bank.

use std::error::Error;

use quick_xml::{
    NsReader, XmlVersion,
    escape::resolve_predefined_entity,
    events::{BytesRef, BytesStart, Event},
    name::{Namespace, NamespaceResolver, ResolveResult},
};

const NAMESPACE: Namespace<'_> = Namespace(b"http://www.ecb.int/vocabulary/2002-08-01/eurofxref");
/// The maximum depth of elements. The reference rates have four.
const DEEPEST: usize = 100;

/// The attributes of a `Cube`. An absent attribute is empty, except for the day.
#[derive(Default)]
pub(super) struct Cube {
    time: Option<String>,
    pub(super) currency: String,
    pub(super) rate: String,
}

/// A day, with the cubes directly in it.
pub(super) type Day = (String, Vec<Cube>);

/// Reads each day. Text that is not well-formed XML, and a document type, which could define
/// entities, are errors.
pub(super) fn cubes(text: &str) -> Result<Vec<Day>, Box<dyn Error>> {
    let mut reader = NsReader::from_str(text);
    // Every element has a start and an end.
    reader.config_mut().expand_empty_elements = true;
    reader.config_mut().check_comments = true;
    let mut days: Vec<Day> = Vec::new();
    // For each open element, the index of its day, if it is one.
    let mut open: Vec<Option<usize>> = Vec::new();
    let mut has_root = false;
    loop {
        match reader.read_event()? {
            Event::Start(_) if open.is_empty() && has_root => return Err("two roots".into()),
            Event::Start(_) if open.len() == DEEPEST => return Err("nested too deep".into()),
            Event::Start(tag) => {
                has_root = true;
                let mut day = None;
                if let Some(mut cube) = cube(&tag, reader.resolver())? {
                    if let Some(time) = cube.time.take() {
                        day = Some(days.len());
                        days.push((time, Vec::new()));
                    }
                    if let Some(Some(parent)) = open.last() {
                        days[*parent].1.push(cube);
                    }
                }
                open.push(day);
            }
            Event::End(_) => {
                open.pop();
            }
            Event::DocType(_) => return Err("a document type is not accepted".into()),
            Event::Eof if has_root && open.is_empty() => return Ok(days),
            Event::Eof => return Err("the document ends too early".into()),
            Event::Text(text) if open.is_empty() && !text.trim_ascii().is_empty() => {
                return Err("text outside of the root".into());
            }
            Event::CData(_) | Event::GeneralRef(_) if open.is_empty() => {
                return Err("text outside of the root".into());
            }
            Event::GeneralRef(reference) => check_reference(&reference)?,
            Event::Decl(_) if !text.starts_with("<?xml") || has_root => {
                return Err("the XML declaration is not at the beginning".into());
            }
            _ => {}
        }
    }
}

/// Reads an element and checks it; returns it if it is a `Cube`.
fn cube(
    tag: &BytesStart<'_>,
    namespaces: &NamespaceResolver,
) -> Result<Option<Cube>, Box<dyn Error>> {
    let (namespace, name) = namespaces.resolve_element(tag.name());
    if let ResolveResult::Unknown(_) = namespace {
        return Err("an element has an unknown namespace".into());
    }
    let mut cube = Cube::default();
    for attribute in tag.attributes() {
        let attribute = attribute?;
        if let (ResolveResult::Unknown(_), _) = namespaces.resolve_attribute(attribute.key) {
            return Err("an attribute has an unknown namespace".into());
        }
        if attribute.value.contains(&b'<') {
            return Err("an attribute contains `<`".into());
        }
        // Fails for entities other than those of XML itself.
        let value = attribute.normalized_value(XmlVersion::Implicit1_0)?.into_owned();
        match attribute.key.as_ref() {
            b"time" => cube.time = Some(value),
            b"currency" => cube.currency = value,
            b"rate" => cube.rate = value,
            _ => {}
        }
    }
    let is_cube = namespace == ResolveResult::Bound(NAMESPACE) && name.as_ref() == b"Cube";
    Ok(is_cube.then_some(cube))
}

/// Only characters and the entities of XML itself can be referred to.
fn check_reference(reference: &BytesRef<'_>) -> Result<(), Box<dyn Error>> {
    let is_known = reference.resolve_char_ref()?.is_some()
        || resolve_predefined_entity(&reference.decode()?).is_some();
    if is_known { Ok(()) } else { Err("an unknown entity".into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: &str = "<a xmlns=\"http://www.ecb.int/vocabulary/2002-08-01/eurofxref\">";

    #[test]
    fn only_cubes_of_the_namespace_directly_in_a_day_are_read() {
        let text = format!(
            "<?xml version=\"1.0\"?><!-- &b; -->{START}&amp;&#65;<Cube currency=\"A\"/>\
             <Cube time=\"1\"><Cube currency=\"&#66;\" rate='&lt;'/><b><Cube currency=\"C\"/></b>\
             <Cube xmlns=\"other\" currency=\"D\"/><x:Cube xmlns:x=\"\
             http://www.ecb.int/vocabulary/2002-08-01/eurofxref\" x:rate=\"3\" currency=\"E\"/>\
             </Cube></a>\n"
        );
        let days = cubes(&text).unwrap();
        assert_eq!(days.len(), 1);
        let found: Vec<_> = days[0].1.iter().map(|cube| [&*cube.currency, &*cube.rate]).collect();
        assert_eq!((days[0].0.as_str(), found), ("1", vec![["B", "<"], ["E", ""]]));
    }

    #[test]
    fn what_is_not_well_formed_is_refused() {
        assert!(cubes(&format!("{START}</a>")).is_ok());
        for text in [
            "",
            "a",
            "<a>",
            "<a></b>",
            "<a/></a>",
            "<a/><a/>",
            "<a/>b",
            "&amp;<a/>",
            "<a/><![CDATA[b]]>",
            "<a",
            "<a><b</a>",
            "<a b=1/>",
            "<a b/>",
            "<a b=\"1\" b=\"2\"/>",
            "<a b=\"<\"/>",
            "<a b=\"&c;\"/>",
            "<a>&b;</a>",
            "<a>&b</a>",
            "<b:a/>",
            "<a b:c=\"1\"/>",
            "<a><!-- -- --></a>",
            "<a><!-- </a>",
            "<a/><?xml version=\"1.0\"?>",
            "<!DOCTYPE a><a/>",
            "<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>",
            &"<a>".repeat(100_000),
        ] {
            assert!(cubes(text).is_err(), "{}", &text[..text.len().min(50)]);
        }
    }
}
