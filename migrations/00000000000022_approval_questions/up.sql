-- The data shown to approvers, how long an approval request waits, and withdrawals of approvals.

ALTER TABLE approvals
    -- The authority under which the action was held, and the policy statements that held it, as of
    -- the decision. The decision request is not copied here: erasing it in the decision is then
    -- enough.
    ADD COLUMN authority jsonb,
    ADD COLUMN policies jsonb[] NOT NULL DEFAULT '{}';
-- For finding earlier approval requests with the same digest.
CREATE INDEX approvals_by_question ON approvals (tenant_id, request_digest, created_at);

-- After a standing approval was withdrawn, the same people may approve again.
ALTER TABLE approval_acts
    -- The number of earlier withdrawals for the same `about`.
    ADD COLUMN round integer NOT NULL DEFAULT 0,
    -- Whether the act withdraws the standing approval. An approver may also withdraw it.
    ADD COLUMN withdraws boolean NOT NULL DEFAULT false,
    DROP CONSTRAINT approval_acts_pkey,
    ADD PRIMARY KEY (about, person, round, withdraws);

ALTER TABLE tenants
    ADD COLUMN approval_ttl_seconds integer
        CHECK (approval_ttl_seconds BETWEEN 60 AND 2592000),
    ADD COLUMN cite_ready_approval boolean NOT NULL DEFAULT false;
