//! Agents and delegations: their pages, the list of agents, and a new agent.

texts! {
    // The page of an agent.
    PRINCIPALS = "Principals"; DELEGATIONS = "Delegations"; may_do(name) = "What {name} may do"; STOP_STEP = "Stop it…";
    NO_PERMISSION = "No permission";
    ALL_DENIED = "It has no delegation and no grant. All its requests are denied.";
    GIVE_DELEGATION = "Give it a delegation and a key…"; ITS_DELEGATIONS = "Its delegations to others"; ALL_OF_THEM = "All of them";
    ITS_DECISIONS = "Its decisions"; ITS_REQUESTS = "Its requests for approval"; ITS_RECORD = "Its record"; STOPPED_NOW = "Stopped now.";
    more_stops(count) = html r#"The tenant has <a href="/console/stop">{count} more stop in force</a>, which may also apply here."#
        | r#"The tenant has <a href="/console/stop">{count} more stops in force</a>, which may also apply here."#;

    // Chains of delegations, and budgets.
    party_lets_act(from_id, from, to_id, to) = html r#"<a href="/console/agents/{from_id}" title="{from_id}">{from}</a> lets <a href="/console/agents/{to_id}" title="{to_id}">{to}</a> act"#;
    may_run(id, name, actions) = html r#"<a href="/console/delegations/{id}">{name}</a> may do <code>{actions}</code>"#;
    SAME_BOUNDS = "With the same bounds."; NARROWED = "Narrowed to:"; NOT_READABLE = "A delegation that you may not read";
    NOT_READ = "A delegation that could not be read now (reload the page)"; uses(count) = "{count} use" | "{count} uses";
    budget(used, limit, left) = "{used} of {limit} used, {left} left."; budget_unknown(limit) = "{limit}; the used part is unknown.";

    // The page of a delegation.
    delegation(id) = "Delegation {id}"; THIS_DELEGATION = "this delegation"; WITH_CHAIN = "A delegation and its chain";
    ITS_CHAIN = "Its chain"; STOP_UNDER = "Stop actions under it…"; WOULD_END = "Would end with it";
    NONE_BELOW = "No delegation is below it."; ACTING_UNDER = "Agents that act under it:";

    // The list.
    NEW_STEP = "New agent…"; SEARCHED = "Name, id or e-mail address"; OWNER = "Owner"; ACTIVE = "Active"; PENDING = "Pending";
    REVOKED = "Revoked"; NONE_ACTIVE = "No agent is active"; has(text) = "Has “{text}”";
    NOT_FOUND = html r#"No agent has this text and state. <a href="/console/agents">Show the active ones</a>."#;
    OTHERS = html r#"People and systems are among the <a href="/console/records/principals">principals</a>."#;
    OTHERS_AND_DELEGATIONS = html r#"People and systems are among the <a href="/console/records/principals">principals</a>; all permissions are in the <a href="/console/records/delegations">delegations</a>."#;

    // A new agent.
    NEW = "New agent"; NOT_CREATED = "Agent not created"; new(name) = "New agent: {name}";
    step(number, name) = "Step {number} of 4: {name}."; THE_AGENT = "the agent"; PERMISSIONS = "its permissions"; A_KEY = "its API key";
    A_REQUEST = "its first request"; NO_RECORDS_YET = "Records are created at step 3.";
    exists(id, name) = html r#"<a href="/console/agents/{id}">{name}</a> exists."#;
    exists_with(id, name, delegation) = html r#"<a href="/console/agents/{id}">{name}</a> exists, and has a <a href="/console/delegations/{delegation}">delegation</a>."#;
    LACKS_DELEGATION = "You have no delegation to pass on.";
    lacks_advice(subject) = html r#"Here an agent is created together with a delegation. Without one, it can be created among the <a href="/console/records/principals/new/create">principals</a>, and its requests are denied. The installation's owner first registers you as a principal of the class <code>human</code> with the <code>external_subject</code> <code>{subject}</code>, and gives it a delegation with <code>can_delegate</code>."#;
    TENANT_HELP = html r#"Its slug, such as acme. You can also <a href="/console/tenant">choose a tenant</a> for all pages."#;
    PERSON_MISSING = html r#"A person who is missing here is a <a href="/console/records/principals/new/create">principal</a> of the class <code>human</code>. Create that record first."#;
    KEY_HELP = "The agent gets an API key for itself alone. With it, a program requests decisions and reads them, as long as the delegation lasts. The key is shown once.";
    CREATE_ALL = "Create the agent, its delegation and its key"; CREATE_DELEGATION = "Create the delegation and the key";
    CREATE_KEY = "Create the key"; taken(name) = "another agent is called {name}"; CHOOSE_TENANT = "Choose the tenant of the agent.";
    INVALID = "A field is not valid. No record was created."; NONE_CREATED = "No record was created";
    lacks_delegation(name) = "{name} exists, but has no delegation yet";
    lacks_key(name) = "{name} and its delegation exist, but the API key does not";
    failed(state, reason) = "{state}: {reason}.";
    unconfirmed(state) = "{state}, or that is not known yet. Send the form again: it acts only once.";

    // Its first request.
    ready(name) = "{name} is ready"; ITS_KEY = "Its API key"; COPY_KEY = "Copy the key now. It is not shown again.";
    ITS_FIRST_REQUEST = "Its first request";
    paste(action) = html "Paste a command into a terminal. It requests <code>{action}</code>. The service decides, and records the decision.";
    REST = "REST"; GRPC = "gRPC";
}
