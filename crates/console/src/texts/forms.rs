//! The hand-made forms: their headings, labels and hints.

texts! {
    // Headings and leads.
    AGENT_LEAD = "The name and the work of the agent, and who is responsible for it.";
    NEW_DELEGATION = "New delegation"; DELEGATION_LEAD = "Lets somebody act on behalf of somebody else, within limits.";
    PART_LEAD = "Lets somebody act under a delegation that you received, within its limits. They are not taken over: repeat them here, or set narrower ones.";
    NEW_PURPOSE = "New purpose"; PURPOSE_LEAD = "A reason that requests can declare, and the actions that it admits.";
    NEW_TOOL = "New tool"; TOOL_LEAD = "A function that agents call, its effect, and how people see a request for it.";
    NEW_API_KEY = "New API key"; API_KEY_LEAD = "A program calls the service with it. The key is shown once.";
    NEW_ENDPOINT = "New webhook endpoint"; ENDPOINT_LEAD = "Events are sent to its address, signed. Its secret is shown once.";
    WHO = "Who"; MAY_DO = "May do what"; FOR_WHAT = "For what"; HOW_MUCH = "Up to how much"; WHERE_AND_WHEN = "Where, and until when";
    WHAT_FOR = "What for"; ITS_IDENTITY = "What it is"; ITS_EFFECT = "Its effect"; AS_SHOWN = "How people see a request";
    FROM_WHERE = "From where, and until when"; WHERE_TO = "Where to"; WHICH_EVENTS = "Which events"; SIGNED_HOW = "Signed how";

    // Fields of an agent.
    AGENT_NAME_HINT = "Small letters, digits and hyphens: invoice-bot. It is part of the agent's id and stays.";
    WORK = "What it does"; WORK_HINT = "In a few words: Pays supplier invoices";
    OWNER_HINT = "The person who is responsible for the agent. Owners do not approve its requests.";

    // Fields of a delegation.
    ACTIONS = "Actions"; ACTIONS_HINT = "payment.execute is one action, payment.* is all actions below payment.";
    RESOURCES = "Resources"; RESOURCES_HINT = "The action may affect only these. None: all to which access is granted.";
    PURPOSES = "Purposes"; PURPOSES_HINT = "None: any purpose."; EACH_TIME = "Each time"; EACH_TIME_HINT = "The largest amount of one action: 5000.00";
    IN_TOTAL = "In total"; IN_TOTAL_HINT = "The largest sum of amounts."; CURRENCY_HINT = "Required with an amount: EUR";
    HOW_OFTEN = "How often"; HOW_OFTEN_HINT = "The largest number of actions."; TIMES = "Times"; IN = "In";
    A_DAY = "a day"; AN_HOUR = "an hour"; A_WEEK = "a week"; IN_30_DAYS = "in 30 days";
    PLACES = "Places"; PLACES_HINT = "Countries or their parts, such as DE, AT or DE-BY. Empty: everywhere.";
    UNTIL = "Until"; UNTIL_HINT = "The last day, in UTC. Empty: no end."; DELEGATE = "Who may act"; DELEGATOR = "On behalf of"; PARENT = "Under";
    PARENT_HINT = "A delegation that you received and may pass on. The installation's owner creates the first one.";

    // Fields of a purpose.
    PURPOSE_NAME_HINT = "Such as: Settle invoices"; SLUG = "Slug"; SLUG_HINT = "The word by which requests name it: invoice-settlement. It stays.";
    ADMITTED_HINT = "payment.* is all actions below payment."; WHO_DECLARES = "Who may declare it"; WHO_DECLARES_HINT = "None: everybody.";

    // Fields of a tool.
    TOOL_NAME_HINT = "Such as: Bank transfer"; SIGNATURE = "Signature"; SIGNATURE_HINT = "Such as: pay(amount, currency, payee)";
    PERFORMED_HINT = "The actions that it performs."; EFFECT = "Effect"; EFFECT_HINT = "If you choose some of these, the others count as the worst.";
    KIND = "Kind"; CAN_BE_UNDONE = "Can be undone"; ROLLBACK = "A rollback is available"; RISK = "Risk"; TIER = "Tier"; OVERSIGHT = "Oversight";
    PRESENTATION = "Presentation"; PRESENTATION_HINT = "The title names fields in braces: Pay {amount} to {payee}. Then come the fields that matter.";
    TITLE = "Title"; DECLINE_TITLE = "Title of a decline"; DECLINE_TITLE_HINT = "Such as: Payment of {amount}"; FIELDS = "Fields"; FIELD = "Field"; LABEL = "Label";
    MEANING = "Meaning"; BLOCK = "A text with line breaks"; TABLES = "Tables"; LIST = "List"; COLUMNS = "Columns"; COLUMNS_HINT = "Such as: text, quantity, net";
    SUM = "Column with a sum"; SUM_HINT = "Such as: net"; OWN_WORDS = "The agent's own words"; OWN_WORDS_HINT = "The fields that it writes freely, such as agent_note";

    // Fields of an API key and of a webhook endpoint.
    KEY_NAME_HINT = "Such as: support desk"; KEY_AGENTS_HINT = "The agents that it may act for. None: all agents of the tenant."; SCOPES = "Scopes";
    ADDRESSES = "Addresses"; ADDRESSES_HINT = "Addresses and networks: 192.0.2.7, 198.51.100.0/24. Empty: any address.";
    URL = "URL"; URL_HINT = "Such as: https://example.org/events"; TYPES = "Types"; SIGNATURES = "Signatures";
    TYPES_HINT = "svc.decision.* is all types below svc.decision. None: every type, except those on demand.";
    SUITES_HINT = "Choose standard-webhooks/v1 if the receiver uses a library for it, rfc9421 for HTTP message signatures with a public key, and jwt if it already verifies such tokens. None: the first two.";
}
