-- The registry: tenants and the records around them, delegations, relationships, policies, stops.
--
-- Every reference is a pair (tenant_id, id): a row cannot refer to a row of another tenant. Foreign
-- keys are named `<table>_<column>_fkey`: the service finds the invalid field by that name.

-- A tenant's own row belongs to that tenant. The generated column `tenant_id` lets the same rules
-- apply to it as to other rows.
CREATE TABLE tenants (
    id text COLLATE "C" PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL GENERATED ALWAYS AS (id) STORED,
    state text NOT NULL,
    slug text NOT NULL,
    name text NOT NULL,
    env text NOT NULL,
    idp_org_id text,
    owner_email text,
    contract_status text NOT NULL,
    sla_tier text NOT NULL,
    region text NOT NULL,
    require_declaration boolean NOT NULL DEFAULT false,
    durability text NOT NULL,
    gate jsonb,
    valid_for_seconds integer,
    activated_at timestamptz,
    notes text,
    tags text[] NOT NULL DEFAULT '{}',
    metadata jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(),
    created_by text NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    deleted_at timestamptz,
    -- Whether each decision is sealed automatically soon after it was made.
    auto_seal boolean NOT NULL DEFAULT false,
    -- Who may open a tenant's receipts: anyone with a decision's id, or only the tenant's own
    -- credentials.
    receipts text NOT NULL DEFAULT 'public',
    -- How strictly a tenant's policies are validated, and the schema of contexts to validate them
    -- against in addition to the tools' schemas.
    policy_validation text NOT NULL DEFAULT 'enforce' CHECK (policy_validation IN ('enforce', 'warn')),
    context_schema jsonb,
    -- Whether people may approve requests that they made, or requests of agents that they own or
    -- delegated to, if only one approval is needed.
    self_approval boolean NOT NULL DEFAULT false,
    approval_ttl_seconds integer CHECK (approval_ttl_seconds BETWEEN 60 AND 2592000),
    cite_ready_approval boolean NOT NULL DEFAULT false,
    event_retention_days integer NOT NULL DEFAULT 30 CHECK (event_retention_days BETWEEN 14 AND 400),
    -- The legal hold, {reason}. While it is set, the tenant's data is not deleted by age.
    legal_hold jsonb CHECK (jsonb_typeof(legal_hold) = 'object'),
    -- {contexts_days, snapshots_days, decisions_days}: after how many days contexts and snapshots are
    -- erased, and archived decisions removed. If a number is missing, that data is kept.
    retention jsonb CHECK (jsonb_typeof(retention) = 'object'),
    -- How many decisions per second the tenant may have; NULL means no limit.
    decisions_per_second integer CHECK (decisions_per_second BETWEEN 1 AND 100000),
    -- The longest time since an approver's sign-in, in seconds; NULL means no limit.
    approval_max_auth_age_seconds integer CHECK (approval_max_auth_age_seconds BETWEEN 60 AND 86400),
    -- For how many seconds after a decline the same request is denied. NULL: as long as the
    -- declined request could have waited, at most a day.
    declined_for_seconds integer CHECK (declined_for_seconds BETWEEN 0 AND 86400),
    -- How many approval requests of one agent may be pending.
    open_requests_per_agent integer NOT NULL DEFAULT 500
        CHECK (open_requests_per_agent BETWEEN 1 AND 100000),
    -- For policies that depend on the local time. An IANA name, which the service checks against its
    -- own zone data.
    time_zone text NOT NULL DEFAULT 'UTC',
    -- Whether messages about approvals contain the title and the facts of the request.
    message_facts boolean NOT NULL DEFAULT false,
    -- Whether an admin may activate a text of a policy that they wrote themselves.
    author_activates boolean NOT NULL DEFAULT false,
    -- The settings of people's new channels for messages.
    message_defaults jsonb CHECK (jsonb_typeof(message_defaults) = 'object'),
    UNIQUE (tenant_id, id),
    UNIQUE (slug)
);
CREATE INDEX tenants_page_all ON tenants (created_at, id);
CREATE UNIQUE INDEX tenants_idp_org_id_key ON tenants (idp_org_id) WHERE deleted_at IS NULL;
CALL govern('tenants', true);

