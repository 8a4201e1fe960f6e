-- Evidence: each tenant's transparency log, the packs sealed in it, and replays and reports of
-- decisions.

ALTER TABLE tenants
    -- Whether each decision is sealed automatically soon after it was made.
    ADD COLUMN auto_seal boolean NOT NULL DEFAULT false;

-- The heads of the logs. If a log is behind its last signed checkpoint (after a restore of the
-- database), it is left unchanged, and a new epoch starts with a different origin.
CREATE TABLE log_heads (
    tenant_id text COLLATE "C" NOT NULL REFERENCES tenants,
    epoch integer NOT NULL CHECK (epoch > 0),
    origin text COLLATE "C" NOT NULL UNIQUE,
    size bigint NOT NULL CHECK (size >= 0),
    root bytea NOT NULL CHECK (length(root) = 32),
    -- The last signed C2SP checkpoint.
    checkpoint text NOT NULL,
    -- The last known checkpoint of the previous epoch. The epoch's first leaf contains it.
    follows text,
    signed_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, epoch)
);
CALL guard('log_heads');
CALL grant_to('{tenant}', 'SELECT ON log_heads');
CALL grant_to('{system}', 'SELECT, INSERT, UPDATE (size, root, checkpoint, signed_at) ON log_heads');

-- The Merkle tree's complete subtrees (RFC 6962); level 0 has the hashes of the leaves. Adjacent
-- subtrees that were completed together are one row: the hash of subtree `first + i` is 32 bytes
-- from `32 * i` on.
CREATE TABLE log_nodes (
    tenant_id text COLLATE "C" NOT NULL,
    epoch integer NOT NULL,
    level smallint NOT NULL CHECK (level BETWEEN 0 AND 62),
    first bigint NOT NULL CHECK (first >= 0),
    hashes bytea NOT NULL CHECK (hashes <> '' AND length(hashes) % 32 = 0),
    -- A foreign key to the head is left out on purpose. Nodes and head are written in one
    -- transaction, and checking the key for each row would cost more than writing the row.
    PRIMARY KEY (tenant_id, epoch, level, first)
);
-- Hashes do not compress, and parts of an uncompressed value can be read separately.
ALTER TABLE log_nodes ALTER COLUMN hashes SET STORAGE EXTERNAL;
CALL append_only('log_nodes');

CREATE TABLE evidence_packs (
    decision_id text COLLATE "C" PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL,
    epoch integer NOT NULL,
    origin text COLLATE "C" NOT NULL,
    log_index bigint NOT NULL,
    -- The leaf: the pack without its `log`, in RFC 8785 form.
    body bytea NOT NULL,
    -- The C2SP tlog-proof, as it was when the pack was sealed.
    proof text NOT NULL,
    sealed_at timestamptz NOT NULL,
    UNIQUE (tenant_id, epoch, log_index)
);
CREATE INDEX approvals_used_by ON approvals (used_by) WHERE used_by IS NOT NULL;
CALL append_only('evidence_packs');

-- Signed results of replays.
CREATE TABLE replay_proofs (
    id text COLLATE "C" PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL,
    decision_id text COLLATE "C" NOT NULL REFERENCES evidence_packs,
    mode text NOT NULL,
    result text NOT NULL CHECK (result IN ('match', 'mismatch', 'indeterminate')),
    -- The signed document in RFC 8785 form.
    body bytea NOT NULL,
    created_at timestamptz NOT NULL
);
CREATE INDEX replay_proofs_of_decision ON replay_proofs (decision_id, created_at);
CALL append_only('replay_proofs');

-- Agents' reports of the outcome of permitted decisions, at most one for each decision.
CREATE TABLE decision_reports (
    decision_id text COLLATE "C" PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL,
    outcome text NOT NULL CHECK (outcome IN ('executed', 'failed', 'abandoned')),
    -- When the outcome occurred, according to the report.
    at timestamptz NOT NULL,
    detail text,
    reported_by text NOT NULL,
    -- The signed text (RFC 8785). It contains the digest of the decision's record.
    record text NOT NULL,
    kid text COLLATE "C" NOT NULL,
    signature bytea NOT NULL,
    created_at timestamptz NOT NULL
);
CALL append_only('decision_reports');
-- Only the service itself seals, with the system role.
CALL revoke_from('{tenant}', 'INSERT ON log_nodes, evidence_packs');
CALL revoke_from('{recorder}', 'ALL ON log_nodes, evidence_packs, replay_proofs, decision_reports');
