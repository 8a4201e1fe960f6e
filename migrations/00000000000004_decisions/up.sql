-- Decisions and related tables. Rows don't change, except an approval's state and the response
-- stored for an idempotency key.

-- Gathered facts, each stored once by SHA-256. They refer to policies by the digest of the policy's
-- text. The text is in policy_versions.
CREATE TABLE fact_blobs (
    tenant_id text COLLATE "C" NOT NULL,
    sha256 bytea NOT NULL CHECK (length(sha256) = 32),
    body bytea NOT NULL,
    PRIMARY KEY (tenant_id, sha256)
);
CALL append_only('fact_blobs');

-- `record` has the signed bytes; the columns before it are for queries. The context and the facts
-- are separate, with their salts. The record can be verified without them.
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
    -- The facts besides the request. The gathered facts are included by their SHA-256.
    facts bytea NOT NULL,
    facts_salt bytea NOT NULL,
    -- The approval request that a held decision waits for. Decisions on equal requests share one.
    approval_id text COLLATE "C"
) PARTITION BY RANGE (id);
-- The id starts with the time. One index therefore serves queries for a tenant's newest decisions
-- and for a range of time.
CREATE INDEX decisions_by_tenant ON decisions (tenant_id, id);
CALL append_only('decisions');
CALL partition_by_time('decisions', 'svc:decision:');

-- Approval requests, which held decisions wait for.
CREATE TABLE approvals (
    id text COLLATE "C" PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL,
    decision_id text COLLATE "C" NOT NULL,
    subject text COLLATE "C" NOT NULL,
    action text COLLATE "C" NOT NULL,
    reason_code text COLLATE "C" NOT NULL,
    -- SHA-256 of the normal form of the decision request. The approval is for exactly this request.
    request_digest bytea NOT NULL,
    needed integer NOT NULL CHECK (needed > 0),
    roles text[] NOT NULL DEFAULT '{}',
    state text COLLATE "C" NOT NULL DEFAULT 'pending'
        CHECK (state IN ('pending', 'approved', 'used', 'declined', 'expired', 'void')),
    created_at timestamptz NOT NULL,
    expires_at timestamptz NOT NULL
);
-- At most one pending approval request for each digest: repeating a decision request does not add
-- another.
CREATE UNIQUE INDEX approvals_pending ON approvals (tenant_id, request_digest)
    WHERE state = 'pending';
CALL guard('approvals');

-- The first response to each idempotency key. For 24 hours it is returned again, byte for byte.
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

-- The recorder writes for many tenants at once. It may read only the data that its statements need:
-- the columns for ON CONFLICT, pending requests and the keys. It may not read records, contexts or
-- facts.
CALL revoke_from('{recorder}', 'SELECT ON fact_blobs, decisions');
CALL grant_to('{recorder}', 'SELECT (tenant_id, sha256) ON fact_blobs');
CALL grant_to('{recorder}', 'INSERT ON approvals');
CALL grant_to('{recorder}', 'SELECT (id, tenant_id, request_digest, state, expires_at) ON approvals');
CALL grant_to('{recorder}', 'UPDATE (state) ON approvals');
CALL grant_to('{recorder}', 'SELECT, INSERT, UPDATE (answer) ON decision_keys');