CREATE TABLE legal_entities (
    id text COLLATE "C" PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL REFERENCES tenants,
    state text NOT NULL,
    legal_name text NOT NULL,
    form text NOT NULL,
    country_code text NOT NULL,
    registration_number text,
    registered_address text,
    parent_legal_entity_id text COLLATE "C",
    notes text,
    tags text[] NOT NULL DEFAULT '{}',
    metadata jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(),
    created_by text NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (tenant_id, id),
    CONSTRAINT legal_entities_parent_legal_entity_id_fkey FOREIGN KEY (tenant_id, parent_legal_entity_id)
        REFERENCES legal_entities (tenant_id, id)
);
CREATE INDEX legal_entities_page ON legal_entities (tenant_id, created_at, id);
CREATE INDEX legal_entities_page_all ON legal_entities (created_at, id);
CREATE INDEX legal_entities_parent_legal_entity_id ON legal_entities (parent_legal_entity_id);
CALL govern('legal_entities');

CREATE TABLE billing_accounts (
    id text COLLATE "C" PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL REFERENCES tenants,
    state text NOT NULL,
    billing_email text NOT NULL,
    legal_entity_id text COLLATE "C",
    currency text,
    plan text,
    purchase_order text,
    notes text,
    tags text[] NOT NULL DEFAULT '{}',
    metadata jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(),
    created_by text NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (tenant_id, id),
    CONSTRAINT billing_accounts_legal_entity_id_fkey FOREIGN KEY (tenant_id, legal_entity_id)
        REFERENCES legal_entities (tenant_id, id)
);
CREATE INDEX billing_accounts_page ON billing_accounts (tenant_id, created_at, id);
CREATE INDEX billing_accounts_page_all ON billing_accounts (created_at, id);
CREATE INDEX billing_accounts_legal_entity_id ON billing_accounts (legal_entity_id);
CALL govern('billing_accounts');

CREATE TABLE domains (
    id text COLLATE "C" PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL REFERENCES tenants,
    state text NOT NULL,
    fqdn text NOT NULL,
    verification_method text,
    verification_token text,
    verified_at timestamptz,
    notes text,
    tags text[] NOT NULL DEFAULT '{}',
    metadata jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(),
    created_by text NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (tenant_id, id),
    UNIQUE (fqdn)
);
CREATE INDEX domains_page ON domains (tenant_id, created_at, id);
CREATE INDEX domains_page_all ON domains (created_at, id);
CALL govern('domains', secret => '{verification_token}');

CREATE TABLE workspaces (
    id text COLLATE "C" PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL REFERENCES tenants,
    state text NOT NULL,
    name text NOT NULL,
    slug text,
    description text,
    notes text,
    tags text[] NOT NULL DEFAULT '{}',
    metadata jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(),
    created_by text NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (tenant_id, id)
);
CREATE INDEX workspaces_page ON workspaces (tenant_id, created_at, id);
CREATE INDEX workspaces_page_all ON workspaces (created_at, id);
CALL govern('workspaces', true);

-- The slugs of workspaces. The row of a deleted workspace is removed, but its slug stays here and
-- is never reused.
CREATE TABLE workspace_slugs (
    tenant_id text COLLATE "C" NOT NULL,
    slug text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant_id, slug)
);

-- Runs as its owner: the service itself may neither read nor free a slug.
CREATE FUNCTION claim_workspace_slug() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp AS $$
BEGIN
    INSERT INTO workspace_slugs VALUES (NEW.tenant_id, NEW.slug);
    RETURN NULL;
END $$;
CREATE TRIGGER claim_workspace_slug AFTER INSERT ON workspaces
    FOR EACH ROW WHEN (NEW.slug IS NOT NULL) EXECUTE FUNCTION claim_workspace_slug();

CREATE TABLE projects (
    id text COLLATE "C" PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL REFERENCES tenants,
    state text NOT NULL,
    name text NOT NULL,
    workspace_id text COLLATE "C",
    visible_in_workspaces text[] COLLATE "C" NOT NULL DEFAULT '{}',
    description text,
    notes text,
    tags text[] NOT NULL DEFAULT '{}',
    metadata jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(),
    created_by text NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (tenant_id, id),
    CONSTRAINT projects_workspace_id_fkey FOREIGN KEY (tenant_id, workspace_id)
        REFERENCES workspaces (tenant_id, id)
);
CREATE INDEX projects_page ON projects (tenant_id, created_at, id);
CREATE INDEX projects_page_all ON projects (created_at, id);
CREATE INDEX projects_workspace_id ON projects (workspace_id);
CALL govern('projects', true);

