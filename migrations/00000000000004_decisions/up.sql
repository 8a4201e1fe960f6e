-- Decisions and what belongs to them. Nothing here is ever changed, but for an approval's state
-- and the answer kept beside an idempotency key.

-- Large facts, once each: policy texts, authority facts. Named by their SHA-256.
CREATE TABLE fact_blobs (
    tenant_id text COLLATE "C" NOT NULL,
    sha256 bytea NOT NULL CHECK (length(sha256) = 32),
    body bytea NOT NULL,
    PRIMARY KEY (tenant_id, sha256)
);
CALL guard('fact_blobs');
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
    facts_sha256 bytea NOT NULL,
    facts_salt bytea NOT NULL
) PARTITION BY RANGE (id);
-- Time comes first in the id, so that one index serves a tenant's newest and a span of time.
CREATE INDEX decisions_by_tenant ON decisions (tenant_id, id);
CALL guard('decisions');
CALL append_only('decisions');
SELECT ensure_decision_partitions();

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
CREATE INDEX approvals_by_decision ON approvals (decision_id);
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

GRANT SELECT ON fact_blobs, decisions, approvals TO authority_tenant, authority_system;
GRANT SELECT, DELETE ON decision_keys TO authority_system;
GRANT UPDATE ON approvals TO authority_system;
GRANT INSERT ON fact_blobs, decisions, approvals, decision_keys TO authority_recorder;
-- What the recorder reads: the arbiter of ON CONFLICT, and a pending request's id. No context.
GRANT SELECT (tenant_id, sha256) ON fact_blobs TO authority_recorder;
GRANT SELECT (id, tenant_id, request_digest, state) ON approvals TO authority_recorder;
GRANT SELECT ON decision_keys TO authority_recorder;
GRANT UPDATE (answer, decision_id) ON decision_keys TO authority_recorder;
