-- What approvers are shown, how long a request waits, and withdrawals.

ALTER TABLE approvals
    -- The authority under which it was held, and the policy statements that held it, at that time. The
    -- request itself is stored only with the decision, so that erasing it there suffices.
    ADD COLUMN authority jsonb,
    ADD COLUMN policies jsonb[] NOT NULL DEFAULT '{}';
-- Earlier requests for the same question.
CREATE INDEX approvals_by_question ON approvals (tenant_id, request_digest, created_at);

-- A withdrawn standing approval may be given again, by the same people.
ALTER TABLE approval_acts
    -- The number of earlier withdrawals for the same `about`.
    ADD COLUMN round integer NOT NULL DEFAULT 0,
    -- An approver may also withdraw.
    ADD COLUMN withdraws boolean NOT NULL DEFAULT false,
    DROP CONSTRAINT approval_acts_pkey,
    ADD PRIMARY KEY (about, person, round, withdraws);

ALTER TABLE tenants
    ADD COLUMN approval_ttl_seconds integer
        CHECK (approval_ttl_seconds BETWEEN 60 AND 2592000),
    ADD COLUMN cite_ready_approval boolean NOT NULL DEFAULT false;
