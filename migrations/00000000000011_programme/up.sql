-- The consultant programme. Consultants, their certifications and leads belong to the installation;
-- links to tenants and brands belong to a tenant. Rows are never removed.

-- ## The installation's records

-- These records belong to no tenant. Their tenant id is empty, which is never the id of a tenant.
CREATE TABLE consultants (
    -- `svc:consultant:<UUIDv7>`
    id text COLLATE "C" PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL GENERATED ALWAYS AS ('') STORED,
    status text NOT NULL
        CHECK (status IN ('applied', 'onboarding', 'certified', 'suspended', 'retired')),
    display_name text NOT NULL,
    email text NOT NULL,
    legal_name text,
    phone text,
    country text,
    sectors text[] NOT NULL DEFAULT '{}',
    languages text[] NOT NULL DEFAULT '{}',
    bio text,
    website text,
    linkedin text,
    -- Only a label. The live certifications determine the consultant's levels.
    certification_level text CHECK (certification_level IN ('associate', 'professional', 'master')),
    attribution_kid text,
    -- Whether the public directory may show the consultant.
    listed boolean NOT NULL,
    suspended_at timestamptz,
    suspend_reason text,
    notes text,
    tags text[] NOT NULL DEFAULT '{}',
    metadata jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(),
    created_by text NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    deleted_at timestamptz
);
CREATE UNIQUE INDEX consultants_email_key ON consultants (lower(email)) WHERE deleted_at IS NULL;
CREATE INDEX consultants_page ON consultants (created_at, id);
CALL govern('consultants');

CREATE TABLE certifications (
    -- `svc:certification:<UUIDv7>`
    id text COLLATE "C" PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL GENERATED ALWAYS AS ('') STORED,
    consultant_id text COLLATE "C" NOT NULL REFERENCES consultants,
    level text NOT NULL CHECK (level IN ('associate', 'professional', 'master')),
    program text,
    not_before timestamptz,
    -- The end of validity, exclusive.
    not_after timestamptz,
    evidence_pack_id text COLLATE "C",
    -- The signed text (RFC 8785).
    signed text NOT NULL,
    -- Whether this service's key or a trusted issuer's key signed it.
    signed_by text NOT NULL CHECK (signed_by IN ('service', 'issuer')),
    signature_kid text NOT NULL,
    signature_value_b64 text NOT NULL,
    revoked_at timestamptz,
    revoke_reason text,
    created_at timestamptz NOT NULL DEFAULT now(),
    created_by text NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    deleted_at timestamptz
);
CREATE INDEX certifications_consultant_id ON certifications (consultant_id);
CREATE INDEX certifications_page ON certifications (created_at, id);
CALL govern('certifications');

-- Whether a certification is valid at a time. Callers must also check the consultant's status.
CREATE FUNCTION certification_holds(
    revoked_at timestamptz, deleted_at timestamptz, not_before timestamptz, not_after timestamptz,
    moment timestamptz
) RETURNS boolean LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT revoked_at IS NULL AND deleted_at IS NULL
       AND (not_before IS NULL OR not_before <= moment)
       AND (not_after IS NULL OR moment < not_after)
$$;

-- ## A tenant's records

CREATE TABLE consultant_links (
    -- `svc:link:<UUIDv7>`
    id text COLLATE "C" PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL REFERENCES tenants,
    consultant_id text COLLATE "C" NOT NULL REFERENCES consultants,
    -- The agreed scope. It grants no rights.
    scope text NOT NULL CHECK (scope IN ('view_only', 'operate', 'attest')),
    status text NOT NULL CHECK (status IN ('invited', 'active', 'revoked')),
    accepted_at timestamptz,
    revoked_at timestamptz,
    revoke_reason text,
    created_at timestamptz NOT NULL DEFAULT now(),
    created_by text NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    deleted_at timestamptz,
    UNIQUE (tenant_id, id)
);
CREATE UNIQUE INDEX consultant_links_consultant_id_key ON consultant_links (consultant_id, tenant_id)
    WHERE deleted_at IS NULL AND status <> 'revoked';
CREATE INDEX consultant_links_page ON consultant_links (tenant_id, created_at, id);
CREATE INDEX consultant_links_page_all ON consultant_links (created_at, id);
CALL govern('consultant_links');

CREATE TABLE white_label_configs (
    -- `svc:brand:<UUIDv7>`
    id text COLLATE "C" PRIMARY KEY,
    tenant_id text COLLATE "C" REFERENCES tenants,
    consultant_id text COLLATE "C" NOT NULL REFERENCES consultants,
    status text NOT NULL CHECK (status IN ('draft', 'active', 'archived')),
    brand_name text NOT NULL,
    primary_colour_hex text,
    secondary_colour_hex text,
    logo_url text,
    domain text,
    support_email text,
    legal_footer text,
    notes text,
    created_at timestamptz NOT NULL DEFAULT now(),
    created_by text NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    deleted_at timestamptz,
    CHECK (status <> 'active' OR tenant_id IS NOT NULL)
);
CREATE UNIQUE INDEX white_label_configs_active_key ON white_label_configs (tenant_id)
    WHERE status = 'active' AND deleted_at IS NULL;
