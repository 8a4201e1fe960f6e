-- What people who approve are shown, how long a request waits, and withdrawing.

ALTER TABLE approvals
    -- The authority under which it was held, and the statements of policies that held it, as they
    -- were then. The question itself stays where the decision has it, so that erasing it there
    -- suffices.
    ADD COLUMN authority jsonb,
    ADD COLUMN policies jsonb[] NOT NULL DEFAULT '{}';
-- Earlier requests for the same question.
CREATE INDEX approvals_by_question ON approvals (tenant_id, request_digest, created_at);

-- A standing approval that was withdrawn may be given anew, by the same people.
ALTER TABLE approval_acts
    -- How often what it is about had been withdrawn before.
    ADD COLUMN round integer NOT NULL DEFAULT 0,
    -- Who approved may withdraw, too.
    ADD COLUMN withdraws boolean NOT NULL DEFAULT false,
    DROP CONSTRAINT approval_acts_pkey,
    ADD PRIMARY KEY (about, person, round, withdraws);

ALTER TABLE tenants
    ADD COLUMN approval_ttl_seconds integer
        CHECK (approval_ttl_seconds BETWEEN 60 AND 2592000),
    ADD COLUMN cite_ready_approval boolean NOT NULL DEFAULT false;
