-- Webhook endpoints: where a tenant has its events sent.

CREATE TABLE webhook_endpoints (
    -- `svc:endpoint:<UUIDv7>`
    id text COLLATE "C" PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL REFERENCES tenants,
    state text NOT NULL CHECK (state IN ('active', 'paused', 'disabled', 'deleted')),
    -- Why it is not active: its key was revoked, its person suspended, 410, days of failures.
    state_reason text,
    url text NOT NULL,
    event_types text[] NOT NULL CHECK (event_types <> '{}'),
    filter text,
    retry_policy jsonb NOT NULL,
    signing_suites text[] NOT NULL CHECK (signing_suites <> '{}'),
    rate_limit_per_second integer NOT NULL CHECK (rate_limit_per_second BETWEEN 1 AND 1000),
    header_names text[] NOT NULL DEFAULT '{}',
    description text,
    -- Who made or adopted it: the API key, or the person by issuer and subject. It pauses with them.
    key_id text COLLATE "C",
    person text COLLATE "C",
    created_at timestamptz NOT NULL DEFAULT now(),
    created_by text NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    -- Sealed by the key ring; erased when the endpoint is deleted.
    secret bytea,
    previous_secret bytea,
    previous_until timestamptz,
    headers bytea,
    CHECK (state = 'deleted' OR secret IS NOT NULL),
    CHECK (state <> 'deleted' OR num_nonnulls(secret, previous_secret, headers) = 0),
    UNIQUE (tenant_id, id)
);
CREATE INDEX webhook_endpoints_page ON webhook_endpoints (tenant_id, created_at, id);
CREATE INDEX webhook_endpoints_page_all ON webhook_endpoints (created_at, id);
CREATE INDEX webhook_endpoints_key ON webhook_endpoints (key_id) WHERE key_id IS NOT NULL;
CALL govern('webhook_endpoints', secret => '{secret,previous_secret,headers}');
