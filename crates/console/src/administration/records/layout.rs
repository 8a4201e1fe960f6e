//! The hand-made forms: the order, the words and the inputs of the fields that people usually fill
//! in. All other fields of the same record are closed at first.

use As::{Day, Line, Names, Of, One, Parts, Rows, Several, Usual, Words};
use prost_reflect::MessageDescriptor;

use super::field::{Field, Place};
use crate::{
    kit::kinds::{Input, Kind, Member},
    texts as t,
};

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
pub(super) const WINDOWS: [(&str, &str); 4] = [
    ("86400", t::forms::A_DAY),
    ("3600", t::forms::AN_HOUR),
    ("604800", t::forms::A_WEEK),
    ("2592000", t::forms::IN_30_DAYS),
];

const TENANT: &str = "tenant_id";
const WINDOW: Spec = Spec("window_seconds", t::forms::IN, "", Of(&WINDOWS));

/// The form of a new agent.
#[rustfmt::skip] // a line for each field
pub(crate) static AGENT: Layout = Layout {
    kind: "principal", title: t::agents::NEW,
    lead: t::forms::AGENT_LEAD,
    groups: &[(t::forms::WHO, &[
        Spec("name", t::NAME, t::forms::AGENT_NAME_HINT, Line),
        Spec("display_name", t::forms::WORK, t::forms::WORK_HINT, Line),
        Spec("owner_principal_id", t::agents::OWNER, t::forms::OWNER_HINT, One("people")),
    ])],
};

#[rustfmt::skip] // a line for each field
const DO_WHAT: Group = (t::forms::MAY_DO, &[
    Spec("actions", t::forms::ACTIONS, t::forms::ACTIONS_HINT, Names("actions")),
    Spec("resource_ids", t::forms::RESOURCES, t::forms::RESOURCES_HINT, Several("resources")),
]);
#[rustfmt::skip] // a line for each field
const FOR_WHAT: Group = (t::forms::FOR_WHAT, &[Spec("purposes", t::forms::PURPOSES, t::forms::PURPOSES_HINT, Several("purposes"))]);
#[rustfmt::skip] // a line for each field
const HOW_MUCH: Group = (t::forms::HOW_MUCH, &[
    Spec("max_amount", t::forms::EACH_TIME, t::forms::EACH_TIME_HINT, Line),
    Spec("max_total_amount", t::forms::IN_TOTAL, t::forms::IN_TOTAL_HINT, Parts(&[Spec("amount", t::AMOUNT, "", Line), WINDOW])),
    Spec("currency", t::CURRENCY, t::forms::CURRENCY_HINT, Line),
    Spec("max_uses", t::forms::HOW_OFTEN, t::forms::HOW_OFTEN_HINT, Parts(&[Spec("count", t::forms::TIMES, "", Usual), WINDOW])),
]);
#[rustfmt::skip] // a line for each field
const WHERE: Group = (t::forms::WHERE_AND_WHEN, &[
    Spec("jurisdictions", t::forms::PLACES, t::forms::PLACES_HINT, Words),
    Spec("expires_at", t::forms::UNTIL, t::forms::UNTIL_HINT, Day),
]);

