//! The first page and the search.

texts! {
    // Numbers.
    WAITING_FOR_YOU = "Waiting for you"; WAITING = "Waiting for approval"; UNKNOWN = "unknown";
    oldest(distance) = "oldest asked {distance}";
    FAILING_ENDPOINTS = "Failing webhook endpoints"; FAILING_CHANNELS = "Failing channels for messages";
    ENDING_KEYS = "API keys that expire within 14 days"; ENDING_DELEGATIONS = "Delegations that expire within 14 days";
    NO_LISTS = "No lists for your role"; READS_BY_ID = "Your role reads decisions by their ids.";

    // Usage.
    LAST_DAY = "Decisions in the last 24 hours"; LAST_MONTH = "Decisions in the last 30 days";
    NONE_COUNTED = "No decision was counted. A decision is counted about two minutes after it is made.";
    DENIAL_REASONS = "Reasons for denials"; DENIED_MOST = "Agents denied most"; NOW = "now"; AS_TABLE = "The chart as a table"; FROM_UTC = "From, UTC";
    UNREAD = "The counts of decisions could not be read now. Reload the page.";
    counted_until(exact, shown, distance) = html r#"Decisions are counted until <time datetime="{exact}">{shown}</time>, {distance}."#;

    // Latency.
    LATENCY = "Time of decisions on this node"; NONE_MEASURED = "No decision was measured since the node started.";
    latency(half, most) = "Half of the calls took {half}, and 99 % took {most}.";
    calls(count) = "{count} call of all tenants since the node started." | "{count} calls of all tenants since the node started.";

    // The search.
    SOUGHT = "Id, name, document, payee or amount"; NO_RESULTS = "No results"; NEWEST_ONLY = "Only the newest 20 are shown.";
    search_of(text) = "“{text}”: search";
    HOW_TO_SEARCH = html "Type an id, the name of an agent or record, or the exact payee, account, document, recipient, target or amount of a request: <code>RE-2026-118</code>, <code>12,400.00 EUR</code>, <code>payee:Müller AG</code>.";
    WHOLE_FACTS = "Facts of requests are found by their whole value, and only for tools that declare them.";
    ONE_TENANT = "Facts of requests are searched in one tenant.";
    found_until(exact, shown) = html r#"Decisions until <time datetime="{exact}">{shown}</time> are found by their facts."#;
    APPROVAL_REQUESTS = "Approval requests"; AGENTS_AND_PEOPLE = "Agents and people"; OTHER_RECORDS = "Other records";
}
