-- Who made a held request: people, API keys, and the people who created or rotated those keys. They
-- may not approve the request.
ALTER TABLE approvals
    -- [{kind: person | api_key, id}] of everyone who made the request, each once, in the order of
    -- their first request.
    ADD COLUMN requested_by jsonb[] NOT NULL DEFAULT '{}',
    -- `none` if no person registered in the tenant could approve the request when it was last made;
    -- otherwise NULL.
    ADD COLUMN eligible text COLLATE "C" CHECK (eligible = 'none');
CALL grant_to('{recorder}', 'SELECT (requested_by, eligible) ON approvals');
CALL grant_to('{recorder}', 'UPDATE (requested_by, eligible) ON approvals');

ALTER TABLE api_keys
    ADD COLUMN rotated_by text,
    -- Everyone who created or rotated the key, as `<iss>|<sub>`. A rotation does not change the
    -- key's id. The list therefore includes the creator and everyone who rotated the key. Empty if
    -- the command line or a seed created the key.
    ADD COLUMN people text[] NOT NULL DEFAULT '{}';

ALTER TABLE tenants
    -- Whether people may approve requests that they made, or requests of agents that they own or
    -- delegated to, if only one approval is needed.
    ADD COLUMN self_approval boolean NOT NULL DEFAULT false;

-- Locks the fence: until this transaction ends, the authority on which a person's act is checked
-- can't change. Revisions must be read in a later statement, with a snapshot that is newer than the
-- lock. An act that itself changes authority sets `alone`: two such acts with a shared lock would
-- deadlock at commit.
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