CREATE TABLE teams (
    id text COLLATE "C" PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL REFERENCES tenants,
    state text NOT NULL,
    name text NOT NULL,
    workspace_id text COLLATE "C",
    description text,
    notes text,
    tags text[] NOT NULL DEFAULT '{}',
    metadata jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(),
    created_by text NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (tenant_id, id),
    CONSTRAINT teams_workspace_id_fkey FOREIGN KEY (tenant_id, workspace_id)
        REFERENCES workspaces (tenant_id, id)
);
CREATE INDEX teams_page ON teams (tenant_id, created_at, id);
CREATE INDEX teams_page_all ON teams (created_at, id);
CREATE INDEX teams_workspace_id ON teams (workspace_id);
CALL govern('teams', true);

CREATE TABLE models (
    id text COLLATE "C" PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL REFERENCES tenants,
    state text NOT NULL,
    model_provider text NOT NULL,
    model_family text NOT NULL,
    version text NOT NULL,
    risk_tier text,
    license text,
    endpoint text,
    actions text[] NOT NULL DEFAULT '{}',
    notes text,
    tags text[] NOT NULL DEFAULT '{}',
    metadata jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(),
    created_by text NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    -- Warnings about the last change: the terms that became milder for the agents that use the
    -- model.
    warnings text[] NOT NULL DEFAULT '{}',
    UNIQUE (tenant_id, id)
);
CREATE INDEX models_page ON models (tenant_id, created_at, id);
CREATE INDEX models_page_all ON models (created_at, id);
CALL govern('models', true);

CREATE TABLE principals (
    id text COLLATE "C" PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL REFERENCES tenants,
    state text NOT NULL,
    principal_class text NOT NULL,
    display_name text NOT NULL,
    name text,
    legal_entity_id text COLLATE "C",
    email text,
    external_subject text,
    model_id text COLLATE "C",
    owner_principal_id text COLLATE "C",
    notes text,
    tags text[] NOT NULL DEFAULT '{}',
    metadata jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(),
    created_by text NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    deleted_at timestamptz,
    UNIQUE (tenant_id, id),
    UNIQUE (tenant_id, name),
    CONSTRAINT principals_legal_entity_id_fkey FOREIGN KEY (tenant_id, legal_entity_id)
        REFERENCES legal_entities (tenant_id, id),
    CONSTRAINT principals_model_id_fkey FOREIGN KEY (tenant_id, model_id)
        REFERENCES models (tenant_id, id),
    CONSTRAINT principals_owner_principal_id_fkey FOREIGN KEY (tenant_id, owner_principal_id)
        REFERENCES principals (tenant_id, id)
);
CREATE INDEX principals_page ON principals (tenant_id, created_at, id);
CREATE INDEX principals_page_all ON principals (created_at, id);
CREATE UNIQUE INDEX principals_external_subject_key ON principals (tenant_id, external_subject)
    WHERE deleted_at IS NULL;
CREATE INDEX principals_legal_entity_id ON principals (legal_entity_id);
CREATE INDEX principals_model_id ON principals (model_id);
CREATE INDEX principals_owner_principal_id ON principals (owner_principal_id);
CALL govern('principals', true);

CREATE TABLE resources (
    id text COLLATE "C" PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL REFERENCES tenants,
    state text NOT NULL,
    kind text NOT NULL,
    name text NOT NULL,
    workspace_id text COLLATE "C",
    uri text,
    sensitivity text,
    owner_principal_id text COLLATE "C",
    notes text,
    tags text[] NOT NULL DEFAULT '{}',
    metadata jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(),
    created_by text NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    -- The id in the system that has the resource.
    external_id text,
    UNIQUE (tenant_id, id),
    CONSTRAINT resources_workspace_id_fkey FOREIGN KEY (tenant_id, workspace_id)
        REFERENCES workspaces (tenant_id, id),
    CONSTRAINT resources_owner_principal_id_fkey FOREIGN KEY (tenant_id, owner_principal_id)
        REFERENCES principals (tenant_id, id)
);
CREATE INDEX resources_page ON resources (tenant_id, created_at, id);
CREATE INDEX resources_page_all ON resources (created_at, id);
CREATE INDEX resources_workspace_id ON resources (workspace_id);
CREATE INDEX resources_owner_principal_id ON resources (owner_principal_id);
CREATE UNIQUE INDEX resources_external_id_key ON resources (tenant_id, kind, external_id);
CALL govern('resources', true);

