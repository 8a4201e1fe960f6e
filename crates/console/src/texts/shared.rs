//! Texts that several journeys show.

texts! {
    // Headings, columns and labels.
    ACTION = "Action"; AGENT = "Agent"; AGENTS = "Agents"; AMOUNT = "Amount"; APPROVALS = "Approvals"; ASKED = "Asked";
    AUTHORITY = "Authority"; DECISIONS = "Decisions"; ENDS = "Ends"; EXPIRES = "Expires"; LOG = "Log";
    MEMBER = "Member"; NOW = "Now"; OVERVIEW = "Overview"; POLICIES = "Policies"; POLICY = "Policy"; PURPOSE = "Purpose"; REASON = "Reason"; RECORDS = "Records"; REQUEST = "Request"; STATE = "State"; TOOL = "Tool"; TOTAL = "Total";
    VALUE = "Value";
    action_named(action) = "Action: {action}";
    agent_named(agent) = "Agent: {agent}";
    tenant_named(slug) = "tenant {slug}";
    BUDGETS = "Budgets"; CREATED = "Created"; CURRENCY = "Currency"; DESCRIPTION = "Description";
    MORE = "More"; NAME = "Name"; SUSPENDED = "Suspended"; TENANT = "Tenant";

    // Buttons and links.
    APPROVE = "Approve"; APPROVE_STEP = "Approve…"; BACK = "Back"; BACK_TO_LIST = "Back to the list";
    CLEAR = "Clear"; DECLINE = "Decline"; DECLINE_STEP = "Decline…"; OPEN = "Open"; SEARCH = "Search"; SHOW = "Show"; SHOW_ALL = "Show all"; SIGN_IN_AGAIN = "Sign in again";
    WITHDRAW = "Withdraw"; WITHDRAW_STEP = "Withdraw…";
    CONTINUE = "Continue"; OPTIONAL = "(optional)"; REQUIRED = "(required)";
    type_to_confirm(name) = html "Type <strong>{name}</strong> to confirm";

    // Lists, their filters and pages.
    ACTIVE_FILTERS = "Active filters"; ALL = "All"; COMMON_FILTERS = "Common filters"; FILTER = "Filter";
    FIRST_PAGE = "First page"; NEXT_PAGE = "Next page"; NO_MATCHES = "No matches";
    REMOVE_FILTER = "Remove the filter";
    ID_EXAMPLE = "such as svc:decision:…"; ID_TO_OPEN = "Decision, evidence or approval"; OPEN_BY_ID = "Open by id";
    and_more(count) = "And {count} more.";
    APPEARS_LATER = "When there is one, it appears here."; END_OF_LIST = "That is all";
    back_to_first(path) = html r#"<a href="{path}">Back to the first page</a>."#;
    requests(count) = "{count} request" | "{count} requests";
    show_all(count) = "show all {count} characters";

    // Times.
    TIME_IS_OVER = "time is over";
    asked(distance) = "asked {distance}";
    ends(distance) = "ends {distance}";
    until(time) = html "until {time}";

    // Failed acts.
    HAS_CHANGED = "This has changed"; NO_SUCH_PAGE = "this page does not exist"; NOT_DONE = "No change was made";
    because(reason) = "Reason: {reason}.";
    not_done_because(reason) = "No change was made. Reason: {reason}.";
    type_exactly(name) = "Type {name} exactly, to confirm.";
    NOT_CREATED = "Not created"; NOT_SAVED = "Not saved";
    READ_FAILED = "This could not be read now. Reload the page.";

    // Requests, and the fields that their tools declare.
    wants(agent, action, amount, resource, purpose) = html "<strong>{agent}</strong> wants to do <code>{action}</code>{amount}{resource}{purpose}.";
    for_amount(amount) = html r#" for <strong class="num">{amount}</strong>"#;
    on_resource(resource) = html r#" on <code class="id">{resource}</code>"#;
    with_purpose(purpose) = html ", with the purpose <strong>{purpose}</strong>";
    AGENTS_WORDS = "The agent's words"; ALSO_SELECTED = "also selected";
    REQUESTERS_WORDS = "The requester's own words, not verified";
    fields_not_shown(count) = "{count} more field is only in the full request." | "{count} more fields are only in the full request.";
    mixed_letters(letters) = "letters of several scripts: {letters}";
    more_fields(count) = "and {count} more field" | "and {count} more fields";

    // Authority and budgets.
    BUDGETS_UNREAD = "The budgets could not be read now. Reload the page."; ITS_BOUNDS = "Its bounds";
    authority_of(kind, actions) = html "{kind} of <code>{actions}</code>";
    bound_above(path, id) = html r#"Bound of <a class="id" href="/console/delegations/{path}">{id}</a> above it."#;
    lets_act(from, to) = html "<strong>{from}</strong> lets <strong>{to}</strong> act";
    lets_do(from_id, from, to_id, to, actions) = html r#"<strong title="{from_id}">{from}</strong> lets <strong title="{to_id}">{to}</strong> do <code>{actions}</code>"#;
    resets(distance, time) = html "Resets {distance}, at {time}.";
    up_to(limit) = "up to {limit}";

    // Names.
    strong(name) = html "<strong>{name}</strong>";
    held_by(policies) = "Held by {policies}"; denied_by(policies) = "Denied by {policies}";
    policy_advice(name, advice) = "“{name}”: {advice}";
    policy_name(name) = "“{name}”";
    code(name) = html "<code>{name}</code>";
    hidden_characters(codes) = "It has characters that cannot be seen: {codes}. They stay unless you change them.";
}
