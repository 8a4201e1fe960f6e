//! Policies: their texts, versions and effects, a new policy, and a request to try.

texts! {
    // A policy.
    IN_FORCE = "in force";
    version(number) = "version {number}";
    retired(time, id) = html r#"It was retired {time}, and has no effect on decisions. <a href="/console/records/policies/{id}#history">Its history</a> shows who retired it."#;
    applies_to(targets) = html "It applies to {targets}.";
    APPLIES_TO_ALL = "It applies to every action."; ITS_TARGETS = "Its targets"; TRY_SCOPE = "Try other targets, or without it…";
    WOULD_BE_REFUSED = "The text in force would be refused today."; STAYS_IN_FORCE = "It stays in force.";
    CHANGED_SINCE = "Somebody changed this policy after you opened it";
    newest_text(path) = html r#"<a href="{path}" target="_blank" rel="noopener">Open it as it is now</a> <span class="dim">(in a new tab; your text stays here)</span>. From its newest text to yours:"#;
    SAVE_THEN_ACTIVATE = "Save this text, then activate…"; RUNS_AGAIN = "It is saved as a draft, and the next page runs it again.";
    TO_YOURS = "From the text in force to yours";
    not_active(number) = "Version {number} is not active";
    not_active_differs(number) = "Version {number} is not active: differences from the text in force";
    run_then_activate(number) = "Run version {number}, then activate…";
    AS_SAVED = "as it is saved, not the text below";
    from_version(number) = "From version {number} to the present text";
    TEXT = "The text"; CEDAR = "Cedar policies"; TRY_PAST = "Try it on past decisions"; TRY_REQUEST_STEP = "Try a request…";
    CHECK = "Check it"; SAVE_DRAFT = "Save as draft"; RETIRE_STEP = "Retire it…";
    NO_EFFECT_YET = "None of these puts it in force. Past decisions are decided again on their own facts, without recording them.";
    NO_TEXT = "the form has no text of the policy"; UNREADABLE = "the answer is not a policy";
    TEXT_KEPT = "Somebody changed the policy after you opened it. Your text is in the editor below; save it again to make it the newest draft.";
    SAVED = "The text is saved as a draft. It has no effect until it is activated."; IS_ACTIVATED = "The text is in force.";
    IS_OBSERVING = "The version is observing. It changes no decision."; IS_RETIRED = "The policy is retired.";
    IS_ENDED = "The observation has ended. Its counts are below, with the version.";

    // Its versions.
    VERSIONS = "Versions"; NO_VERSION = "the policy has no such version";
    versions_lead(id) = html r#"Who wrote each text, and who last activated it, when and why. <a href="/console/records/policies/{id}#history">The policy's history</a> has every change."#;
    version_link(number) = "Version {number}";
    written(time, name) = html r#"written {time} by <span class="id">{name}</span>"#;
    activated(time, name) = html r#"Activated {time} by <span class="id">{name}</span>."#;
    activation_reason(reason) = html "Reason: <q>{reason}</q>.";
    NO_REASON = "No reason was given.";
    replaced(time) = html "Another version replaced it {time}.";

    // Observing versions.
    observing(number) = "Version {number} is observing";
    no_change_since(time) = html "It changes no decision. Since {time}:";
    observed_from(start, end) = html "Observed from {start} to {end}:";
    observing_since(time) = html "Observing since {time}:";
    NONE_COUNTED = "no decision is counted yet.";
    counts(total, changed, allowed, held, denied) = "of {total} decision, {changed} would have been different. {allowed} would have been permitted, {held} held and {denied} denied."
        | "of {total} decisions, {changed} would have been different. {allowed} would have been permitted, {held} held and {denied} denied.";
    counted_until(time) = html "Counted up to {time}.";
    observe(number) = "Observe version {number}";
    OBSERVE_HELP = "It changes no decision. This page counts the decisions that it would have changed.";
    END_OBSERVATION = "End the observation"; NOT_OBSERVING = "Not observing"; NOT_ENDED = "Not ended";

    // The check of a text, and its effect on past decisions.
    DIFFERENCES = "Differences by line"; VALID = "The text is valid"; VALID_WITH_WARNING = "The text is valid, with a warning";
    INVALID = "The text is not valid"; EFFECT = "Effect on past decisions";
    line(line) = "Line {line}";
    line_column(line, column) = "Line {line}, column {column}";
    run_none(count) = "It was run against no decision: {count} could not be decided again.";
    NO_DECISIONS = "It was run against no decision: the tenant has none yet.";
    result(run, changed) = html "Of the last <strong>{run}</strong> decision, <strong>{changed}</strong> would be decided differently than by the policies in force now. All else, such as delegations and stops, is as it was."
        | "Of the last <strong>{run}</strong> decisions, <strong>{changed}</strong> would be decided differently than by the policies in force now. All else, such as delegations and stops, is as it was.";
    unreadable(count) = "{count} more could not be decided again.";
    of_newest(count, summary) = "Of the newest {count} of them: {summary}";
    newest_shown(count) = "The newest {count} are shown.";
    IN_FORCE_NOW = "In force now"; WOULD_BE = "It would be";
    NONE_NEWLY = "none is newly allowed or denied";
    newly(count, outcome) = "{count} is newly {outcome}" | "{count} are newly {outcome}";
    stays_needs(count, outcome, people) = "{count} stays {outcome} but needs {people}" | "{count} stay {outcome} but need {people}";
    stays_needs_instead(count, outcome, people, before) = "{count} stays {outcome} but needs {people} instead of {before}"
        | "{count} stay {outcome} but need {people} instead of {before}";
    stays_other_reason(count, outcome) = "{count} stays {outcome} for another reason" | "{count} stay {outcome} for another reason";
    stays_other_conditions(count, outcome) = "{count} stays {outcome} with other conditions" | "{count} stay {outcome} with other conditions";

    // The activation.
    activate_policy(name) = "Activate “{name}”?";
    activate_question(number, name) = "Activate version {number} of “{name}”?";
    activate(number) = "Activate version {number}";
    ACTIVATE_LEAD = "It then decides every request that the policy applies to."; REPLACES = "It replaces the text in force.";
    DIFFERS = "Differences from the text in force"; CANNOT_ACTIVATE = "You cannot activate this here."; NOT_ACTIVATED = "Not activated";
    cannot_activate(reason) = "You cannot activate this here. {reason}";
    MAY_NOT_ACTIVATE = "Your role may not activate policies."; RETIRED_FINAL = "The policy is retired, which is final.";
    ALREADY_IN_FORCE = "It is the text in force."; TEXT_INVALID = "The text is not valid.";
    EFFECT_UNKNOWN = "The tenant has no decisions to run it against. Its effect is unknown.";
    REASON_LABEL = html r#"Reason <span class="dim">(required; it stays with the version and in the policy's history)</span>"#;
    TEXT_MOVED = "The text has changed since you opened the page.";
    BASE_MOVED = "Another text is in force since you opened the page. The differences from it are below.";
    CHANGED_AT_ONCE = "Somebody changed the policy at the same moment. It is shown as it is now.";
    NEEDS_REASON = "Enter a reason. The policy's history shows it.";

    // Retiring.
    retire_question(name) = "Retire “{name}”?";
    RETIRE = "Retire it"; RETIRE_LEAD = "It then has no effect. Retiring cannot be undone."; NOT_RETIRED = "Not retired";
    NOT_RETIRED_MOVED = "Somebody changed the policy after you opened this page.";

    // A new policy.
    NEW = "New policy"; NEW_LEAD = "A policy denies, holds or adds duties. It is created as a draft, and has no effect until it is activated.";
    BEGIN_WITH = "Begin with"; WHERE_APPLIES = "Where it applies"; CEDAR_TEXT = "Text, in Cedar"; CREATE_DRAFT = "Create the draft";
    TARGETS_HELP = html "One target in each line, such as <code>action:payment.*</code>, <code>effect_class:financial</code> or <code>jurisdiction:DE</code>. None: every action.";
    REGIME = "Regime"; REGIME_HELP = "The rules that it implements, such as internal or gdpr.";
    CHOOSE_TENANT = "Choose the policy's tenant.";
    LARGE_PAYMENTS = "Large payments"; LARGE_PAYMENTS_EFFECT = "Holds payments above an amount until a person approves them.";
    TWO_PEOPLE = "Two people"; TWO_PEOPLE_EFFECT = "Holds very large payments until two people approve them.";
    PERSONAL_DATA = "Personal data"; PERSONAL_DATA_EFFECT = "Holds access to confidential resources until a person approves it.";
    CHANGE_WINDOW = "Change window"; CHANGE_WINDOW_EFFECT = "Denies releases from Friday evening to Monday morning.";
    COUNTRY = "A country"; COUNTRY_EFFECT = "Denies actions in a country, and actions without a stated country.";
    DUTY = "A duty"; DUTY_EFFECT = "Adds a duty for the agent to each permission of a payment.";
    SHELL = "Shell commands of a coding agent"; SHELL_EFFECT = "Holds commands that delete, force a push, publish, send data or name settings, by their text.";
    EDITS = "Edits of a coding agent"; EDITS_EFFECT = "Holds changes of files outside of the project.";
    SECRETS = "Secrets and a coding agent"; SECRETS_EFFECT = "Denies reading and changing files with secrets, by their names.";
    MCP = "MCP servers of a coding agent"; MCP_EFFECT = "Holds calls of MCP servers.";

    // Targets and times.
    scope(name) = "Where and when “{name}” applies";
    SCOPE_LEAD = "A change of the targets or the times applies immediately. This page first shows how past decisions would have changed, without recording them.";
    NOT_IN_FORCE = "The policy is not in force and decides no request. Its effect cannot be tried."; MAY_NOT_TRY = "Your role may not run policies on past decisions.";
    NOT_TRIED = "Not tried"; CANNOT_TRY = "The policy is not active, or your role may not try it."; TARGETS = "targets";
    WHERE = "Where"; WITH_TARGETS = "With the targets below"; TRY_TARGETS = "Try these targets on past decisions";
    TARGETS_LABEL = html r#"Targets to try, one on a line <span class="dim">(none: every action)</span>"#;
    targets_at(path) = html r#"Targets are records: <a href="{path}">this policy's targets</a>."#;
    from(time) = html "From {time}";
    FROM_ACTIVATION = "From its activation"; NO_END = "with no end"; OUTSIDE = "Outside this time it denies and holds no requests.";
    WITHOUT_IT = "Without it"; TRY_WITHOUT = "Try past decisions without it";
    times_at(path) = html r#"Its times are in <a href="{path}">its record</a>."#;

    // A request to try.
    TRY_REQUEST = "Try a request"; TRY = "Try it"; POLICIES_DECIDE = "The policies in force decide.";
    text_decides(name) = "The newest text of “{name}” decides, with the other policies in force.";
    NOT_RECORDED = "It is not recorded, and uses up no limit.";
    would_be(outcome) = html r#"It would be <strong class="verdict {outcome}">{outcome}</strong>."#;
    would_be_for(outcome, people) = html r#"It would be <strong class="verdict {outcome}">{outcome}</strong>, for {people}."#;
    without_text(outcome) = "Without this text it would be {outcome}, or on other conditions.";
    to_avoid(changes) = "To avoid the denial: {changes}.";
    WHY = "Why"; PLACE = "Place"; RESOURCE = "Resource"; CONTEXT = "Context, as a JSON object";
    own_field(name) = "{name} has its own field. Leave it out of the context.";
    NO_NUMBER = "The amount must be a number."; NO_OBJECT = "The context is not a JSON object.";
    no_object(error) = "The context is not a JSON object: {error}.";
}
