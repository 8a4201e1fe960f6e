-- Counts the decisions of each tenant on each day, and the delegations below a delegation.

-- ## Decisions per day

-- Days are in UTC.
CREATE TABLE usage_days (
    tenant_id text COLLATE "C" NOT NULL,
    day date NOT NULL,
    allow bigint NOT NULL,
    require_approval bigint NOT NULL,
    deny bigint NOT NULL,
    PRIMARY KEY (tenant_id, day)
);
CREATE INDEX usage_days_page ON usage_days (day DESC, tenant_id);
CALL guard('usage_days');
CALL grant_to('{tenant}', 'SELECT ON usage_days');
CALL grant_to('{system}', 'SELECT, INSERT, UPDATE, DELETE ON usage_days');

-- Up to which decision the counts are complete (crates/runtime/src/usage/roll_up.rs), in one row.
CREATE TABLE usage_cursor (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    -- All decisions with lower ids are counted, and all others are not.
    counted_until text COLLATE "C" NOT NULL,
    -- The time of the last count, and the id of its transaction.
    seen_at timestamptz NOT NULL,
    seen_xid bigint NOT NULL
);
CALL grant_to('{tenant}', 'SELECT (counted_until) ON usage_cursor');
CALL grant_to('{system}', 'SELECT, UPDATE ON usage_cursor');
INSERT INTO usage_cursor (counted_until, seen_at, seen_xid)
VALUES (time_bound('svc:decision:', now() - interval '400 days'), transaction_timestamp(),
        pg_current_xact_id()::text::bigint);

-- ## The number of delegations below a delegation

CREATE INDEX delegations_live_children ON delegations (parent_id, coalesce(expires_at, 'infinity'))
    WHERE state <> 'revoked';