CREATE TABLE tools (
    id text COLLATE "C" PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL REFERENCES tenants,
    state text NOT NULL,
    name text NOT NULL,
    function_signature text NOT NULL,
    workspace_id text COLLATE "C",
    description text,
    input_schema jsonb,
    actions text[] NOT NULL DEFAULT '{}',
    requires text[] NOT NULL DEFAULT '{}',
    access_level text,
    action_declaration jsonb,
    action_risk_classification jsonb,
    notes text,
    tags text[] NOT NULL DEFAULT '{}',
    metadata jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(),
    created_by text NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    -- Warnings about the last change: the terms that became stricter for requests that name no tool.
    warnings text[] NOT NULL DEFAULT '{}',
    -- The part of a request that the tool's schema describes: the whole context, or its field
    -- `arguments`.
    input_at text NOT NULL DEFAULT 'context' CHECK (input_at IN ('context', 'arguments')),
    -- How a request for the tool is shown to people.
    presentation jsonb,
    -- The MCP server's tool behind this record, with the state of its pin. The texts of definitions are
    -- in tool_definitions.
    mcp jsonb CHECK (jsonb_typeof(mcp) = 'object'),
    UNIQUE (tenant_id, id),
    CONSTRAINT tools_workspace_id_fkey FOREIGN KEY (tenant_id, workspace_id)
        REFERENCES workspaces (tenant_id, id)
);
CREATE INDEX tools_page ON tools (tenant_id, created_at, id);
CREATE INDEX tools_page_all ON tools (created_at, id);
CREATE INDEX tools_workspace_id ON tools (workspace_id);
-- The name of a deprecated tool may be used again.
CREATE UNIQUE INDEX tools_mcp_name_key ON tools (tenant_id, (mcp ->> 'server_id'), (mcp ->> 'name'))
    WHERE mcp IS NOT NULL AND state <> 'deprecated';
CALL govern('tools', true);

-- The definitions of MCP servers' tools: each pinned definition, and the newest seen definition of
-- each tool.
CREATE TABLE tool_definitions (
    tenant_id text COLLATE "C" NOT NULL,
    tool_id text COLLATE "C" NOT NULL,
    -- `sha256:` and the hex SHA-256 of `definition`.
    digest text COLLATE "C" NOT NULL,
    -- The tool object of the server as canonical JSON (RFC 8785).
    definition text NOT NULL,
    -- Whether a person has pinned it. Such a row is never deleted.
    pinned boolean NOT NULL DEFAULT false,
    PRIMARY KEY (tool_id, digest),
    CONSTRAINT tool_definitions_tool_id_fkey FOREIGN KEY (tenant_id, tool_id)
        REFERENCES tools (tenant_id, id)
);
CALL guard('tool_definitions');
CALL grant_to('{tenant,system}', 'SELECT, INSERT, UPDATE (pinned), DELETE ON tool_definitions');

CREATE TABLE external_apps (
    id text COLLATE "C" PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL REFERENCES tenants,
    state text NOT NULL,
    vendor_name text NOT NULL,
    connector_kind text NOT NULL,
    base_url text,
    scopes text[] NOT NULL DEFAULT '{}',
    actions text[] NOT NULL DEFAULT '{}',
    notes text,
    tags text[] NOT NULL DEFAULT '{}',
    metadata jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(),
    created_by text NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    -- The settings of an MCP server.
    mcp jsonb CHECK (jsonb_typeof(mcp) = 'object'),
    UNIQUE (tenant_id, id)
);
CREATE INDEX external_apps_page ON external_apps (tenant_id, created_at, id);
CREATE INDEX external_apps_page_all ON external_apps (created_at, id);
CREATE UNIQUE INDEX external_apps_mcp_slug_key ON external_apps (tenant_id, (mcp ->> 'slug'));
CALL govern('external_apps', true);

CREATE TABLE audit_streams (
    id text COLLATE "C" PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL REFERENCES tenants,
    state text NOT NULL,
    name text,
    sink text NOT NULL,
    target text,
    filter jsonb,
    notes text,
    tags text[] NOT NULL DEFAULT '{}',
    metadata jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(),
    created_by text NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (tenant_id, id)
);
CREATE INDEX audit_streams_page ON audit_streams (tenant_id, created_at, id);
CREATE INDEX audit_streams_page_all ON audit_streams (created_at, id);
CALL govern('audit_streams');

