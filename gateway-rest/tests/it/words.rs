//! Enums in JSON: their words.

use gateway_rest::{Shape, to_json};
use gateway_rest_tests::{library::Genre, tables};

#[track_caller]
fn shape() -> &'static Shape {
    tables::shape("library.v1.Everything").unwrap()
}

#[test]
fn enum_words_are_there() {
    assert_eq!(Genre::ScienceFiction as i32, 2);
    let json = to_json(shape(), &[0x58, 2]).unwrap();
    assert!(String::from_utf8(json).unwrap().contains(r#""genre":"science_fiction""#));
    let newer = to_json(shape(), &[0x58, 9]).unwrap();
    assert!(String::from_utf8(newer).unwrap().contains(r#""genre":9"#));
}
