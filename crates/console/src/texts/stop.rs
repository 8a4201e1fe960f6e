//! Stops: the list, the page that stops, the page of a stop, and its release.

texts! {
    // The list, and the search for an agent.
    STOP_AGENT = "Stop an agent"; FIND_AGENT = "Find an agent"; FIND = "Find"; NAME_OR_ID = "Name or id";
    LEAD = "A stop denies requests from the moment that you confirm. It deletes no data. It stays in force until a person releases it.";
    IS_STOPPED = "It is stopped. Every decision on it is a denial.";
    RELEASED_SINCE = "The stop has been released since. To stop it again, choose a target below.";
    in_force(count) = "{count} in force"; NO_ACTIVE_AGENT = "No agent is active.";
    NOT_FOUND = "No active agent or person has this in its name, id or e-mail address.";
    first_listed(count) = "These are the first {count}."; ALL_AGENTS = "All agents"; ALL_AGENTS_FOUND = "All agents with this text";
    SEARCH_TOO_LONG = "No such id. Search for at most 100 characters.";
    SEARCH_TOO_SLOW = "The search did not end in time. Enter the agent's whole name, or an id.";
    EXTERNAL_APP = "external app"; PERSON = "person"; SYSTEM = "system"; CLASS_AGENT = "agent"; in_state(class, state) = "{class}, {state}";
    STOPPED_NOW = "Stopped now"; NONE_STOPPED = "No stop is in force.";
    more_stops(count) = html r#"And {count} newer stop. <a href="/console/records/stop-signals">All stop signals</a>, <a href="/console/records/quarantines">all quarantines</a>."#
        | r#"And {count} newer stops. <a href="/console/records/stop-signals">All stop signals</a>, <a href="/console/records/quarantines">all quarantines</a>."#;
    MAY_NOT_STOP = "Your role cannot stop anything. Ask an administrator of your tenant, or the owner of the installation: they can stop an agent at once.";

    // The form for a part.
    STOP_PART = "Stop a part"; SHOW_EFFECTS = "Show the effects…";
    PART_LEAD = "Only requests that match all fields below are suspended. If you leave all fields empty, everything in the tenant is suspended. You confirm on the next page, which shows the effects.";
    OF_PRINCIPAL = "Agent or person"; EVERYBODY = "everybody"; UNDER_DELEGATION = "Delegation"; ANY = "any";
    ACTION_LABEL = html r#"Action <span class="dim">(such as <code>payment.execute</code>, or <code>payment.*</code> for all below it)</span>"#;
    ACTIONS_OF_TOOL = "Or all actions of a tool";
    too_many(any) = "(there are too many to list: enter an id; empty means {any})";
    principal_option(name, display_name) = "{name} ({display_name})"; delegation_option(actions, delegate) = "{actions} to {delegate}";
    tool_option(name, actions) = "{name}: {actions}";

    // The target of a stop.
    EVERYTHING = "everything"; of_principal(actions, name) = "{actions} of {name}";
    of_everybody(actions, tenant) = "{actions} of everybody at {tenant}"; everything_of(tenant) = "everything of {tenant}";
    under(actions, delegation) = "{actions} under the delegation {delegation}";
    under_delegation_to(actions, name) = "{actions} under the delegation to {name}";
    SEVERAL_TENANTS = "these are of different tenants: stop them one by one";
    NO_TENANT = "the tenant is unknown: choose a tenant in the menu of your name, or name an agent or a delegation";
    TOOL_AND_ACTION = "a tool is stopped with all its actions: name a tool or an action, not both";
    TOOL_WITHOUT_ACTIONS = "this tool has no actions to suspend: stop the agents that use it";

    // The page that stops.
    STOP_OTHER = "Stop something else"; NOT_STOPPED = "Not stopped"; stop(target) = "Stop {target}";
    stop_question(target) = "Stop {target}?";
    denies_agent(name) = html "Every request of <strong>{name}</strong> will be denied. This includes all requests under a delegation that it holds or gave. The stop applies until a person releases it.";
    denies(actions, principal, delegation) = html "{actions}{principal}{delegation} will be denied until a person releases it.";
    ALL_ACTIONS = "Everything";
    of_and_below(name) = html " of <strong>{name}</strong> and who acts under it";
    under_and_below(id, name) = html r#" under the delegation <code class="id">{id}</code> to <strong>{name}</strong> and the delegations below it"#;
    all_of_tool(tool) = "These are all actions of the tool {tool}. Other tools that perform them stop as well.";
    is_stopped_already(name) = "{name} is stopped already.";
    ANOTHER_STOP = "Another stop applies in addition: it may act again once all stops are released.";
    UNUSED_NAME = "A stop of an unused name has no effect."; DETAILS = "Details";
    CHOOSE_REASON = "Choose a reason. People read it before they release the stop.";
    UNEXPECTED = "Unexpected behaviour"; HARMFUL = "Wrong or harmful action"; LEAKED = "Leaked or stolen credential";
    INCIDENT = "Incident under investigation"; MAINTENANCE = "Maintenance"; with_details(reason, details) = "{reason}: {details}";
    CANNOT_STOP = "You cannot stop this.";
    ONLY_READS = "Your role may only read stops. An administrator of the tenant creates and releases them.";

    // Its effects.
    EFFECTS = "Effects";
    EFFECTS_UNREAD = "The effects could not be read now. You can still stop it.";
    NO_DELEGATION = "No delegation is affected.";
    only_actions(actions) = html "Only {actions} is stopped under these delegations. Other actions stay permitted.";
    delegations(count) = "{count} delegation:" | "{count} delegations:"; NONE_USED_IT = "No agent used this in the last 24 hours.";
    NONE_ACTS = "No agent acts under a delegation for this.";
    affected(count) = "{count} agent is affected:" | "{count} agents are affected:";
    and_more_at(path, count) = html r#"And <a href="{path}">{count} more</a>."#;
    waits(agent, requests) = html r#"Waiting for people: <a href="/console/approvals?agent={agent}">{requests}</a>."#;
    approved(agent, requests) = html r#"Approved and not used yet: <a href="/console/approvals?state=approved&amp;agent={agent}">{requests}</a>."#;
    still_valid(permissions) = "Still valid: {permissions}."; permissions(count) = "{count} permission" | "{count} permissions";
    decisions(count) = "{count} decision" | "{count} decisions";
    last_day(agent, decisions) = html r#"Last 24 hours: <a href="/console/decisions?agent={agent}">{decisions}</a>."#;
    last_day_until(agent, decisions, time) = html r#"Last 24 hours: <a href="/console/decisions?agent={agent}">{decisions}</a>, the last {time}."#;
    NO_REQUEST = "No request in the last 24 hours.";
    NOT_COUNTED = "The decisions of the last 24 hours could not be counted in time. You can still stop it.";
    valid_permissions(count) = "{count} valid permission" | "{count} valid permissions";
    DURING = "During the stop, waiting requests cannot be approved and approved requests are denied. Agents that watch for stops end at once. Others can still use a valid permission until it ends.";

    // A stop of which only a part succeeded.
    partly(name) = "Only a part of {name} is stopped"; FAILED_FIRST = "The actions that are not suspended are listed first.";
    NOT_SUSPENDED = "Not suspended"; NOT_TWICE = "Suspended parts are not suspended twice."; TRY_REST = "Try the rest again";
    ALL_STOPS = "Show all stops";

    // The page of a stop.
    stopped_title(target) = "Stopped: {target}";
    now_stopped(target) = "{target} is stopped. Every request for it is denied.";
    now_released(target) = "{target} is released. Its authority applies again, unless another stop suspends it.";
    STOPPED = "Stopped"; RELEASED = "Released"; RELEASE_STEP = "Release…"; STOP_SIGNAL = "Stop signal"; QUARANTINE = "Quarantine";
    by(name) = "by {name}"; stopped_by(name) = "Stopped by {name}"; REFUSED_SINCE = "Refused since"; IS_REFUSED = "refused since";
    NOTICES = "An agent notices the stop when a request is refused, or at once if it watches for stops.";
    NONE_USED_BEFORE = "No agent used this in the last 24 hours before the stop, or since.";
    refused(count) = html "Refused once." | "Refused {count} times.";
    refused_last(count, time) = html "Refused once, last {time}." | "Refused {count} times, last {time}.";
    NO_REFUSAL = "No refusal yet.";
    last_request(time) = html "Its last request before the stop was {time}.";
    DECISIONS_NOT_COUNTED = "The decisions could not be counted in time."; PERMITTED_BEFORE = "Permitted before";
    were_valid(count) = "{count} permission was valid when the stop began. Reload the page for newer reports."
        | "{count} permissions were valid when the stop began. Reload the page for newer reports.";
    reported(outcome) = html "reported <strong>{outcome}</strong>."; NOT_REPORTED = html "<strong>not reported</strong>.";

    // The release.
    NOT_RELEASED = "Not released"; NEEDS_REASON = "Enter a reason for the release."; release(target) = "Release {target}";
    release_question(target) = "Release {target}?";
    APPLIES_AGAIN = "The suspended authority applies again immediately, unless another stop suspends it.";
}