/// The form by which a tenant's admin passes on a part of a delegation that they received.
#[rustfmt::skip] // a line for each field
static PART: Layout = Layout {
    kind: "delegation", title: t::forms::NEW_DELEGATION,
    lead: t::forms::PART_LEAD,
    groups: &[
        (t::forms::WHO, &[
            Spec("delegate_id", t::forms::DELEGATE, "", One("principals")),
            Spec("parent_id", t::forms::PARENT, t::forms::PARENT_HINT, One("held")),
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
        kind: "delegation", title: t::forms::NEW_DELEGATION,
        lead: t::forms::DELEGATION_LEAD,
        groups: &[
            (t::forms::WHO, &[
                Spec("delegate_id", t::forms::DELEGATE, "", One("principals")),
                Spec("delegator_id", t::forms::DELEGATOR, "", One("principals")),
            ]),
            DO_WHAT,
            FOR_WHAT,
            HOW_MUCH,
            WHERE,
        ],
    },
    Layout {
        kind: "purpose", title: t::forms::NEW_PURPOSE,
        lead: t::forms::PURPOSE_LEAD,
        groups: &[
            (t::forms::WHAT_FOR, &[
                Spec("name", t::NAME, t::forms::PURPOSE_NAME_HINT, Line),
                Spec("slug", t::forms::SLUG, t::forms::SLUG_HINT, Line),
            ]),
            (t::forms::MAY_DO, &[
                Spec("allowed_actions", t::forms::ACTIONS, t::forms::ADMITTED_HINT, Names("actions")),
                Spec("principal_classes", t::forms::WHO_DECLARES, t::forms::WHO_DECLARES_HINT, Usual),
            ]),
            (t::forms::WHERE_AND_WHEN, &[
                Spec("jurisdictions", t::forms::PLACES, t::forms::PLACES_HINT, Words),
                Spec("expires_at", t::forms::UNTIL, t::forms::UNTIL_HINT, Day),
            ]),
        ],
    },
    Layout {
        kind: "tool", title: t::forms::NEW_TOOL,
        lead: t::forms::TOOL_LEAD,
        groups: &[
            (t::forms::ITS_IDENTITY, &[
                Spec("name", t::NAME, t::forms::TOOL_NAME_HINT, Line),
                Spec("function_signature", t::forms::SIGNATURE, t::forms::SIGNATURE_HINT, Line),
                Spec("actions", t::forms::ACTIONS, t::forms::PERFORMED_HINT, Names("actions")),
            ]),
            (t::forms::ITS_EFFECT, &[
                Spec("action_declaration", t::forms::EFFECT, t::forms::EFFECT_HINT, Parts(&[
                    Spec("effect_class", t::forms::KIND, "", Usual),
                    Spec("reversibility", t::forms::CAN_BE_UNDONE, "", Usual),
                    Spec("rollback_available", t::forms::ROLLBACK, "", Usual),
                ])),
                Spec("action_risk_classification", t::forms::RISK, "", Parts(&[
                    Spec("risk_tier", t::forms::TIER, "", Usual),
                    Spec("required_oversight_mode", t::forms::OVERSIGHT, "", Usual),
                ])),
            ]),
            (t::forms::AS_SHOWN, &[
                Spec("presentation", t::forms::PRESENTATION, t::forms::PRESENTATION_HINT, Parts(&[
                    Spec("title", t::forms::TITLE, "", Line),
                    Spec("decline_title", t::forms::DECLINE_TITLE, t::forms::DECLINE_TITLE_HINT, Line),
                    Spec("facts", t::forms::FIELDS, "", Rows(6, &[
                        Spec("path", t::forms::FIELD, "", Line),
                        Spec("label", t::forms::LABEL, "", Line),
                        Spec("role", t::forms::MEANING, "", Usual),
                        Spec("block", t::forms::BLOCK, "", Usual),
                    ])),
                    Spec("lists", t::forms::TABLES, "", Rows(2, &[
                        Spec("path", t::forms::LIST, "", Line),
                        Spec("columns", t::forms::COLUMNS, t::forms::COLUMNS_HINT, Words),
                        Spec("total", t::forms::SUM, t::forms::SUM_HINT, Line),
                    ])),
                    Spec("agent_words", t::forms::OWN_WORDS, t::forms::OWN_WORDS_HINT, Words),
                ])),
            ]),
        ],
    },
    Layout {
        kind: "api_key", title: t::forms::NEW_API_KEY,
        lead: t::forms::API_KEY_LEAD,
        groups: &[
            (t::forms::WHO, &[
                Spec("label", t::NAME, t::forms::KEY_NAME_HINT, Line),
                Spec("principal_ids", t::AGENTS, t::forms::KEY_AGENTS_HINT, Several("agents")),
            ]),
            (t::forms::MAY_DO, &[Spec("scopes", t::forms::SCOPES, "", Usual)]),
            (t::forms::FROM_WHERE, &[
                Spec("ip_allowlist", t::forms::ADDRESSES, t::forms::ADDRESSES_HINT, Words),
                Spec("expires_at", t::forms::UNTIL, t::forms::UNTIL_HINT, Day),
            ]),
        ],
    },
    Layout {
        kind: "webhook_endpoint", title: t::forms::NEW_ENDPOINT,
        lead: t::forms::ENDPOINT_LEAD,
        groups: &[
            (t::forms::WHERE_TO, &[Spec("url", t::forms::URL, t::forms::URL_HINT, Line)]),
            (t::forms::WHICH_EVENTS, &[Spec("event_types", t::forms::TYPES, t::forms::TYPES_HINT, Names("event_types"))]),
            (t::forms::SIGNED_HOW, &[Spec("signing_suites", t::forms::SIGNATURES, t::forms::SUITES_HINT, Usual)]),
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
