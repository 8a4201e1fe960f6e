//! Signing keys, definitions of tools, webhook deliveries, messages, and the choice of a tenant.

texts! {
    // Signing keys.
    KEYS_LEAD = "The keys that sign the installation's decisions, checkpoints and tokens.";
    REPLACEMENTS = "Replacements under way"; COMPLETE_STEP = "Complete…"; CANCEL_STEP = "Cancel…"; REPLACE_STEP = "Replace…"; REVOKE_STEP = "Revoke…";
    replaced_by(kid, successor) = html r#"<code class="id">{kid}</code> by <code class="id">{successor}</code>"#;
    completes(kid, distance, time) = html r#"Until it is complete, <code class="id">{kid}</code> signs. It completes automatically {distance} ({time}). Complete it sooner only after every copy of <a href="/.well-known/jwks.json">the published keys</a> has been fetched again."#;
    no_successor(kid) = html r#"Its successor is not made yet. Until the replacement is complete, <code class="id">{kid}</code> signs."#;
    since(time) = html "since {time}";
    due(distance) = "to be replaced {distance}";
    NO_KEYS = "No keys yet"; KEYS_MADE = "The service makes its keys when it first signs.";
    SIGNS_LATER = "published, signs once the replacement is complete"; SIGNS_NOW = "signs now";
    SIGNS_UNTIL = "signs now, until its replacement is complete"; SIGNS_NO_LONGER = "signs no longer; its signatures stay valid";
    IS_REVOKED = "revoked; its signatures stay valid";
    KEY_REASON = html r#"Reason <span class="dim">(optional, for the record)</span>"#;
    type_key(name) = html "Type <strong>{name}</strong>, the last part of the key's id, to confirm";

    // The steps of a key's replacement, and its revocation.
    REPLACE = "Replace it"; REPLACE_QUESTION = "Replace it?"; REPLACING = "The replacement has begun."; NOT_REPLACED = "Not replaced";
    replace_question(purpose) = "Replace the {purpose} key?";
    REPLACE_ABOUT = "A successor is made and published now. It signs an hour later, or as soon as you complete the replacement; until then the key signs.";
    REVOKE = "Revoke it"; REVOKE_QUESTION = "Revoke it?"; KEY_REVOKED = "The key is revoked."; NOT_REVOKED = "Not revoked";
    revoke_question(purpose) = "Revoke the {purpose} key?";
    REVOKE_ABOUT = "The key stops signing at once; the successor of a key that the service manages signs from then on. Earlier signatures stay valid. This cannot be undone.";
    COMPLETE = "Complete the replacement"; COMPLETE_QUESTION = "Complete the replacement?"; COMPLETED = "The replacement is completed: the successor signs.";
    NOT_COMPLETED = "Replacement not completed";
    COMPLETE_ABOUT = "The successor signs from now on, on other nodes within 30 seconds, and the key signs no longer. Earlier signatures stay valid. Receivers that keep a copy of the published keys must have fetched them since the replacement began, or else they cannot verify the successor's signatures.";
    CANCEL = "Cancel the replacement"; CANCEL_QUESTION = "Cancel the replacement?"; CANCELLED = "The replacement is cancelled.";
    NOT_CANCELLED = "Replacement not cancelled"; CANCEL_ABOUT = "The key goes on signing. A successor that was made is revoked.";

    // The definition of an MCP server's tool.
    TOOLS = "Tools"; PINNED = "The definition is pinned. The pin is signed with your name.";
    definition(name) = "Definition of “{name}”";
    tool_of(server) = html r#"<span class="dim">a tool of</span> <a href="{server}">an MCP server</a>"#;
    IS_PINNED = "The server's newest definition is pinned.";
    HAS_DRIFTED = "The server sent another definition after this tool was pinned. Requests for it are denied until the newest definition is pinned.";
    NOT_PINNED_YET = "No definition of this tool was pinned yet. Requests for it are denied until a person has read and pinned its definition.";
    MODEL_READS = "The model reads this text: a sentence in it can change the actions of an agent.";
    hidden(letters) = html "<strong>The text has hidden characters:</strong> {letters}. They are shown at their places. A model reads them, and people usually don't see them.";
    calls(actions, effect) = html "Calls need {actions}. Their declared effect: {effect}. It determines the required approvals.";
    DIFFERS = "Differences from the pinned definition"; PINNED_DEFINITION = "The pinned definition"; DEFINITION = "The definition";
    SENT_AGAIN = "The server sends the pinned definition again, after another one.";
    pinned_digest(digest) = html r#"Digest of the pinned definition: <code class="id">{digest}</code>"#;
    newest_digest(digest) = html r#"Digest of the newest definition: <code class="id">{digest}</code>"#;
    EFFECT = "The effect of its calls"; ONLY_OWNER_MILDER = "Later, only the installation's owner can make it milder.";
    PIN = "Pin this definition"; KIND_OF_EFFECT = "Kind of effect"; NOT_PINNED = "Not pinned"; TOOL_UNREADABLE = "the answer is not a tool";
    CANNOT_PIN = "You can't pin it: the admins of the tenant and the installation's owner pin definitions of tools that are not deprecated.";
    NO_DEFINITION = "the tool belongs to no MCP server: it has no definition";
    TOOL_MOVED = "The tool has changed since you opened this page. It is shown as it is now.";

    // The deliveries of a webhook endpoint.
    WEBHOOK_ENDPOINTS = "Webhook endpoints"; NEWEST_DELIVERIES = "Deliveries, the newest first"; SEND_TEST = "Send a test now";
    deliveries_to(url) = "Deliveries to {url}";
    held(time, distance, reason) = html "<strong>Held until {time}</strong> ({distance}), {reason}. Open deliveries wait until then; a test that arrives ends it.";
    BY_RETRY_AFTER = "as the receiver requested by Retry-After"; AFTER_FAILURES = "after failures in a row";
    NO_DELIVERIES = "No deliveries"; EVENTS_LISTED = "Events that the endpoint takes are sent as they happen, and listed here.";
    EVENT = "Event"; ATTEMPTS = "Attempts"; MADE = "Made"; NEXT_ATTEMPT = "Next attempt"; DUE_NOW = "due now"; SEND_AGAIN = "Send it again";
    attempts(count, outcome) = "{count} attempt, the last: {outcome}" | "{count} attempts, the last: {outcome}";
    held_until(time) = "held until {time}";
    TO_BE_SENT = "To be sent"; DELIVERED = "Delivered"; GAVE_UP = "Gave up"; DELIVERY_CANCELLED = "Cancelled"; NO_ANSWER = "no answer";
    after(outcome, milliseconds) = "{outcome} after {milliseconds} ms";
    test_delivered(outcome) = "Test delivered: {outcome}.";
    WILL_BE_SENT = "It will be sent again."; NOT_DELIVERED = "Test not delivered"; TEST_NOT_SENT = "Test not sent"; NOT_SENT_AGAIN = "Not sent again";

    // Messages about requests.
    MESSAGES = "Messages"; MESSAGES_LEAD = "These channels get a message with a link for each new request. They get another message if the request expires without a decision.";
    NO_CHANNELS = "No channels"; NO_CHANNELS_HELP = "Add a chat or an e-mail address to get messages."; OF_TENANT = "of the tenant";
    fails_since(time, error) = html "fails since {time}: {error}";
    ADD = "Add a channel"; ADD_CHANNEL = "Add the channel"; NOT_ADDED = "Not added";
    SLACK = "Slack"; MATTERMOST = "Mattermost"; TEAMS = "Microsoft Teams"; EMAIL = "E-mail";
    URL = "Address of the chat's incoming webhook or workflow";
    URL_HELP = "It is stored encrypted and never shown. E-mail goes to the address that you sign in with, and needs none.";
    CHAT_OF_TENANT = "A chat of the tenant"; CHAT_OF_TENANT_HELP = "All admins manage it. Everybody in the chat reads its messages.";
    IS_ADDED = "The channel is added. Send a test message to see whether it works."; IS_DELETED = "The channel is deleted.";
    ACTIONS = "Only for these actions"; ACTIONS_HELP = html "Such as <code>payment.* refund.execute</code>. Empty: all actions.";
    AMOUNTS_AND_HOURS = "Amounts, quiet hours, absence"; LEAST_AMOUNT = "From this amount on";
    CURRENCY_HELP = "Requests in another currency and requests without an amount are included.";
    QUIET_FROM = "Quiet from"; QUIET_UNTIL = "Quiet until"; TIME_ZONE = "Time zone"; TIME_ZONE_EXAMPLE = "Europe/Berlin";
    QUIET_HELP = "A message waits until the quiet hours end. It is not sent if the request was decided before.";
    AWAY_UNTIL = "Away until"; SUBSTITUTE = "Substitute"; NO_DATE = "away until: is not a date";
    AWAY_HELP = "Until the beginning of that day, in UTC, the channels of the person with this address get the messages. If that person has no channel or may not decide, this channel gets them.";
    channel(kind, target) = "{kind}: {target}";
    messages_by(kind) = "Messages: {kind}";
    TENANT_CHANNEL = "A channel of the tenant."; OWN_CHANNEL = "Your own channel.";
    ADDRESS_STAYS = "The address cannot change: add another channel for another address.";
    failing_since(time, error) = html "Every attempt has failed since {time}. The last error: {error}.";
    SAVE = "Save"; SEND_TEST_MESSAGE = "Send a test message"; DELETE_CHANNEL = "Delete the channel"; NO_CHANNEL = "this channel does not exist";
    SAVED = "The settings are saved."; TEST_SENT = "The receiver accepted a test message.";
    NOT_DELETED = "Not deleted"; TEST_MESSAGE_NOT_SENT = "Test message not sent";
    not_accepted(error) = "The receiver did not accept a test message: {error}.";

    // The choice of a tenant.
    TENANT_LEAD = "Pages then show this tenant's records alone. Your session continues under a new cookie.";
    ALL_TENANTS = "All tenants"; EVERY_RECORD = "every record of the installation"; SHOWN_NOW = "shown now"; NOT_CHOSEN = "Tenant not chosen";
    ONLY_OWNER = "only the installation's owner looks at other tenants"; UNKNOWN_TENANT = "this tenant does not exist: the selected tenant stays the same";
    SESSION_UNCHANGED = "the session cannot be changed at the moment"; NO_RANDOMNESS = "no randomness"; TENANT_ID_INVALID = "the tenant has no valid id";
}