CREATE TABLE purposes (
    id text COLLATE "C" PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL REFERENCES tenants,
    state text NOT NULL,
    slug text NOT NULL,
    name text NOT NULL,
    allowed_actions text[] NOT NULL DEFAULT '{}',
    principal_classes text[] NOT NULL DEFAULT '{}',
    jurisdictions text[] NOT NULL DEFAULT '{}',
    not_before timestamptz,
    expires_at timestamptz,
    description text,
    notes text,
    tags text[] NOT NULL DEFAULT '{}',
    metadata jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(),
    created_by text NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (tenant_id, id),
    UNIQUE (tenant_id, slug)
);
CREATE INDEX purposes_page ON purposes (tenant_id, created_at, id);
CREATE INDEX purposes_page_all ON purposes (created_at, id);
CALL govern('purposes', true);

-- A root delegation has its own id as `root_id`. A renewed delegation has a successor, usually with a
-- later end. Both belong to one line and share its counters.
CREATE TABLE delegations (
    id text COLLATE "C" PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL REFERENCES tenants,
    state text NOT NULL,
    delegator_id text COLLATE "C" NOT NULL,
    delegate_id text COLLATE "C" NOT NULL,
    actions text[] NOT NULL DEFAULT '{}',
    purposes text[] NOT NULL DEFAULT '{}',
    jurisdictions text[] NOT NULL DEFAULT '{}',
    resource_ids text[] COLLATE "C" NOT NULL DEFAULT '{}',
    workspace_ids text[] COLLATE "C" NOT NULL DEFAULT '{}',
    max_amount text,
    currency text,
    max_risk_tier text,
    max_total_amount jsonb,
    max_uses jsonb,
    hours jsonb,
    not_before timestamptz,
    expires_at timestamptz,
    parent_id text COLLATE "C",
    can_delegate boolean NOT NULL DEFAULT false,
    needs_standing_approval boolean NOT NULL DEFAULT false,
    root_id text COLLATE "C" NOT NULL,
    depth integer NOT NULL DEFAULT 0,
    revoked_at timestamptz,
    revoke_reason text,
    notes text,
    tags text[] NOT NULL DEFAULT '{}',
    metadata jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(),
    created_by text NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    -- The people who signed the delegation's standing approval. Their signatures are in
    -- approval_acts.
    standing jsonb[] NOT NULL DEFAULT '{}',
    -- The first delegation of the line. NULL for the first one itself.
    line_id text COLLATE "C",
    -- The successor.
    renewed_by text COLLATE "C",
    UNIQUE (tenant_id, id),
    CONSTRAINT delegations_delegator_id_fkey FOREIGN KEY (tenant_id, delegator_id)
        REFERENCES principals (tenant_id, id),
    CONSTRAINT delegations_delegate_id_fkey FOREIGN KEY (tenant_id, delegate_id)
        REFERENCES principals (tenant_id, id),
    CONSTRAINT delegations_parent_id_fkey FOREIGN KEY (tenant_id, parent_id)
        REFERENCES delegations (tenant_id, id),
    CONSTRAINT delegations_root_id_fkey FOREIGN KEY (tenant_id, root_id)
        REFERENCES delegations (tenant_id, id)
);
CREATE INDEX delegations_page ON delegations (tenant_id, created_at, id);
CREATE INDEX delegations_page_all ON delegations (created_at, id);
CREATE INDEX delegations_delegator_id ON delegations (delegator_id);
CREATE INDEX delegations_delegate_id ON delegations (delegate_id);
CREATE INDEX delegations_parent_id ON delegations (parent_id);
CREATE INDEX delegations_root_id ON delegations (root_id);
CREATE INDEX delegations_expiring ON delegations (expires_at) WHERE state <> 'revoked';
-- For the number of delegations below a delegation.
CREATE INDEX delegations_live_children ON delegations (parent_id, coalesce(expires_at, 'infinity'))
    WHERE state <> 'revoked';
CALL govern('delegations', true);

-- ## Relationships

