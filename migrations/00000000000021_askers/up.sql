-- Who asked a held question, and for whom an API key stands: none of them approves it.
ALTER TABLE approvals
    -- [{kind: person | api_key, id}], each once, in the order of asking.
    ADD COLUMN requested_by jsonb[] NOT NULL DEFAULT '{}',
    -- Nobody whom the tenant has registered could approve it, when it was last asked.
    ADD COLUMN eligible text COLLATE "C" CHECK (eligible = 'none');
CALL grant_to('{recorder}', 'SELECT (requested_by, eligible) ON approvals');
CALL grant_to('{recorder}', 'UPDATE (requested_by, eligible) ON approvals');

ALTER TABLE api_keys
    ADD COLUMN rotated_by text,
    -- Everyone who made the key or gave it a new secret, as `<iss>|<sub>`: a key keeps its id when it
    -- is rotated, so that they go back to its first. Nobody where the command line or a seed did.
    ADD COLUMN people text[] NOT NULL DEFAULT '{}';

ALTER TABLE tenants
    -- Where one approval is needed, whoever asked, owns the agent or delegated to it may give it.
    ADD COLUMN self_approval boolean NOT NULL DEFAULT false;

-- What a person's act is judged on stays as it is until the act has committed. It reads revisions in a
-- later statement, whose snapshot is younger than the lock. An act that is a change of authority itself
-- holds the fence alone: two that shared it would wait for each other when they commit.
CREATE FUNCTION hold_fence(alone boolean) RETURNS void LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    IF alone THEN
        PERFORM pg_advisory_xact_lock(4157001);
    ELSE
        PERFORM pg_advisory_xact_lock_shared(4157001);
    END IF;
END $$;
REVOKE EXECUTE ON FUNCTION hold_fence FROM PUBLIC;
CALL grant_to('{tenant,system}', 'EXECUTE ON FUNCTION hold_fence');
