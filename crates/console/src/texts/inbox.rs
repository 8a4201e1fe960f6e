//! Requests for approval: the list, the page of a request, and its answers.

texts! {
    // The list.
    ALL_WAITING = "All that wait"; ANSWERED = "Answered"; GROUP_ALIKE = "Group alike"; ONLY_THESE = "Only these";
    REQUESTS = "Requests for approval"; SELECTED = "Selected"; TO_AND_DETAILS = "To and details";
    YOURS = "Yours to decide";
    waiting(count) = "{count} request waiting" | "{count} requests waiting";
    waiting_for_you(count) = "{count} request waiting for you" | "{count} requests waiting for you";
    answered(progress) = "{progress}, you have answered";
    group(agent, action, count) = html "<strong>{agent}</strong> <code>{action}</code>, {count} on this page";
    not_yours(rule) = html r#"Not yours<span class="hidden"> to decide: {rule}</span>"#;
    select(request) = "Select: {request}";
    END_FIRST = "The requests that end first are at the top."; LARGEST_FIRST = "The largest amounts are at the top.";
    NEWEST_FIRST = "The newest requests are at the top."; OLDEST_FIRST = "The oldest requests are at the top.";
    KEYS = html "Keys: <kbd>j</kbd> <kbd>k</kbd> move, <kbd>Enter</kbd> opens.";
    KEYS_OFF = "Turn keys off";

    // An empty list.
    PAGE_EMPTY = "No more on this page"; NONE_WAIT = "No waiting requests"; SHOW_WAITING = "Show all waiting requests";
    PAGE_DECIDED = "The requests of this page were decided or have expired.";
    NO_SUCH_REQUEST = "No request has this state, agent and action.";
    APPEARS_HERE = "When an agent sends a request that a person must decide, it appears here. This page updates itself.";
    APPEARS_FOR_YOU = "When an agent sends a request that you must decide, it appears here. This page updates itself.";

    // The page of a request.
    agent_is(agent, name) = "The display name of {agent} is “{name}”.";
    AS_APPROVED = "as it was approved";
    FULL_REQUEST = "The full request"; WAS_ERASED = "It was erased."; EXACT_TEXT = "The exact text and its digest";
    SIGNED_DIGEST = "Your answer is signed with this digest. Invisible characters appear as ⟨U+…⟩.";
    WHY_WAITS = "Why it waits"; WHY_HELD = "Why it was held"; OWN_RULE = "The tenant's own rule";
    NO_AUTHORITY = "The request has no authority of its own.";
    asked_by(people) = html "Asked by {people}.";
    asked_by_at(people, time, distance) = html "Asked by {people}, {time} ({distance}).";
    api_key(id) = html r#"<span class="id">API key {id}</span>"#;
    api_key_named(label, id) = html r#"<span class="id">API key “{label}” ({id})</span>"#;
    person(name) = html r#"<span class="id">person {name}</span>"#;

    // The end of a request.
    ends_undecided(time) = "If it is not decided by {time}, it expires without effect.";
    usable_until(time) = "The agent may do it once, until {time}. Unused, it expires then.";
    expired_unused(time) = "It expired on {time}: it was approved, and the agent did not use it.";
    expired_undecided(time) = "It expired on {time}: it was not decided and had no effect.";
    WAS_DECLINED = "The agent may not do it.";
    denied_until(time) = "The agent may not do it. If it asks the same again before {time}, it is denied.";
    WAS_USED = "The agent was allowed to do it, once.";
    WITHDRAW_HINT = "It is approved and not used yet. Anyone who decides approvals may withdraw it.";
    receipt(id) = html r#"The held decision has a <a href="/console/receipts/{id}">receipt</a>."#;
    used_receipt(id) = html r#"The decision that used this approval also has a <a href="/console/receipts/{id}">receipt</a>."#;

    // Answers of people. The name is `You` for the reader.
    YOU = "You"; ANSWERS = "Answers so far";
    approved(name) = html "<strong>{name}</strong> approved";
    declined(name) = html "<strong>{name}</strong> declined";
    withdrew(name) = html "<strong>{name}</strong> withdrew it";
    reopened(name) = html "<strong>{name}</strong> reopened it: the agent may ask again";
    acted(name) = html "<strong>{name}</strong> acted";
    own_interest(role) = "{role}, in their own interest";

    // Earlier requests and decisions.
    BEFORE = "Before this"; ASKED_BEFORE = "The same request was asked before:";
    DECLINED_BEFORE = "Declined before, for the same action:"; DECIDED_WITHOUT = "Decided without a request";
    other_requests(agent, action) = html "Other requests of {agent} for <code>{action}</code>";
    no_other_request(agent, action) = html "{agent} has no other request for <code>{action}</code>.";

    // The effect of an approval.
    effect(agent, time) = html "If you approve, {agent} can do this once, until {time}. It has to ask again.";
    effect_after(count, agent, time) = html "If you approve, one more approval is needed. After that, {agent} can do this once, until {time}. It has to ask again."
        | "If you approve, {count} more approvals are needed. After that, {agent} can do this once, until {time}. It has to ask again.";
    if_approved_now(outcome) = html r#"If it is approved now, it will be <strong class="verdict {outcome}">{outcome}</strong>."#;
    with_one_more(outcome) = html r#"With one more approval, it would be <strong class="verdict {outcome}">{outcome}</strong>."#;
    with_more(missing, outcome) = html r#"One approval is not enough: with {missing} more, it would be <strong class="verdict {outcome}">{outcome}</strong>."#;
    with_all(outcome) = html r#"With all approvals that were required when it was asked, it would be <strong class="verdict {outcome}">{outcome}</strong>."#;
    OUTCOME_UNKNOWN = "The decision that would be made now could not be determined. Reload the page.";

    // Approvals without the usual effect.
    APPROVED_BUT_DENIED = "It is approved, but if the agent asks again now, it is denied.";
    APPROVED_BUT_HELD = "It is approved, but if the agent asks again now, it is held again.";
    APPROVED_UNCERTAIN = "It is approved. Whether the agent would be allowed with it now could not be determined. Reload the page.";
    LACKS_APPROVALS = "More approvals are needed now: the policies require more, or a person who approved may no longer decide.";
    NO_EFFECT_NOW = "The approval has no effect until this changes. If the agent asks again, it may open a new request.";
    expires_unused(time) = "Unused, it expires on {time}.";
    DENIED_NOW = "This would be denied now."; ONLY_VOID = "An approval would only make the request void, without any effect.";
    WOULD_BE_VOID = "It would be denied now: an approval would only make the request void.";
    STAYS_HELD = "It stays held after an approval."; STILL_WAITS = "It still waits after your approval.";
    MORE_NEEDED = "More approvals are needed now than this request has.";
    required_now(people, needed) = "Required now: {people}. Required when it was asked: {needed}.";
    required_by(policies) = html "It is required by {policies}.";
    people(count) = "{count} person" | "{count} people";
    people_with(people, roles) = "{people}, {roles} among them";
    NOT_NEEDED = "This no longer needs an approval.";
    NOT_NEEDED_ADVICE = "If the agent asks again now, it is allowed without one. You can still decide this request, or let it expire.";
    APPROVED_BEFORE = "The very same request was approved before.";
    APPROVED_BEFORE_ADVICE = "Approve this one only if it should happen once more.";
    IS_ERASED = "The request was erased. It cannot be shown or approved.";

    // What to do with a request that would be denied.
    WAIT = "Wait until the reason is gone, or decline it.";
    agent_gone(agent) = "{agent} no longer exists. Decline the request.";
    agent_revoked(agent) = "{agent} is revoked, and that is final: waiting does not help. Decline it.";
    agent_suspended(agent) = "{agent} is suspended. Wait until it is active again, or decline it.";
    agent_pending(agent) = "{agent} is not active yet. Wait until it is, or decline it.";
    DELEGATION_REVOKED = "A revoked delegation does not come back. Decline it, unless the agent is given another one.";
    DELEGATION_EXPIRED = "Decline it, unless the delegation is prolonged or the agent is given another one.";

    // Changes of the policies that held a request.
    policy_gone(name) = "The policy “{name}” no longer exists.";
    policy_retired(name) = "The policy “{name}” was retired.";
    policy_not_in_force(name) = "The policy “{name}” does not apply now.";
    policy_ended(name, time) = "The policy “{name}” ended on {time}.";
    policy_activated(name, time) = "The policy “{name}” was activated on {time}, after this was asked.";

    // Who decides.
    somebody_else(rule) = "Somebody else must decide this: {rule}.";
    who_can(roles) = "A person of the tenant in the role {roles} can decide it, unless they have a part in it.";
    EXACT_RULE = "The exact rule";
    you_own(agent) = "you own {agent}, or an agent in its chain of delegations";
    you_delegate(agent) = "you are a delegator in {agent}'s chain of delegations";
    YOUR_KEY = "it was asked with an API key that you created or rotated";
    YOU_ASKED = "you asked this";
    ROLE_DECIDES_NONE = "your role does not decide requests";
    roles_or(roles, last) = "{roles} or {last}";
    waits_for(count) = "You have approved this. It waits for one more person." | "You have approved this. It waits for {count} more people.";
    NONE_ELIGIBLE = "When it was last asked, no person registered in the tenant could approve it.";

    // A new sign-in.
    SIGN_IN_TO_APPROVE = "Sign in again to approve"; BACK_TO_REQUEST = "Back to the request";
    RETURN_HERE = "You come back to this request."; APPROVE_THERE = "You come back to the request, and approve it there.";
    NEW_SIGN_IN_USELESS = "You have just signed in, and your identity provider's access token does not contain the time. Signing in again would not help. Contact the operator of this service.";

    // Findings about a request that has changed since it was asked.
    finding(name, drift) = html "<strong>{name}</strong>: {drift}";
    finding_since(name, drift, time) = html "<strong>{name}</strong>: {drift}, since {time}";
    found(name, drift) = "{name}: {drift}";
    found_since(name, drift, time) = "{name}: {drift}, since {time}";
    REVIEW_CONFIRMED = "By approving you confirm that you have reviewed this.";
    REVIEWS_CONFIRMED = "By approving you confirm that you have reviewed:";
    NEEDS_SNAPSHOT = "Approval is not enough here. A new snapshot is also needed.";

    // Warnings about similar requests.
    DOCUMENT_AGAIN = "This document is in another request. It may be paid twice.";
    NEW_ACCOUNT = "This payee is known with another account.";
    SHARED_ACCOUNT = "This account is known under another payee.";
    SIMILAR = "Another request is similar.";
    PARTLY_COMPARED = "It has so many payees, accounts or documents that only some were compared.";
    LABEL_DOCUMENT_AGAIN = "Same document"; LABEL_NEW_ACCOUNT = "Other account"; LABEL_SHARED_ACCOUNT = "Shared account";
    LABEL_SIMILAR = "Similar request"; LABEL_PARTLY_COMPARED = "Partly compared";
    label_and_more(label, more) = "{label} +{more}";
    FIRST_TO_PAYEE = "No approved request to this payee in 90 days.";
    FIRST_TO_ACCOUNT = "No approved request to this account in 90 days.";

    // The second step of an answer.
    approve_this(action) = html "Approve this <code>{action}</code>?";
    decline_this(action) = html "Decline this <code>{action}</code>?";
    withdraw_this(action) = html "Withdraw this <code>{action}</code>?";
    NOT_APPROVED = "Not approved"; NOT_DECLINED = "Not declined"; NOT_WITHDRAWN = "Not withdrawn";
    READ_AGAIN = "read all of it again";
    REASON_LABEL = html r#"Why <span class="dim">(required; the requester may read it)</span>"#;
    COMMENT_LABEL = html r#"Comment <span class="dim">(optional, for the record)</span>"#;
    NEEDS_REASON = "Give a reason. The requester may read it.";
    next(request) = "Next: {request}";
    yours_to_decide(count) = "{count} yours to decide";
    NO_OTHER_YOURS = "No other request is yours to decide.";

    // A request that has changed since it was opened.
    DIFFERS = "No change was made. The request differs from the one on the page, or was not opened in this session.";
    IT_IS_NOW = "It is now:"; WHAT = "What"; THEN = "When you opened it"; READ_NOW = "Read it as it is now";
    HOW_SHOWN = "How it is shown"; ERASED = "erased"; TO_REVIEW = "To review"; NOT_SHOWN = "not shown";

    // Several requests at once.
    APPROVE_SELECTED = "Approve selected…"; APPROVE_SEVERAL = "Approve several"; NONE_APPROVED = "No request was approved";
    SELECT_HINT = "At most 20, of one agent and action. You can select requests that you have opened and may decide.";
    OPEN_HINT = "Open a request to read it. Then you can select it, to approve several similar requests at once.";
    NONE_APPROVED_HERE = "None of these is approved here";
    approve_these(count, action) = html "Approve this <code>{action}</code>?" | "Approve these {count} requests?";
    wants_times(count, agent, action) = html "<strong>{agent}</strong> wants to do <code>{action}</code> {count} time." | "<strong>{agent}</strong> wants to do <code>{action}</code> {count} times.";
    over(count, selected) = html "{count} of the {selected} that you selected no longer waits. <strong>No request was approved.</strong>"
        | "{count} of the {selected} that you selected no longer wait. <strong>No request was approved.</strong>";
    state_by(state, name) = "{state}, by {name}";
    need_review(count) = "One more needs a review of later changes. It is approved on its own page:"
        | "{count} more need a review of later changes. They are approved on their own pages:";
    others_decide(count) = "One is not yours to decide. Its page shows the reason:" | "{count} are not yours to decide. Their pages show the reasons:";
    would_be_denied(count) = "One would be denied now: an approval would only make it void." | "{count} would be denied now: an approval would only make them void.";
    NONE_STATED = "none stated"; TOGETHER = "Together";
    without_amount(count) = "{count} of them states no amount. The sum does not include it." | "{count} of them state no amount. The sum does not include them.";
    still_after(count) = "{count} of them still waits after your approval: more than one person is needed." | "{count} of them still wait after your approval: more than one person is needed.";
    COMMENT_EACH = html r#"Comment <span class="dim">(optional, on each of them)</span>"#;
    approve_count(count) = "Approve {count} request" | "Approve {count} requests";
    approved_of(total, count) = "Approved {count} of {total} request" | "Approved {count} of {total} requests";
    not_approved_of(total, count) = "Not approved: {count} of {total} request" | "Not approved: {count} of {total} requests";
    LISTED_FIRST = "They are listed first, each with the reason.";
    still_more(count) = "{count} of them still waits for more people." | "{count} of them still wait for more people.";
    RESULTS = "Results"; RESULT = "Result"; IS_NOT_APPROVED = "Not approved.";
    DENIED_ALONE = "It would be denied now. An approval would only make it void";
    REVIEW_ALONE = "It needs a review: open it, and approve it on its own page";
    NONE_SELECTED = "no request was selected; open the requests to approve, then select them";
    TOO_MANY = "at most 20 requests are approved at once; select fewer";
    TWICE = "a request is named twice; select each once";
    NOT_OPENED = "a request was not opened in this session; open it, then select it";
    NOT_ALIKE = "requests of several agents or actions are not approved at once";
    given(needed, given) = "{given} of {needed} approval" | "{given} of {needed} approvals";
    given_of(given, needed) = "{given} of {needed}";
}