CREATE TABLE member_of (
    id text COLLATE "C" PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL REFERENCES tenants,
    team_id text COLLATE "C" NOT NULL,
    principal_id text COLLATE "C" NOT NULL,
    role text NOT NULL,
    joined_at timestamptz NOT NULL DEFAULT now(),
    left_at timestamptz,
    notes text,
    created_at timestamptz NOT NULL DEFAULT now(),
    created_by text NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (tenant_id, id),
    UNIQUE (team_id, principal_id),
    CONSTRAINT member_of_team_id_fkey FOREIGN KEY (tenant_id, team_id)
        REFERENCES teams (tenant_id, id),
    CONSTRAINT member_of_principal_id_fkey FOREIGN KEY (tenant_id, principal_id)
        REFERENCES principals (tenant_id, id)
);
CREATE INDEX member_of_page ON member_of (tenant_id, created_at, id);
CREATE INDEX member_of_page_all ON member_of (created_at, id);
CREATE INDEX member_of_principal_id ON member_of (principal_id);
CALL govern('member_of', true);

CREATE TABLE acts_in (
    id text COLLATE "C" PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL REFERENCES tenants,
    principal_id text COLLATE "C" NOT NULL,
    workspace_id text COLLATE "C" NOT NULL,
    since timestamptz NOT NULL DEFAULT now(),
    until timestamptz,
    allowed_actions_json text,
    notes text,
    created_at timestamptz NOT NULL DEFAULT now(),
    created_by text NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (tenant_id, id),
    UNIQUE (principal_id, workspace_id),
    CONSTRAINT acts_in_principal_id_fkey FOREIGN KEY (tenant_id, principal_id)
        REFERENCES principals (tenant_id, id),
    CONSTRAINT acts_in_workspace_id_fkey FOREIGN KEY (tenant_id, workspace_id)
        REFERENCES workspaces (tenant_id, id)
);
CREATE INDEX acts_in_page ON acts_in (tenant_id, created_at, id);
CREATE INDEX acts_in_page_all ON acts_in (created_at, id);
CREATE INDEX acts_in_workspace_id ON acts_in (workspace_id);
CREATE INDEX acts_in_expiring ON acts_in (until);
CALL govern('acts_in', true);

-- Access of a principal or a team to a resource or a project. A foreign key can't refer to two
-- tables.
CREATE TABLE granted_access_to (
    id text COLLATE "C" PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL REFERENCES tenants,
    resource_id text COLLATE "C" NOT NULL,
    grantee_id text COLLATE "C" NOT NULL,
    grantee_kind text NOT NULL,
    access_level text NOT NULL,
    notes text,
    created_at timestamptz NOT NULL DEFAULT now(),
    created_by text NOT NULL,
    UNIQUE (tenant_id, id),
    UNIQUE (resource_id, grantee_id, access_level)
);
CREATE INDEX granted_access_to_page ON granted_access_to (tenant_id, created_at, id);
CREATE INDEX granted_access_to_page_all ON granted_access_to (created_at, id);
CREATE INDEX granted_access_to_grantee_id ON granted_access_to (grantee_id);
CALL govern('granted_access_to', true);

-- `used_id` is the id of a record of the kind `used_kind`, or an action pattern.
CREATE TABLE uses (
    id text COLLATE "C" PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL REFERENCES tenants,
    agent_id text COLLATE "C" NOT NULL,
    used_id text COLLATE "C" NOT NULL,
    used_kind text NOT NULL,
    allowed integer DEFAULT 1 CHECK (allowed IN (0, 1)),
    since timestamptz NOT NULL DEFAULT now(),
    until timestamptz,
    constraints_json text,
    notes text,
    created_at timestamptz NOT NULL DEFAULT now(),
    created_by text NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (tenant_id, id),
    UNIQUE (agent_id, used_id, used_kind),
    CONSTRAINT uses_agent_id_fkey FOREIGN KEY (tenant_id, agent_id)
        REFERENCES principals (tenant_id, id)
);
CREATE INDEX uses_page ON uses (tenant_id, created_at, id);
CREATE INDEX uses_page_all ON uses (created_at, id);
CREATE INDEX uses_used_id ON uses (used_id);
CREATE INDEX uses_expiring ON uses (until);
CALL govern('uses', true);

-- ## Policies

