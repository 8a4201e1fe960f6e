//! Checks the JSON of events: the proto's names, with null for an absent field.

use authority_model::proto::event::{authority, decision};
use serde_json::{from_value, json, to_value};

#[test]
fn data_are_written_by_the_names_of_the_proto() {
    let suspended = authority::Suspended {
        delegation_id: "svc:del:acme:1".to_owned(),
        root_id: "svc:del:acme:0".to_owned(),
        delegate_id: "svc:agent:acme:bot".to_owned(),
        below: 2,
    };
    let written = json!({"delegation_id": "svc:del:acme:1", "root_id": "svc:del:acme:0",
        "delegate_id": "svc:agent:acme:bot", "below": 2});
    assert_eq!(to_value(&suspended).unwrap(), written);
    assert_eq!(from_value::<authority::Suspended>(written).unwrap(), suspended);

    let denied = decision::Denied { stage: "rules".to_owned(), ..decision::Denied::default() };
    let written =
        json!({"decision_id": "", "stage": "rules", "delegation_id": null, "tool_id": null});
    assert_eq!(to_value(&denied).unwrap(), written);
}
