//! The frame of pages, failures, forms, and the names of the records' menu.

texts! {
    // The frame.
    PRODUCT = "Agent Authority"; SKIP = "Skip to the content"; SECTIONS = "Sections"; ABOUT_RECORDS = "About these records";
    SEARCH_BY = "Search by id, name, document, payee or amount"; ALL_RECORDS = "All records";
    ALL_TENANTS = "all tenants"; role_at(role, tenant) = "{role} at {tenant}"; CHOOSE_TENANT = "Choose a tenant";
    MESSAGES = "Messages about approvals"; SIGN_IN_AS_OTHER = "Sign in as somebody else"; SIGN_OUT = "Sign out";
    SIGN_IN = "Sign in"; GO_TO_FIELD = "Go to the field"; ZONE = "All times are UTC."; OWNER_ROLE = "owner of the installation";
    made_at(time) = html r#"Page made at <time datetime="{time}">{time}</time>."#;
    STOP = "Stop"; STOPS = "Stops";
    title(title) = "{title} · Agent Authority";

    // Failures.
    MAY_NOT = "You may not do this"; NOT_FOUND = "Not found"; NOT_NOW = "This cannot be done now"; TOO_MANY = "Too many requests";
    INVALID = "The request is not valid"; UNAVAILABLE = "Temporarily unavailable"; NOT_CONFIRMED = "Not confirmed";
    UNCONFIRMED = ". It may have been done. Go back and send the form again: it acts only once.";
    refused(person, role) = "you are {person}, {role}, and may not do this";
    refused_open(person, role, who) = "you are {person}, {role}, and may not do this. It is open to {who}";
    error_code(code) = html "Error code <code>{code}</code>."; FIRST_PAGE = "Go to the console's first page";
    UNKNOWN_ADDRESS = "This address has no page."; OPEN_CONSOLE = "Open the console"; TRY_AGAIN = "Try again";
    FOREIGN_FORM = "No change was made, because the form did not come from a page of your present session. Open the page again and send it from there.";
    SESSION_ENDED = "Your session has ended";
    FORM_AFTER_SESSION = "Your session has ended, and the form was not sent. Sign in and send it again. Your input is still on the page before this one.";
    UNREADABLE_FORM = "No change was made: the form could not be read, or is larger than 512 KiB.";
    SESSION_UNCHECKED = "Your session cannot be checked at the moment. It was not ended, but your request was not carried out. Try again in a few seconds.";
    TOKEN_NOT_TEXT = "the token is not text"; HEADER_NOT_TEXT = "a header's value is not text"; ADDRESS_NOT_TEXT = "the address is not text";
    ANSWER_CUT = "the answer is too large, or was cut off"; UNREADABLE_ANSWER = "the answer is not one gRPC message";
    NO_ANSWER = "the service did not answer";
    EXPORT_NOT_SERVED = "this connection does not serve the export: use an address or a client certificate of its surface";

    // Times.
    ago(span) = "{span} ago";
    within(span) = "in {span}";
    days(days) = "{days} days"; day_hours(hours) = "1 day {hours} h"; hours_minutes(hours, minutes) = "{hours} h {minutes} min";
    hours(hours) = "{hours} h"; minutes(minutes) = "{minutes} min"; minutes_seconds(minutes, seconds) = "{minutes} min {seconds} s";
    seconds(seconds) = "{seconds} s";
    at_most_ms(number) = "at most {number} ms"; at_most_s(number) = "at most {number} s"; OVER_TEN_S = "more than 10 s";

    // Values of forms.
    UNKNOWN_MEMBER = "is unknown"; MUST_BE_LIST = "must be a list"; MUST_BE_FLAG = "must be true or false"; MUST_BE_TEXT = "must be a text";
    MUST_BE_BASE64 = "must be base64"; MUST_BE_NUMBER = "must be a number"; NO_SUCH_VALUE = "is not one of the values";
    MUST_BE_TIME = "must be a date and a time in UTC, such as 2026-11-24T09:00:00Z"; MUST_BE_DAY = "must be a day, such as 2026-12-31";
    MUST_BE_OBJECT = "must be an object";
    not_json(error) = "is not JSON: {error}";

    // Operations of records.
    part_not_done(part, done) = "{part} not {done}";
    not_done(done) = "Not {done}";
    in_state(state) = "it is {state}"; in_final_state(state) = "it is {state}, which is final";
    NO_STANDING = "it has no standing approval";

    // The records' menu, and links of records to their own pages.
    DELEGATIONS_AND_KEYS = "Delegations and keys"; REGISTRY = "Registry"; GRANTS_LINKS_STOPS = "Grants, links and stops"; WEBHOOKS = "Webhooks";
    REALITY = "Reality"; STATES = "States"; PROGRAMME = "Consultant programme"; OTHER = "Other";
    SIGNING_KEYS = "Signing keys"; ABOUT_SIGNING_KEYS = "The installation's signing keys and their replacement.";
    ABOUT_API_KEYS = "Keys that programs call the service with; the secret of each is shown once.";
    STOP_PAGE = "Notified agents, and its release"; POLICY_PAGE = "Text, trial and activation"; AGENT_PAGE = "What it may do";
    DELEGATION_PAGE = "Its chain, and the delegations below it"; TOOL_PAGE = "Definition and pin"; WEBHOOK_PAGE = "Deliveries";
    TARGETS_WARNING = "An active policy without a target applies everywhere. With targets, it applies only where a target matches. A change here takes effect at once: an active policy no longer denies or holds requests that it does not cover. To see the effect first, use “Try other targets” on the policy's page.";
    POLICY_WARNING = "An active policy applies only from its effective from to its effective until. A change of these times takes effect at once: the policy denies and holds no requests outside them. To see the effect first, use “Try other targets, or without it” on the policy's page.";
}
