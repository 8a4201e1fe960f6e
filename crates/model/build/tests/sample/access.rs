//! @generated from sample.proto.

pub static RULES: &[(&str, &[Binding])] = &[
    (
        "/authority.sample.v1.LampService/ListLamps",
        &[
            Binding {
                verb: "GET",
                path: "/api/v1/lamps",
                access: Access {
                    public: false,
                    owner: true,
                    member: false,
                    roles: &["admin", "auditor"],
                    scope: "",
                },
            },
        ],
    ),
    (
        "/authority.sample.v1.LampService/UpdateLamp",
        &[
            Binding {
                verb: "PATCH",
                path: "/api/v1/lamps/{id}",
                access: Access {
                    public: false,
                    owner: true,
                    member: false,
                    roles: &[],
                    scope: "lamps:write",
                },
            },
        ],
    ),
    (
        "/authority.sample.v1.LampService/WatchLamps",
        &[
            Binding {
                verb: "",
                path: "",
                access: Access {
                    public: false,
                    owner: false,
                    member: true,
                    roles: &[],
                    scope: "",
                },
            },
        ],
    ),
];
pub(crate) static READS: &[(&str, &str)] = &[];
pub(crate) static VISIBLE: &[(&str, &[VisibleField])] = &[
    (
        "lamps",
        &[
            VisibleField {
                name: "type",
                tenant: true,
                tenant_unless_human: false,
                roles: &[],
                about: false,
            },
            VisibleField {
                name: "watts",
                tenant: false,
                tenant_unless_human: false,
                roles: &["admin", "auditor"],
                about: false,
            },
            VisibleField {
                name: "owner_id",
                tenant: true,
                tenant_unless_human: false,
                roles: &[],
                about: true,
            },
        ],
    ),
];
