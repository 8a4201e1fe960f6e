//! Which policies are refused, and with which message.

use serde_json::{Value, json};

use crate::retry::{RetryPolicy, Schedule};

fn read(policy: Value) -> Result<Schedule, String> {
    let policy: RetryPolicy = serde_json::from_value(policy).map_err(|why| why.to_string())?;
    Schedule::try_from(&policy).map_err(|why| format!("{} {why}", why.member()))
}

fn exponential(change: &Value) -> Value {
    let mut policy = json!({"strategy": "exponential", "base_seconds": 10, "factor": 2.0,
        "max_delay_seconds": 3600, "max_attempts": 8});
    policy.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
    policy
}

#[test]
fn what_is_left_out_is_the_default() {
    assert_eq!(read(json!({})), Ok(Schedule::default()));
    assert_eq!(read(json!({"strategy": "schedule", "jitter": 0.2})), Ok(Schedule::default()));
    assert_eq!(Schedule::default().attempts(), 10);
}

#[test]
fn both_forms_end_at_twenty_attempts_and_seven_days() {
    let attempts = |policy| read(policy).unwrap().attempts();
    // Protobuf does not distinguish an empty list from an absent one.
    assert_eq!(attempts(json!({"schedule_seconds": []})), 10);
    assert_eq!(attempts(json!({"schedule_seconds": [1]})), 2);
    assert_eq!(attempts(json!({"schedule_seconds": vec![1; 19]})), 20);
    assert_eq!(attempts(json!({"schedule_seconds": [604_800], "jitter": 0})), 2);
    assert_eq!(attempts(json!({"schedule_seconds": [504_000]})), 2);
    assert_eq!(attempts(exponential(&json!({"max_attempts": 20}))), 20);
    assert_eq!(attempts(exponential(&json!({"max_attempts": 1}))), 1);
}

#[test]
fn a_refusal_names_member_and_remedy() {
    let refused = [
        (json!({"schedule_seconds": vec![1; 20]}), "schedule_seconds has 20 delays; 19 at most"),
        (json!({"schedule_seconds": [5, 0]}), "schedule_seconds must be at least 1 second each"),
        (json!({"schedule_seconds": [604_801], "jitter": 0}), "schedule_seconds lets a delivery"),
        (json!({"schedule_seconds": [504_001]}), "up to 604801 seconds with jitter"),
        (json!({"jitter": -0.1}), "jitter must be from 0 to 1"),
        (json!({"jitter": 1.01}), "jitter must be from 0 to 1"),
        (json!({"max_attempts": 3}), "max_attempts belongs to strategy exponential"),
        (exponential(&json!({"schedule_seconds": [5]})), "schedule_seconds belongs to strategy"),
        (exponential(&json!({"base_seconds": null})), "base_seconds is required"),
        (exponential(&json!({"factor": null})), "factor is required"),
        (exponential(&json!({"max_delay_seconds": null})), "max_delay_seconds is required"),
        (exponential(&json!({"max_attempts": null})), "max_attempts is required"),
        (exponential(&json!({"base_seconds": 0})), "base_seconds must be at least 1"),
        (exponential(&json!({"factor": 0.9})), "factor must be from 1 to 10"),
        (exponential(&json!({"factor": 10.5})), "factor must be from 1 to 10"),
        (exponential(&json!({"max_delay_seconds": 9})), "max_delay_seconds must be at least"),
        (exponential(&json!({"max_attempts": 0})), "max_attempts must be from 1 to 20"),
        (exponential(&json!({"max_attempts": 21})), "max_attempts must be from 1 to 20"),
        (
            exponential(&json!({"max_attempts": 20, "max_delay_seconds": 86_400})),
            "max_attempts lets a delivery take up to",
        ),
        (json!({"schedule": [5]}), "unknown field `schedule`"),
        (json!({"strategy": "linear"}), "unknown variant `linear`"),
    ];
    for (policy, expected) in refused {
        let message = read(policy.clone()).expect_err(expected);
        assert!(message.contains(expected), "{policy}: {message}");
    }
}
