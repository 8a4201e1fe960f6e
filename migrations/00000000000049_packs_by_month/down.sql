-- Packs that were sealed since this migration can't be converted to the old form. If there are any,
-- the downgrade fails.
DO $$
BEGIN
    PERFORM set_config('role', authority_role('system'), true);
    IF EXISTS (SELECT FROM evidence_packs
               WHERE tree_size IS NOT NULL OR tableoid <> 'evidence_packs_before'::regclass) THEN
        RAISE 'packs were sealed since this migration, and the release before it cannot read them';
    END IF;
    PERFORM set_config('role', 'none', true);
END $$;
DELETE FROM time_partitions WHERE table_name = 'evidence_packs';
ALTER TABLE log_heads DROP COLUMN last_decision_id;
DROP TABLE log_checkpoints;
ALTER TABLE evidence_packs DETACH PARTITION evidence_packs_before;
DROP TABLE evidence_packs;
ALTER TABLE evidence_packs_before RENAME TO evidence_packs;
ALTER INDEX evidence_packs_before_pkey RENAME TO evidence_packs_pkey;
ALTER TABLE evidence_packs
    DROP CONSTRAINT evidence_packs_form,
    DROP COLUMN tree_size,
    ALTER COLUMN origin SET NOT NULL,
    ALTER COLUMN body SET NOT NULL,
    ALTER COLUMN proof SET NOT NULL;
DROP TRIGGER append_only_truncate ON evidence_packs;
CALL append_only('evidence_packs');
CALL revoke_from('{tenant}', 'INSERT ON evidence_packs');
CALL revoke_from('{recorder}', 'ALL ON evidence_packs');
CREATE TRIGGER announce AFTER INSERT ON evidence_packs
    REFERENCING NEW TABLE AS packs FOR EACH STATEMENT EXECUTE FUNCTION announce_packs();
ALTER TABLE replay_proofs
    ADD CONSTRAINT replay_proofs_decision_id_fkey FOREIGN KEY (decision_id) REFERENCES evidence_packs;
