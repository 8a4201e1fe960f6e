//! The texts of the console's script.

use std::sync::LazyLock;

use serde_json::json;

use super::{
    TIME_IS_OVER, ends,
    inbox::KEYS_OFF,
    kit::{day_hours, days, hours, hours_minutes, minutes, minutes_seconds, seconds, within},
};

texts! {
    KEYS_ON = "Turn keys on";
    CANNOT_DECIDE = "The time for this request is over: it can no longer be decided.";
    local_times(zone) = "Times are in the zone {zone}. Point at a time to see it in UTC.";
    COPY = "Copy"; COPIED = "Copied"; COPY_BY_HAND = "Select it, and copy it by hand";
    SESSION_ENDED = "Your session has ended. What you typed is still here: sign in in another tab, then send it.";
    SESSION_ENDS = "Your session ends in two minutes."; STAY = "Stay signed in";
    not_up_to_date(time) = "This page is not up to date: the service has not answered since {time}.";
    now_in_state(state) = "This has changed: {state}";
    RELOAD = "This has changed. Reload the page to see it.";
}

/// The texts by name, as JSON. Each part is its name in braces.
static TEXTS: LazyLock<String> = LazyLock::new(|| {
    json!({
        "days": days("{days}"),
        "dayHours": day_hours("{hours}"),
        "hoursMinutes": hours_minutes("{hours}", "{minutes}"),
        "hours": hours("{hours}"),
        "minutes": minutes("{minutes}"),
        "minutesSeconds": minutes_seconds("{minutes}", "{seconds}"),
        "seconds": seconds("{seconds}"),
        "ends": ends(within("{span}")),
        "over": TIME_IS_OVER,
        "cannotDecide": CANNOT_DECIDE,
        "localTimes": local_times("{zone}"),
        "copy": COPY,
        "copied": COPIED,
        "copyByHand": COPY_BY_HAND,
        "sessionEnded": SESSION_ENDED,
        "sessionEnds": SESSION_ENDS,
        "stay": STAY,
        "notUpToDate": not_up_to_date("{time}"),
        "nowInState": now_in_state("{state}"),
        "reload": RELOAD,
        "keysOn": KEYS_ON,
        "keysOff": KEYS_OFF,
    })
    .to_string()
});

/// The texts for `data-texts`, which the script reads.
pub(crate) fn all() -> &'static str {
    &TEXTS
}