-- `cedar` is the text that applies while the policy is active. A newer text that is not active yet
-- is in `draft_cedar`.
CREATE TABLE policies (
    id text COLLATE "C" PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL REFERENCES tenants,
    state text NOT NULL,
    regime text NOT NULL,
    name text,
    description text,
    cedar text,
    effective_from timestamptz,
    effective_until timestamptz,
    version integer NOT NULL DEFAULT 0,
    draft_version integer,
    draft_cedar text,
    notes text,
    tags text[] NOT NULL DEFAULT '{}',
    metadata jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(),
    created_by text NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    -- Who activated the active text, when and why.
    activated_at timestamptz,
    activated_by text,
    activation_reason text,
    -- The version that is only observing, its text, and the start of its observation.
    observing_version integer,
    observing_cedar text,
    observing_since timestamptz,
    UNIQUE (tenant_id, id),
    CHECK (num_nulls(observing_version, observing_cedar, observing_since) IN (0, 3))
);
CREATE INDEX policies_observing ON policies (tenant_id) WHERE observing_version IS NOT NULL;
CREATE INDEX policies_page ON policies (tenant_id, created_at, id);
CREATE INDEX policies_page_all ON policies (created_at, id);
CALL govern('policies', true);

CREATE TABLE policy_versions (
    policy_id text COLLATE "C" NOT NULL,
    tenant_id text COLLATE "C" NOT NULL,
    version integer NOT NULL,
    cedar text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    created_by text NOT NULL,
    -- The identity of the person who wrote it, `<iss>|<sub>`, or its code after erasure. A tenant's
    -- admin activates no text of an unknown author.
    author text,
    PRIMARY KEY (policy_id, version),
    -- In one transaction, a text is written here before its policy is written.
    CONSTRAINT policy_versions_policy_id_fkey FOREIGN KEY (tenant_id, policy_id)
        REFERENCES policies (tenant_id, id) DEFERRABLE INITIALLY DEFERRED
);
CALL append_only('policy_versions');
CALL may_erase('policy_versions', '{created_by, author}');

-- Every activation of a text. These rows are not archived.
CREATE TABLE policy_activations (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL,
    policy_id text COLLATE "C" NOT NULL,
    version integer NOT NULL,
    at timestamptz NOT NULL,
    by text NOT NULL,
    reason text,
    -- If a new policy is active at once, its activation is written here before the policy itself,
    -- in one transaction.
    CONSTRAINT policy_activations_policy_id_fkey FOREIGN KEY (tenant_id, policy_id)
        REFERENCES policies (tenant_id, id) DEFERRABLE INITIALLY DEFERRED
);
CREATE INDEX policy_activations_policy ON policy_activations (policy_id, at, id);
CALL append_only('policy_activations');
CALL may_erase('policy_activations', '{by,reason}');

-- Records every activation of a text. Writing `activated_at` means that a text is activated, even
-- if it is active already. A change of only the state or the version also means an activation. The
-- existing reason then belongs to an earlier activation and is not copied.
CREATE FUNCTION note_activation() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.state <> 'active' THEN
        RETURN NEW;
    END IF;
    IF TG_OP = 'UPDATE' AND NEW.activated_at IS NOT DISTINCT FROM OLD.activated_at THEN
        IF OLD.state = 'active' AND NEW.version = OLD.version THEN
            RETURN NEW;
        END IF;
        NEW.activation_reason := NULL;
    END IF;
    NEW.activated_at := clock_timestamp();
    NEW.activated_by := coalesce(nullif(current_setting('authority.actor', true), ''),
                                 'database:' || session_user);
    INSERT INTO policy_activations (tenant_id, policy_id, version, at, by, reason)
    VALUES (NEW.tenant_id, NEW.id, NEW.version, NEW.activated_at, NEW.activated_by,
            NEW.activation_reason);
    RETURN NEW;
END $$;
CREATE TRIGGER note_activation BEFORE INSERT OR UPDATE ON policies
    FOR EACH ROW EXECUTE FUNCTION note_activation();

-- What the decisions since `since` would have been with a version in force. A worker counts them after
-- they were committed (crates/runtime/src/observations), up to observation_cursor. A new observation
-- of the same version starts from zero.
CREATE TABLE policy_observations (
    policy_id text COLLATE "C" NOT NULL,
    tenant_id text COLLATE "C" NOT NULL,
    version integer NOT NULL,
    since timestamptz NOT NULL,
    -- NULL while the version is observing.
    ended_at timestamptz,
    would_allow bigint NOT NULL DEFAULT 0,
    would_require_approval bigint NOT NULL DEFAULT 0,
    would_deny bigint NOT NULL DEFAULT 0,
    -- The counted decisions that the version would have changed.
    would_change bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (policy_id, version),
    -- A new policy can be observing at once, as with activations.
    CONSTRAINT policy_observations_policy_id_fkey FOREIGN KEY (tenant_id, policy_id)
        REFERENCES policies (tenant_id, id) DEFERRABLE INITIALLY DEFERRED
);
CALL guard('policy_observations');
CALL grant_to('{tenant,system}', 'SELECT, INSERT, UPDATE ON policy_observations');

