-- The askers of a held request, and the people behind an API key: none of them may approve it.
ALTER TABLE approvals
    -- [{kind: person | api_key, id}], each once, in the order of asking.
    ADD COLUMN requested_by jsonb[] NOT NULL DEFAULT '{}',
    -- Whether no person registered in the tenant could approve it, when it was last requested.
    ADD COLUMN eligible text COLLATE "C" CHECK (eligible = 'none');
CALL grant_to('{recorder}', 'SELECT (requested_by, eligible) ON approvals');
CALL grant_to('{recorder}', 'UPDATE (requested_by, eligible) ON approvals');

ALTER TABLE api_keys
    ADD COLUMN rotated_by text,
    -- Everyone who created or rotated the key, as `<iss>|<sub>`: a rotation does not change the key's
    -- id, so this includes its creator. Empty if the command line or a seed did.
    ADD COLUMN people text[] NOT NULL DEFAULT '{}';

ALTER TABLE tenants
    -- Whether people who asked, own the agent or delegated to it may approve if one approval is needed.
    ADD COLUMN self_approval boolean NOT NULL DEFAULT false;

-- The authority on which a person's act is checked does not change until the act has committed. Revisions
-- are read in a later statement, whose snapshot is younger than the lock. An act that changes authority
-- itself takes the fence exclusively: two with a shared fence would deadlock at commit.
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
