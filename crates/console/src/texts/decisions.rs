//! Decisions: the list, the page of a decision, its evidence and replay, and the log.

texts! {
    // The list and its filter.
    OUTCOME = "Outcome"; OUTCOMES = "Outcomes"; WHEN = "When"; FROM = "From"; TO = "To"; TIME = "Time"; AGENT_AND_ACTION = "Agent and action";
    FACT = "Payee, account, document… or amount"; NEWEST_FIRST = "Decisions, the newest first";
    ALLOWED = "Allowed"; HELD = "Held"; DENIED = "Denied"; ANY_TIME = "Any time"; LAST_HOUR = "The last hour"; LAST_DAY = "The last 24 hours";
    LAST_WEEK = "The last 7 days"; LAST_MONTH = "The last 30 days";
    from(time) = "From {time}"; to(time) = "To {time}"; before(time) = "Before {time}"; fact(fact) = "Fact: {fact}";
    without_filter(span) = "{span}, without this filter:";
    DAY_OUTCOMES = "Outcomes of the last 24 hours"; DAY_REASONS = "Reasons for denials in the last 24 hours"; DAY_AGENTS = "Agents denied in the last 24 hours";
    not_filtered(asked) = html "This list is not filtered by {asked}.";
    whole_action(action) = "the pattern action={action}: name one action, whole";
    days_reversed(from, to) = "from={from}, which is after to={to}";
    NONE_YET = "No decision yet"; APPEARS_HERE = "When an agent asks whether it may act, the decision appears here.";
    NO_SUCH_DECISION = "No decision has this agent, action, outcome, reason and time.";
    export(csv, signed) = html r#"Export all of these <a href="{csv}" download>as CSV</a>, or <a href="{signed}" download>with their signed records</a>, a line each"#;
    export_ignores(ignored) = "the export has no filter for {ignored}: remove it and export again";

    // A decision.
    asked(id, agent, action, amount, outcome) = html r#"<strong title="{id}">{agent}</strong> asked to do <code>{action}</code>{amount}: it was <strong class="verdict {outcome}">{outcome}</strong>."#;
    budget_resets(time) = html "The budget resets at {time}.";
    valid_until(time) = html "valid until {time}";
    request(id, state) = html r#"request for approval: <a href="/console/approvals/{id}">{state}</a>"#;
    approved_by(people) = html "Approved by {people}.";
    approver(name, role, time) = html r#"<strong>{name}</strong> <span class="dim">({role}{time})</span>"#;
    own_approver(name, role, time) = html r#"<strong>{name}</strong> <span class="dim">({role}, in their own interest{time})</span>"#;
    denied_by(policy) = "Denied by {policy}."; held_by(policy) = "Held by {policy}.";
    QUESTION = "The request"; HOW = "How it was decided"; STAGES_HIDDEN = "Your role does not read the findings of the stages.";
    FACTS_ERASED = "Its facts were erased. It cannot be decided again here.";
    CONTEXT_ERASED = "The context was erased. The record has its digest."; CONTEXT_HIDDEN = "Your role does not read contexts. The record has its digest.";
    NOT_PERMITTED = "No authority permitted it."; NOT_USED = "No authority was used.";
    revision(revision, rules) = html "Revision {revision} of the tenant's authority, by the rules <code>{rules}</code>.";
    TERMS = "Conditions and outcome"; AGENT_MUST = "The agent must"; ENDS_WHEN = "The permission ends when"; REPORTED = "Reported";

    // The bounds that a denied request exceeded.
    NONE = "none";
    over_amount(asked, limit) = "The amount is {asked}; the limit is {limit}.";
    other_currency(asked, limit) = "The currency is {asked}; permitted is {limit}.";
    other_place(asked, limit) = "The place is {asked}; permitted is {limit}.";
    other_purpose(asked, limit) = "The purpose is {asked}; permitted is {limit}.";
    other_time(asked, limit) = "The time was {asked}; permitted is {limit}.";
    over_uses(budget) = "The number of uses is limited. Before this request: {budget}";
    over_total(asked, budget) = "The amount is {asked}; the total is limited. Before this request: {budget}";
    over_risk(asked, limit) = "The risk is {asked}; the limit is {limit}.";
    other_bound(bound, asked, limit) = "{bound} is {asked}; permitted is {limit}.";

    // Stages.
    MAY_ACTOR = "May this actor do this at all?"; IS_PURPOSE = "Is the declared purpose admissible?"; RULES = "Rules";
    DO_RULES = "Do policies, reality and the gate permit it?"; DECISION = "Decision"; RESULT_OF_STAGES = "The result of these stages";
    PASSED = "passed"; HOLDS = "held"; REFUSED = "refused";
    checks_passed(count) = "{count} check passed" | "{count} checks passed";

    // Evidence.
    EVIDENCE = "Evidence"; SEALED = "Sealed"; IS_SEALED = "It is sealed: its record is a leaf of the tenant's log."; NOT_SEALED = "Not sealed";
    leaf(index, origin) = html r#"leaf {index} of the log <code class="id">{origin}</code>"#;
    SAVE_BUNDLE = "Save the bundle"; RECEIPT = "Receipt";
    about_bundle(name) = html r#"The bundle has the record, its proof, and the context, facts and policies. Offline, with <a href="/.well-known/jwks.json" download="jwks.json">the published keys</a>, this checks it: <code>agent-authority verify {name} --jwks jwks.json</code>. The receipt is public and has no context."#;
    DECIDE_AGAIN = "Decide it again"; REPLAY = "Replay"; NOT_YET = "Not sealed yet"; NOT_IN_LOG = "Its record is signed; the log does not have it."; SEAL = "Seal it";
    ABOUT_SEAL = "A sealed decision can be replayed, and verified offline."; EVIDENCE_HIDDEN = "Your role does not read evidence.";
    EVIDENCE_UNREAD = "Whether it is sealed could not be read now. Reload the page."; RECORD = "The record that is signed";
    signed(digest, key) = html r#"Digest <code class="id">{digest}</code>, signed with <code class="id">{key}</code>. Invisible characters appear as ⟨U+…⟩."#;

    // A replay.
    NOT_REPLAYED = "Not replayed"; SAME = "Same result"; DIFFERENT = "Different result"; INDETERMINATE = "Could not be determined";
    decided_again(mode) = "Decided again {mode}:"; FROM_FACTS = "from the facts that were sealed with it"; WITH_AUTHORITY = "with the authority as it is now";
    DIFFERENCES = "Differences"; AS_SEALED = "As sealed"; PROOF = "The signed proof"; BACK_TO_DECISION = "Back to the decision";
    replayed_id(id) = html r#"The replayed decision has the id <code class="id">{id}</code>."#;
    proof_signed(key) = html r#"Signed with <code class="id">{key}</code>. If it is saved as a file, <code>agent-authority verify</code> checks it."#;
    PROOF_UNREADABLE = "the replay proof cannot be read";

    // The log.
    LOG_AND_SEALS = "Log and seals"; NEWEST_CHECKPOINT = "The newest checkpoint"; IN_IT = "Decisions in it"; ROOT = "Root"; ORIGIN = "Origin"; SIGNED_BY = "Signed by"; ITS_KEY = "Its key";
    about_log(tenant) = "Every sealed decision of {tenant} is a leaf of this log. A change to it would show in the next checkpoint.";
    SIGNED_TEXT = "The signed text"; NO_CHECKPOINT = "No checkpoint yet";
    ABOUT_CHECKPOINTS = "Decisions are sealed in batches. The first checkpoint appears after the first batch.";
    SEAL_NOW = "Seal a decision now"; HOW_TO_SEAL = "Open it: its page shows whether it is sealed, and can seal it.";
}