CREATE UNIQUE INDEX white_label_configs_domain_key ON white_label_configs (domain)
    WHERE status <> 'archived' AND deleted_at IS NULL;
CREATE INDEX white_label_configs_page ON white_label_configs (tenant_id, created_at, id);
CREATE INDEX white_label_configs_page_all ON white_label_configs (created_at, id);
CREATE INDEX white_label_configs_consultant_id ON white_label_configs (consultant_id);
CALL govern('white_label_configs');

-- ## Leads

CREATE TABLE leads (
    -- `svc:lead:<UUIDv7>`
    id text COLLATE "C" PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL GENERATED ALWAYS AS ('') STORED,
    status text NOT NULL CHECK (status IN ('captured', 'qualified', 'converted', 'rejected')),
    submitter_email text NOT NULL,
    submitter_name text,
    organisation text,
    sector text,
    country text,
    message text,
    consent_marketing boolean NOT NULL DEFAULT false,
    consent_at timestamptz,
    -- Where the consent was given.
    consent_source text,
    consent_withdrawn_at timestamptz,
    source text,
    utm jsonb NOT NULL DEFAULT '{}',
    assigned_consultant_id text COLLATE "C" REFERENCES consultants,
    converted_tenant_id text COLLATE "C" REFERENCES tenants,
    created_at timestamptz NOT NULL DEFAULT now(),
    created_by text NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    deleted_at timestamptz
);
CREATE INDEX leads_page ON leads (created_at, id);
CREATE INDEX leads_assigned_consultant_id ON leads (assigned_consultant_id);
CALL govern('leads');

-- ## Data that a tenant sees

-- A tenant's role can't write these tables. It can read only the columns that operations show to
-- the tenant's people.
CALL revoke_from('{tenant}',
    'ALL ON consultants, certifications, consultant_links, white_label_configs, leads');
CALL grant_to('{tenant}', 'SELECT (id, status, display_name, email, country, sectors, languages, bio,
    website, certification_level, created_at, deleted_at) ON consultants');
CALL grant_to('{tenant}', 'SELECT (id, consultant_id, level, program, not_before, not_after, signed,
    signature_kid, signature_value_b64, revoked_at, created_at, deleted_at) ON certifications');
CALL grant_to('{tenant}', 'SELECT (id, tenant_id, consultant_id, scope, status, accepted_at, revoked_at,
    created_at, updated_at, deleted_at) ON consultant_links');
CALL grant_to('{tenant}', 'SELECT (id, tenant_id, consultant_id, status, brand_name, primary_colour_hex,
    secondary_colour_hex, logo_url, domain, support_email, legal_footer, deleted_at)
    ON white_label_configs');

-- A tenant sees the consultants with an active link to the tenant. The policy of consultant_links
-- shows a tenant only its own links.
DO $$
BEGIN
    EXECUTE format('CREATE POLICY linked ON consultants FOR SELECT TO %s USING (
        deleted_at IS NULL AND EXISTS (
            SELECT FROM consultant_links AS link
            WHERE link.consultant_id = consultants.id AND link.status = ''active''
              AND link.deleted_at IS NULL))', role_list('tenant'));
    EXECUTE format('CREATE POLICY linked ON certifications FOR SELECT TO %s USING (
        deleted_at IS NULL AND EXISTS (
            SELECT FROM consultant_links AS link
            WHERE link.consultant_id = certifications.consultant_id AND link.status = ''active''
              AND link.deleted_at IS NULL))', role_list('tenant'));
END $$;

-- ## Anonymous callers

-- A key for each day, encrypted under the key ring. Callers' IP addresses are stored only as codes
-- made with the day's key. After the key is deleted, the codes can't be linked to addresses.
CREATE TABLE address_keys (
    day date PRIMARY KEY,
    sealed bytea NOT NULL
);
CALL grant_to('{system}', 'SELECT, INSERT, DELETE ON address_keys');

-- The number of calls in the current time window, by kind and by the code of an address. The row
-- with an empty code counts the calls of all addresses.
CREATE TABLE anonymous_calls (
    kind text COLLATE "C" NOT NULL,
    address bytea NOT NULL,
    since timestamptz NOT NULL,
    calls integer NOT NULL,
    PRIMARY KEY (kind, address)
) WITH (fillfactor = 50);
CREATE INDEX anonymous_calls_since ON anonymous_calls (since);
CALL grant_to('{system}', 'SELECT, INSERT, UPDATE, DELETE ON anonymous_calls');

-- Digests of the enquiries of the last day, to store a repeated enquiry only once.
CREATE TABLE lead_repeats (
    digest bytea PRIMARY KEY,
    at timestamptz NOT NULL
);
CREATE INDEX lead_repeats_at ON lead_repeats (at);
CALL grant_to('{system}', 'SELECT, INSERT, UPDATE, DELETE ON lead_repeats');