-- Records the start and the end of every observation. An observation ends with the policy, and when
-- its version comes into force.
CREATE FUNCTION note_observation() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.state = 'retired' OR (NEW.state = 'active' AND NEW.version = NEW.observing_version) THEN
        NEW.observing_version := NULL;
        NEW.observing_cedar := NULL;
        NEW.observing_since := NULL;
    END IF;
    IF TG_OP = 'UPDATE' AND NEW.observing_since IS NOT DISTINCT FROM OLD.observing_since THEN
        RETURN NEW;
    END IF;
    IF TG_OP = 'UPDATE' THEN
        UPDATE policy_observations SET ended_at = clock_timestamp()
        WHERE policy_id = OLD.id AND version = OLD.observing_version AND ended_at IS NULL;
    END IF;
    IF NEW.observing_version IS NOT NULL THEN
        INSERT INTO policy_observations (policy_id, tenant_id, version, since)
        VALUES (NEW.id, NEW.tenant_id, NEW.observing_version, NEW.observing_since)
        ON CONFLICT (policy_id, version) DO UPDATE
        SET since = EXCLUDED.since, ended_at = NULL,
            would_allow = 0, would_require_approval = 0, would_deny = 0, would_change = 0;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER note_observation BEFORE INSERT OR UPDATE ON policies
    FOR EACH ROW EXECUTE FUNCTION note_observation();

CREATE TABLE applies_to (
    id text COLLATE "C" PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL REFERENCES tenants,
    policy_id text COLLATE "C" NOT NULL,
    target_class text NOT NULL,
    notes text,
    created_at timestamptz NOT NULL DEFAULT now(),
    created_by text NOT NULL,
    UNIQUE (tenant_id, id),
    UNIQUE (policy_id, target_class),
    CONSTRAINT applies_to_policy_id_fkey FOREIGN KEY (tenant_id, policy_id)
        REFERENCES policies (tenant_id, id)
);
CREATE INDEX applies_to_page ON applies_to (tenant_id, created_at, id);
CREATE INDEX applies_to_page_all ON applies_to (created_at, id);
CALL govern('applies_to', true);

-- ## Stops

-- Stop signals and quarantines suspend an agent, or a part of a tenant's authority, until a person
-- lifts them.
CREATE TABLE stop_signals (
    id text COLLATE "C" PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL REFERENCES tenants,
    state text NOT NULL CHECK (state IN ('active', 'lifted')),
    actor_id text COLLATE "C" NOT NULL,
    reason text NOT NULL,
    lifted_by text,
    lift_reason text,
    created_at timestamptz NOT NULL DEFAULT now(),
    created_by text NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (tenant_id, id),
    CONSTRAINT stop_signals_actor_id_fkey FOREIGN KEY (tenant_id, actor_id)
        REFERENCES principals (tenant_id, id)
);
CREATE INDEX stop_signals_page ON stop_signals (tenant_id, created_at, id);
CREATE INDEX stop_signals_page_all ON stop_signals (created_at, id);
CREATE INDEX stop_signals_actor_id ON stop_signals (actor_id);
CALL govern('stop_signals', true);

CREATE TABLE quarantines (
    id text COLLATE "C" PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL REFERENCES tenants,
    state text NOT NULL CHECK (state IN ('active', 'released')),
    subject_id text COLLATE "C",
    action text COLLATE "C",
    delegation_id text COLLATE "C",
    reason text NOT NULL,
    released_by text,
    release_reason text,
    created_at timestamptz NOT NULL DEFAULT now(),
    created_by text NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (tenant_id, id),
    CONSTRAINT quarantines_subject_id_fkey FOREIGN KEY (tenant_id, subject_id)
        REFERENCES principals (tenant_id, id),
    CONSTRAINT quarantines_delegation_id_fkey FOREIGN KEY (tenant_id, delegation_id)
        REFERENCES delegations (tenant_id, id)
);
CREATE INDEX quarantines_page ON quarantines (tenant_id, created_at, id);
CREATE INDEX quarantines_page_all ON quarantines (created_at, id);
CREATE INDEX quarantines_subject_id ON quarantines (subject_id);
CREATE INDEX quarantines_delegation_id ON quarantines (delegation_id);
CALL govern('quarantines', true);
