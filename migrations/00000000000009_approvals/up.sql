-- People's approvals and declines of held decisions and delegations, and the use of counted bounds.

ALTER TABLE approvals
    -- How many people have approved so far.
    ADD COLUMN given integer NOT NULL DEFAULT 0,
    ADD COLUMN acts jsonb[] NOT NULL DEFAULT '{}',
    -- The decision that used the approval.
    ADD COLUMN used_by text COLLATE "C",
    ADD COLUMN updated_at timestamptz NOT NULL DEFAULT now(),
    ADD CHECK ((state = 'used') = (used_by IS NOT NULL));
CREATE INDEX approvals_page ON approvals (tenant_id, created_at, id);
CREATE INDEX approvals_page_all ON approvals (created_at, id);
CREATE INDEX approvals_due ON approvals (expires_at) WHERE state IN ('pending', 'approved');
CALL grant_to('{tenant}', 'UPDATE (needed, roles, given, acts, state, updated_at) ON approvals');
CALL grant_to('{recorder}', 'UPDATE (used_by, updated_at) ON approvals');

ALTER TABLE delegations
    -- The people who signed the delegation's standing approval. Their signatures are in
    -- approval_acts.
    ADD COLUMN standing jsonb[] NOT NULL DEFAULT '{}';

-- One act of one person, with the exact signed text in `record`. `about` is the id of an approval
-- or a delegation.
CREATE TABLE approval_acts (
    about text COLLATE "C" NOT NULL,
    -- Issuer and subject, which identify a person independently of names.
    person text COLLATE "C" NOT NULL,
    tenant_id text COLLATE "C" NOT NULL,
    record text NOT NULL,
    kid text COLLATE "C" NOT NULL,
    signature bytea NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (about, person)
);
CALL append_only('approval_acts');
CALL revoke_from('{recorder}', 'ALL ON approval_acts');

-- How much of each counted bound is used in each fixed time window.
CREATE TABLE counters (
    tenant_id text COLLATE "C" NOT NULL,
    -- The id of the bounded delegation, or of the bounded row of `uses`.
    holder_id text COLLATE "C" NOT NULL,
    counts text COLLATE "C" NOT NULL CHECK (counts IN ('uses', 'amount')),
    window_seconds integer NOT NULL CHECK (window_seconds > 0),
    -- Epoch seconds.
    window_start bigint NOT NULL,
    used bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (tenant_id, holder_id, counts, window_seconds, window_start)
);
CREATE INDEX counters_by_end ON counters ((window_start + window_seconds));
CALL guard('counters');
CALL grant_to('{tenant}', 'SELECT ON counters');
CALL grant_to('{system}', 'SELECT, DELETE ON counters');
CALL grant_to('{recorder}', 'SELECT, INSERT, UPDATE (used) ON counters');
