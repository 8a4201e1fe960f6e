//! Records of every kind: their lists, their pages with the history, and their forms.

texts! {
    // The kinds of records.
    LEAD = "Everything that decisions are made from.";
    lead_some(listed, all) = "The records that decisions are made from, as far as your role may read them: {listed} of {all} kinds.";
    MADE_BY_OTHERS = "Made by others"; NONE_FOR_ROLE = "No records for your role"; made_by(kinds, people) = "{kinds}: made by {people}.";
    MAY_NOT_LIST = "Your role may not list records. The tenant's administrator at the identity provider can give you another role.";

    // The records of a kind.
    ID = "ID"; WHICH_ONES = "Which ones?"; NONE_YET = "None yet"; MAKE_FIRST = "Make the first one with the button above.";
    fill_in(problem) = "Fill in a field above, and choose Show: {problem}.";
    none_matches(path) = html r#"No record has these values. <a href="{path}">Show all</a>."#;

    // A record.
    not_possible(operations) = "Not possible now: {operations}."; barred(operation, reason) = "{operation}, as {reason}"; VALUES = "Values";
    NO_VALUES = "There are only system fields."; SYSTEM_FIELDS = "System fields"; MEANINGS = "The meaning of each field";
    without_value(count) = "{count} without a value"; AS_JSON = "All of it as JSON"; HISTORY = "History";
    HISTORY_UNREAD = "The history could not be read now. Reload the page."; NO_CHANGE = "No change is on record.";
    EARLIER_VALUE = "an earlier value"; NO_VALUE = "no value"; BECAME = "became"; AS_IT_WAS = "The record as it was"; NEWEST = "Newest";
    OLDER = "Older versions"; DELETED_BY = "deleted by"; WRITTEN_BY = "written by"; CHANGED_BY = "changed by"; YES = "yes"; NO = "no";
    ZERO = "0"; IS_NOT_SET = "not set"; is_default(default) = "not set; the default is {default}";
    is_not_set(meaning) = "not set: {meaning}";

    // A value that is shown once.
    copy_now(count) = html "<strong>Copy it now.</strong> It is not shown again." | "<strong>Copy them now.</strong> They are not shown again.";
    SHOWN_ONCE = "Shown once"; TO_RECORD = "To the record";

    // Fields.
    IS_REQUIRED = "is required"; TWICE = "is in the form more than once"; now_has(value) = "the record now has {value}";
    record_has(value) = "The record now has: {value}"; CHOOSE = "Choose…"; NOT_SET = "Not set"; not_set(meaning) = "Not set: {meaning}";
    ONE_A_LINE = "One in each line."; IN_JSON = "As JSON."; IN_UTC = "UTC, as 2026-11-24T09:00:00Z."; EXAMPLE = "Example:";
    EACH_ON_A_LINE = "One in each line"; OTHERS = "Others, one in each line"; TENANT_HAS = "The tenant has:"; SET_YES = "Yes";
    SET_NO = "No"; RESULT = "The result";

    // The form of an operation.
    edit(label, title) = "{label} “{title}”"; question(label, title) = "{label} “{title}”?"; create(label, kind) = "{label}: {kind}";
    end_delegation(label, from, to) = "{label} the delegation from {from} to {to}?";
    ENDS_AT_ONCE = "That ends at once, and for good."; CANNOT_BE_UNDONE = "This cannot be undone.";
    EDIT_ABOUT = "Only the fields that you change are sent. If another person changes this record first, your changes are not saved.";
    open_current(path) = html r#"<a href="{path}" target="_blank" rel="noopener">Open the current version</a> <span class="dim">(in a new tab; your input stays here)</span>"#;
    INVALID = "A field is not valid."; NEEDS_REASON = "Give a reason, for the record.";
    IN_PAST = "is in the past; give a later time, or leave it empty";
    EDIT_MOVED = "Somebody changed this record after you opened the form. Fields that you did not change show the current values. Where your change differs from the current value, the form shows both. Save again to replace the current value.";
    MOVED = "Somebody changed this record after you opened the form. It is shown as it is now.";
    UNREADABLE = "the answer is not of its type"; CANNOT_CREATE = "these records cannot be created";
    machine(category, title, versions) = "{category}: {title}, version {versions}";
    held(actions, limit, id) = "{actions}{limit} ({id})"; held_up_to(amount, currency) = ", up to {amount} {currency}";

    // Warnings before a form is sent.
    WITHOUT_LIMITS = "Without limits: any amount, any purpose, everywhere, without an end. Add a limit, or confirm.";
    CREATE_UNLIMITED = "Create without limits"; CREATE_ANYWAY = "Create anyway"; NARROWING = "Narrowing cannot be undone.";
    NARROW = "Narrow for good"; less_required(changes) = "Less will be asked of requests: {changes}."; LOOSEN = "Loosen it";
    LESS_AFTERWARDS = "Less will be asked of requests afterwards:";

    // The end of a record.
    set_question(title, state) = "Set “{title}” to {state}?"; set_to(state) = "Set to {state}";
    is_final(state) = html "<strong>{state}</strong> is final: the record cannot change to another state.";
    ALSO_CHANGES = "The form also changes:"; EMPTY = "empty"; NOT_CHANGED = "Not changed";
    CONSEQUENCES_UNREAD = "The consequences could not be read."; ENDS_WITH_IT = "Ends with it"; AFFECTED = "Affected agents:";
    others(count) = "and {count} more";
    below(count) = "{count} delegation below it ends too." | "{count} delegations below it end too.";
    agents_under_it(count) = "{count} agent acts under it." | "{count} agents act under it.";
    agents_under_them(count) = "{count} agent acts under them." | "{count} agents act under them.";
    HOLDS_NONE = "No delegation that is in force is held or given by it.";
    holds(count) = "{count} delegation that it holds or gave ends with it." | "{count} delegations end with it: all that it holds or gave, and all below them.";
    others_under_it(count) = "{count} other acts under it." | "{count} others act under it.";
    others_under_them(count) = "{count} other acts under them." | "{count} others act under them.";
    target_of_retired(policy) = "The policy “{policy}” is retired and has no effect on decisions.";
    last_target(policy) = "It is the last target of the policy “{policy}”. Without a target, the policy applies to every action, while it is in effect.";
    last_target_of_draft(policy) = "It is the last target of the policy “{policy}”. Without a target, the policy applies to every action, once it is active.";
    target(policy, rest) = "The policy “{policy}” then applies only to {rest}, while it is in effect. It no longer denies or holds requests that only this target covers.";
    target_of_draft(policy, rest) = "The policy “{policy}” then applies only to {rest}, once it is active. It no longer denies or holds requests that only this target covers.";
    tenant_ends(records) = "It has {records}. All of this stops: no decisions are made for the tenant, and its people and API keys lose access.";
    count(count, one, many) = "{count} {one}" | "{count} {many}"; and_last(items, last) = "{items} and {last}";

    // The result of a form, in a sentence. Clauses begin with a blank or a comma.
    delegation(delegate, actions, limits, scope, period, basis) = "{delegate} may run {actions}{limits}{scope}{period}{basis}.";
    each_time(amount) = "{amount} each time"; amount_in(amount, window) = "{amount} {window}"; in_seconds(seconds) = "in {seconds} s";
    up_to(amounts) = " up to {amounts}";
    at_most(count, window) = ", at most {count} time {window}" | ", at most {count} times {window}";
    on_resources(resources) = ", on {resources}"; in_places(places) = ", in {places}"; for_purposes(purposes) = ", for {purposes}";
    from_day(day) = ", from {day}"; until_day(day) = ", until {day}"; on_behalf_of(name) = ", on behalf of {name}";
    UNDER_ANOTHER = ", under another delegation"; MAY_DELEGATE = " It may delegate this to others.";
    also_set(fields) = " Also set: {fields}.";
    purpose(people, slug, actions, places, end) = "{people} may declare {slug} for {actions}{places}{end}.";
    EVERYBODY = "Everybody"; each(classes) = "Each {classes}"; within(places) = " in {places}"; ending(day) = " until {day}";
    tool(name, actions) = "{name} performs {actions}. A request for it shows all fields.";
    tool_titled(name, actions, title) = "{name} performs {actions}. A request for it reads “{title}”.";
    NO_ACTION = "no action yet";
    api_key(name, scopes, agents, addresses, end) = "“{name}” may use {scopes} for {agents}{addresses}{end}.";
    ALL_AGENTS = "all agents of the tenant"; only(names) = "{names} only"; from_addresses(addresses) = ", from {addresses}";
    webhook(types, url, suites) = "The service sends {types} to {url}, signed by {suites}.";
    ALL_EVENTS = "all events, except those on demand,"; DEFAULT_SUITES = "standard-webhooks/v1 and rfc9421";
}
