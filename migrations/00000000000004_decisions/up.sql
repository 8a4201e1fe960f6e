-- Decisions and what belongs to them. Nothing here is ever changed, but for an approval's state
-- and the answer kept beside an idempotency key.

-- Gathered facts, once each, named by their SHA-256. Policies stand in them by the digest of their
-- text, which policy_versions keeps.
CREATE TABLE fact_blobs (
    tenant_id text COLLATE "C" NOT NULL,
    sha256 bytea NOT NULL CHECK (length(sha256) = 32),
    body bytea NOT NULL,
    PRIMARY KEY (tenant_id, sha256)
);
CALL append_only('fact_blobs');

-- `record` is the signed text, byte for byte; the columns beside it are for finding it. Context and
-- facts stand apart with their salts, so that they can be withheld and the record still verifies.
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
    -- What the core saw beside the request; the gathered facts in it by their SHA-256.
    facts bytea NOT NULL,
    facts_salt bytea NOT NULL,
    -- The request that a held decision waits for; equal questions share one.
    approval_id text COLLATE "C"
) PARTITION BY RANGE (id);
-- Time comes first in the id, so that one index serves a tenant's newest and a span of time.
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
    -- SHA-256 of the request's normal form: the approval is for this very request.
    request_digest bytea NOT NULL,
    needed integer NOT NULL CHECK (needed > 0),
    roles text[] NOT NULL DEFAULT '{}',
    state text COLLATE "C" NOT NULL DEFAULT 'pending'
        CHECK (state IN ('pending', 'approved', 'used', 'declined', 'expired', 'void')),
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
);
-- One pending request of a kind: asking twice does not double it.
CREATE UNIQUE INDEX approvals_pending ON approvals (tenant_id, request_digest)
    WHERE state = 'pending';
CALL guard('approvals');

-- The first answer given under an idempotency key, repeated byte for byte for 24 hours.
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

-- The recorder writes for many tenants at once, and reads no more of them than its statements
-- need: what ON CONFLICT looks at, pending requests, the keys. No record, no context, no facts.
CALL revoke_from('{recorder}', 'SELECT ON fact_blobs, decisions');
CALL grant_to('{recorder}', 'SELECT (tenant_id, sha256) ON fact_blobs');
CALL grant_to('{recorder}', 'INSERT ON approvals');
CALL grant_to('{recorder}', 'SELECT (id, tenant_id, request_digest, state, expires_at) ON approvals');
CALL grant_to('{recorder}', 'UPDATE (state) ON approvals');
CALL grant_to('{recorder}', 'SELECT, INSERT, UPDATE (answer) ON decision_keys');
