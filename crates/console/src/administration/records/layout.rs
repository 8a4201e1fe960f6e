//! The hand-made forms: the order, the words and the inputs of the fields that people usually fill
//! in. All other fields of the same record are closed at first.

use As::{Day, Line, Names, Of, One, Parts, Rows, Several, Usual, Words};
use prost_reflect::MessageDescriptor;

use super::field::{Field, Place};
use crate::kit::kinds::{Input, Kind, Member};

/// The form that creates a record of one kind.
pub(crate) struct Layout {
    kind: &'static str,
    pub(super) title: &'static str,
    pub(super) lead: &'static str,
    groups: &'static [Group],
}

/// A heading, and the fields under it.
type Group = (&'static str, &'static [Spec]);

/// A field: the name of its member, its label, its hint, and its input.
struct Spec(&'static str, &'static str, &'static str, As);

/// How a field is filled in.
enum As {
    /// As the generic form has it.
    Usual,
    /// A single line.
    Line,
    /// One record of these.
    One(&'static str),
    /// Some records of these.
    Several(&'static str),
    /// Some of these names, or others.
    Names(&'static str),
    /// Several words in one line.
    Words,
    /// The last day.
    Day,
    /// A value from this list.
    Of(&'static [(&'static str, &'static str)]),
    /// The parts of a message.
    Parts(&'static [Spec]),
    /// The parts of each message of a list, for this number of messages.
    Rows(usize, &'static [Spec]),
}

/// The lengths of windows, in seconds. The first is the proposed one.
pub(super) const WINDOWS: [(&str, &str); 4] =
    [("86400", "a day"), ("3600", "an hour"), ("604800", "a week"), ("2592000", "in 30 days")];

const TENANT: &str = "tenant_id";
const WINDOW: Spec = Spec("window_seconds", "In", "", Of(&WINDOWS));
const DAYS: &str = "The last day, in UTC. Empty: no end.";
const SUITES: &str = "Choose standard-webhooks/v1 if the receiver uses a library for it, rfc9421 for HTTP message \
    signatures with a public key, and jwt if it already verifies such tokens. None: the first two.";
const PLACES: &str = "Countries or their parts, such as DE, AT or DE-BY. Empty: everywhere.";

/// The form of a new agent.
#[rustfmt::skip] // a line for each field
pub(crate) static AGENT: Layout = Layout {
    kind: "principal", title: "New agent",
    lead: "The name and the work of the agent, and who is responsible for it.",
    groups: &[("Who", &[
        Spec("name", "Name", "Small letters, digits and hyphens: invoice-bot. It is part of the agent's id and stays.", Line),
        Spec("display_name", "What it does", "In a few words: Pays supplier invoices", Line),
        Spec("owner_principal_id", "Owner", "The person who is responsible for the agent. Owners do not approve its requests.", One("people")),
    ])],
};

#[rustfmt::skip] // a line for each field
const DO_WHAT: Group = ("May do what", &[
    Spec("actions", "Actions", "payment.execute is one action, payment.* is all actions below payment.", Names("actions")),
    Spec("resource_ids", "Resources", "The action may affect only these. None: all to which access is granted.", Several("resources")),
]);
#[rustfmt::skip] // a line for each field
const FOR_WHAT: Group = ("For what", &[Spec("purposes", "Purposes", "None: any purpose.", Several("purposes"))]);
#[rustfmt::skip] // a line for each field
const HOW_MUCH: Group = ("Up to how much", &[
    Spec("max_amount", "Each time", "The largest amount of one action: 5000.00", Line),
    Spec("max_total_amount", "In total", "The largest sum of amounts.", Parts(&[Spec("amount", "Amount", "", Line), WINDOW])),
    Spec("currency", "Currency", "Required with an amount: EUR", Line),
    Spec("max_uses", "How often", "The largest number of actions.", Parts(&[Spec("count", "Times", "", Usual), WINDOW])),
]);
#[rustfmt::skip] // a line for each field
const WHERE: Group = ("Where, and until when", &[
    Spec("jurisdictions", "Places", PLACES, Words),
    Spec("expires_at", "Until", DAYS, Day),
]);

/// The form by which a tenant's admin passes on a part of a delegation that they received.
#[rustfmt::skip] // a line for each field
static PART: Layout = Layout {
    kind: "delegation", title: "New delegation",
    lead: "Lets somebody act under a delegation that you received, within its limits. They are not taken over: repeat \
           them here, or set narrower ones.",
    groups: &[
        ("Who", &[
            Spec("delegate_id", "Who may act", "", One("principals")),
            Spec("parent_id", "Under", "A delegation that you received and may pass on. The installation's owner creates the first one.", One("held")),
        ]),
        DO_WHAT,
        FOR_WHAT,
        HOW_MUCH,
        WHERE,
    ],
};

#[rustfmt::skip] // a line for each field
static LAYOUTS: [Layout; 5] = [
    Layout {
        kind: "delegation", title: "New delegation",
        lead: "Lets somebody act on behalf of somebody else, within limits.",
        groups: &[
            ("Who", &[
                Spec("delegate_id", "Who may act", "", One("principals")),
                Spec("delegator_id", "On behalf of", "", One("principals")),
            ]),
            DO_WHAT,
            FOR_WHAT,
            HOW_MUCH,
            WHERE,
        ],
    },
    Layout {
        kind: "purpose", title: "New purpose",
        lead: "A reason that requests can declare, and the actions that it admits.",
        groups: &[
            ("What for", &[
                Spec("name", "Name", "Such as: Settle invoices", Line),
                Spec("slug", "Slug", "The word by which requests name it: invoice-settlement. It stays.", Line),
            ]),
            ("May do what", &[
                Spec("allowed_actions", "Actions", "payment.* is all actions below payment.", Names("actions")),
                Spec("principal_classes", "Who may declare it", "None: everybody.", Usual),
            ]),
            ("Where, and until when", &[
                Spec("jurisdictions", "Places", PLACES, Words),
                Spec("expires_at", "Until", DAYS, Day),
            ]),
        ],
    },
    Layout {
        kind: "tool", title: "New tool",
        lead: "A function that agents call, its effect, and how people see a request for it.",
        groups: &[
            ("What it is", &[
                Spec("name", "Name", "Such as: Bank transfer", Line),
                Spec("function_signature", "Signature", "Such as: pay(amount, currency, payee)", Line),
                Spec("actions", "Actions", "The actions that it performs.", Names("actions")),
            ]),
            ("Its effect", &[
                Spec("action_declaration", "Effect", "If you choose some of these, the others count as the worst.", Parts(&[
                    Spec("effect_class", "Kind", "", Usual),
                    Spec("reversibility", "Can be undone", "", Usual),
                    Spec("rollback_available", "A rollback is available", "", Usual),
                ])),
                Spec("action_risk_classification", "Risk", "", Parts(&[
                    Spec("risk_tier", "Tier", "", Usual),
                    Spec("required_oversight_mode", "Oversight", "", Usual),
                ])),
            ]),
            ("How people see a request", &[
                Spec("presentation", "Presentation", "The title names fields in braces: Pay {amount} to {payee}. Then come the fields that matter.", Parts(&[
                    Spec("title", "Title", "", Line),
                    Spec("decline_title", "Title of a decline", "Such as: Payment of {amount}", Line),
                    Spec("facts", "Fields", "", Rows(6, &[
                        Spec("path", "Field", "", Line),
                        Spec("label", "Label", "", Line),
                        Spec("role", "Meaning", "", Usual),
                        Spec("block", "A text with line breaks", "", Usual),
                    ])),
                    Spec("lists", "Tables", "", Rows(2, &[
                        Spec("path", "List", "", Line),
                        Spec("columns", "Columns", "Such as: text, quantity, net", Words),
                        Spec("total", "Column with a sum", "Such as: net", Line),
                    ])),
                    Spec("agent_words", "The agent's own words", "The fields that it writes freely, such as agent_note", Words),
                ])),
            ]),
        ],
    },
    Layout {
        kind: "api_key", title: "New API key",
        lead: "A program calls the service with it. The key is shown once.",
        groups: &[
            ("Who", &[
                Spec("label", "Name", "Such as: support desk", Line),
                Spec("principal_ids", "Agents", "The agents that it may act for. None: all agents of the tenant.", Several("agents")),
            ]),
            ("May do what", &[Spec("scopes", "Scopes", "", Usual)]),
            ("From where, and until when", &[
                Spec("ip_allowlist", "Addresses", "Addresses and networks: 192.0.2.7, 198.51.100.0/24. Empty: any address.", Words),
                Spec("expires_at", "Until", DAYS, Day),
            ]),
        ],
    },
    Layout {
        kind: "webhook_endpoint", title: "New webhook endpoint",
        lead: "Events are sent to its address, signed. Its secret is shown once.",
        groups: &[
            ("Where to", &[Spec("url", "URL", "Such as: https://example.org/events", Line)]),
            ("Which events", &[Spec("event_types", "Types", "svc.decision.* is all types below svc.decision. None: every type, except those on demand.", Names("event_types"))]),
            ("Signed how", &[Spec("signing_suites", "Signatures", SUITES, Usual)]),
        ],
    },
];

impl Layout {
    /// The hand-made form for records of this kind. A tenant's admin passes on only delegations that
    /// they received.
    pub(crate) fn of(kind: &str, is_owner: bool) -> Option<&'static Self> {
        if kind == PART.kind && !is_owner {
            return Some(&PART);
        }
        LAYOUTS.iter().find(|layout| layout.kind == kind)
    }

    /// The members in the order of the form, with its labels, hints and inputs.
    pub(crate) fn members(&self, members: Vec<Member>, kind: &Kind) -> Vec<Member> {
        let (mut placed, mut rest): (Vec<_>, Vec<_>) =
            members.into_iter().partition(|member| member.name == TENANT);
        for spec in self.specs() {
            if let Some(at) = rest.iter().position(|member| member.name == spec.0) {
                placed.push(spec.member(rest.remove(at), &kind.record));
            }
        }
        placed.extend(rest);
        placed
    }

    /// Places the fields under their headings, and notes the records that they propose.
    pub(crate) fn arrange(&self, fields: &mut [Field]) {
        for field in &mut *fields {
            field.place = Place::More;
        }
        for (heading, specs) in self.groups {
            let mut place = Place::First(heading);
            for Spec(name, .., input) in *specs {
                let Some(field) = fields.iter_mut().find(|field| field.member.name == *name) else {
                    continue;
                };
                field.place = std::mem::replace(&mut place, Place::Next);
                propose(field, input);
            }
        }
        // Only the installation's owner must name the tenant. It comes first.
        let tenant = fields.iter_mut().find(|field| field.member.name == TENANT);
        for field in tenant.into_iter().filter(|field| field.member.required) {
            (field.place, field.picks) = (Place::Next, Some("tenants"));
        }
    }

    /// Whether the form has a place for this member.
    pub(crate) fn has(&self, member: &str) -> bool {
        self.specs().any(|spec| spec.0 == member)
    }

    fn specs(&self) -> impl Iterator<Item = &Spec> {
        self.groups.iter().flat_map(|(_, specs)| specs.iter())
    }
}

/// Sets the proposals of a field.
fn propose(field: &mut Field, input: &As) {
    match input {
        One(records) | Names(records) => field.picks = Some(*records),
        Several(records) => (field.picks, field.is_closed) = (Some(*records), true),
        Of(values) => {
            let option = |(value, label): &(&str, &str)| ((*value).into(), (*label).into());
            field.options = values.iter().map(option).collect();
            field.is_closed = true;
        }
        Parts(specs) | Rows(_, specs) => {
            for part in field.parts.iter_mut().flatten() {
                let spec = specs.iter().find(|spec| spec.0 == part.member.name);
                spec.into_iter().for_each(|spec| propose(part, &spec.3));
            }
        }
        Usual | Line | Words | Day => {}
    }
}

impl Spec {
    /// The member of this record with its label, hint and input.
    fn member(&self, member: Member, record: &MessageDescriptor) -> Member {
        let Self(_, label, hint, input) = self;
        let input = match input {
            Line | One(_) => Input::Line,
            Several(_) | Names(_) => Input::Open,
            Words => Input::Words,
            Day => Input::Day,
            Parts(specs) => Input::Parts(of_parts(specs, record, self.0)),
            Rows(count, specs) => Input::Rows(of_parts(specs, record, self.0), *count),
            Usual | Of(_) => member.input.clone(),
        };
        let (label, about) = ((*label).to_owned(), (*hint).to_owned());
        Member { label, about, input, example: None, ..member }
    }
}

/// The members of the message at this field that a form has, in the form's order.
fn of_parts(specs: &[Spec], record: &MessageDescriptor, name: &str) -> Vec<Member> {
    let Some(message) = Member::message_at(record, name) else { return Vec::new() };
    let all = Member::all(&message);
    let of = |spec: &Spec| {
        let member = all.iter().find(|member| member.name == spec.0)?;
        // A part is required only if the others are given, which the API checks.
        Some(Member { required: false, ..spec.member(member.clone(), &message) })
    };
    specs.iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::kinds::KINDS;

    /// A member that a proto renames must not vanish from a form.
    #[test]
    fn every_field_of_a_form_is_a_member_of_its_record() {
        for layout in LAYOUTS.iter().chain([&AGENT, &PART]) {
            let kind = KINDS.iter().find(|kind| kind.singular == layout.kind).unwrap();
            let all = Member::all(&kind.record);
            let members = layout.members(all.clone(), kind);
            assert_eq!(members.len(), all.len(), "{}", layout.kind);
            let placed = members.iter().filter(|member| member.name != TENANT);
            for (spec, member) in layout.specs().zip(placed) {
                assert_eq!(spec.0, member.name);
                match (&spec.3, &member.input) {
                    (Parts(specs), Input::Parts(parts))
                    | (Rows(_, specs), Input::Rows(parts, _)) => {
                        assert_eq!(specs.len(), parts.len(), "{}", spec.0);
                    }
                    _ => {}
                }
            }
        }
    }
}
