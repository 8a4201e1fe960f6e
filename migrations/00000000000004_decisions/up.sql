-- Decisions and related tables. Nothing here changes except an approval's state and the response stored
-- with an idempotency key.

-- Gathered facts, each stored once by SHA-256. They refer to policies by the digest of the text, which is
-- in policy_versions.
CREATE TABLE fact_blobs (
    tenant_id text COLLATE "C" NOT NULL,
    sha256 bytea NOT NULL CHECK (length(sha256) = 32),
    body bytea NOT NULL,
    PRIMARY KEY (tenant_id, sha256)
);
CALL append_only('fact_blobs');

-- `record` is the signed text, byte for byte; the other columns are for queries. Context and facts are
-- separate, with their salts, so that they can be withheld and the record can still be verified.
CREATE TABLE decisions (
    id text COLLATE "C" NOT NULL PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL,
    subject text COLLATE "C" NOT NULL,
    action text COLLATE "C" NOT NULL,
    decision text COLLATE "C" NOT NULL,
    reason_code text COLLATE "C" NOT NULL,
    evaluated_at timestamptz NOT NULL,
    record bytea NOT NULL,
    kid text COLLATE "C" NOT NULL,
    signature bytea NOT NULL,
    context bytea NOT NULL,
    context_salt bytea NOT NULL,
    -- The facts besides the request; the gathered ones by their SHA-256.
    facts bytea NOT NULL,
    facts_salt bytea NOT NULL,
    -- The approval request that a held decision waits for; equal requests share one.
    approval_id text COLLATE "C"
) PARTITION BY RANGE (id);
-- The id starts with the time, so that one index serves a tenant's newest and a span of time.
CREATE INDEX decisions_by_tenant ON decisions (tenant_id, id);
CALL append_only('decisions');
CALL partition_by_time('decisions', 'svc:decision:');

-- A held decision waits for its approval request.
CREATE TABLE approvals (
    id text COLLATE "C" PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL,
    decision_id text COLLATE "C" NOT NULL,
    subject text COLLATE "C" NOT NULL,
    action text COLLATE "C" NOT NULL,
    reason_code text COLLATE "C" NOT NULL,
    -- SHA-256 of the request's normal form: the approval is for exactly this request.
    request_digest bytea NOT NULL,
    needed integer NOT NULL CHECK (needed > 0),
    roles text[] NOT NULL DEFAULT '{}',
    state text COLLATE "C" NOT NULL DEFAULT 'pending'
        CHECK (state IN ('pending', 'approved', 'used', 'declined', 'expired', 'void')),
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
);
-- One pending approval request for each digest: repeated requests do not add another.
CREATE UNIQUE INDEX approvals_pending ON approvals (tenant_id, request_digest)
    WHERE state = 'pending';
CALL guard('approvals');

-- The first response under an idempotency key, repeated byte for byte for 24 hours.
CREATE TABLE decision_keys (
    tenant_id text COLLATE "C" NOT NULL,
    scope text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    request_sha256 bytea NOT NULL,
    decision_id text COLLATE "C" NOT NULL,
    answer bytea NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, scope, key)
);
CREATE INDEX decision_keys_by_age ON decision_keys (created_at);
CALL guard('decision_keys');

CALL grant_to('{tenant}', 'SELECT ON approvals');
CALL grant_to('{system}', 'SELECT, UPDATE ON approvals');
CALL grant_to('{system}', 'SELECT, INSERT, DELETE ON decision_keys');

-- The recorder writes for many tenants at once, and may read only what its statements need: the columns
-- for ON CONFLICT, pending requests, the keys. No record, no context, no facts.
CALL revoke_from('{recorder}', 'SELECT ON fact_blobs, decisions');
CALL grant_to('{recorder}', 'SELECT (tenant_id, sha256) ON fact_blobs');
CALL grant_to('{recorder}', 'INSERT ON approvals');
CALL grant_to('{recorder}', 'SELECT (id, tenant_id, request_digest, state, expires_at) ON approvals');
CALL grant_to('{recorder}', 'UPDATE (state) ON approvals');
CALL grant_to('{recorder}', 'SELECT, INSERT, UPDATE (answer) ON decision_keys');
