DROP PROCEDURE allow_removal;
ALTER TABLE decision_reports DROP COLUMN stored_at;
ALTER TABLE replay_proofs DROP COLUMN stored_at;
DROP FUNCTION drop_archived_partitions, drop_archived_partition, wholly_archived, old_decision_partitions,
    remove_archived, remove_archived_rows, remove_archived_part, begin_removal, is_as_archived, archived_changes,
    archived_versions, removable, is_checked, may_go;
DROP POLICY bookkeeping ON tenants;
DROP POLICY bookkeeping ON decisions;
DROP POLICY bookkeeping ON evidence_packs;
DROP POLICY bookkeeping ON decision_reports;
DROP POLICY bookkeeping ON replay_proofs;
DO $$
DECLARE
    name text;
    def text;
BEGIN
    FOREACH name IN ARRAY '{decisions,evidence_packs,decision_reports,replay_proofs}'::text[] LOOP
        SELECT pg_get_triggerdef(oid) INTO def FROM pg_trigger
        WHERE tgrelid = name::regclass AND tgname = 'append_only';
        EXECUTE format('DROP TRIGGER append_only ON %I', name);
        EXECUTE format('DROP TRIGGER append_only_delete ON %I', name);
        EXECUTE replace(def, 'BEFORE UPDATE ON', 'BEFORE UPDATE OR DELETE ON');
    END LOOP;
END $$;
DROP PROCEDURE may_remove;
DROP FUNCTION refuse_all_but_removal, is_removing;
DROP TABLE archive_parts;
DROP TABLE archive_runs;
DROP TABLE archived_parts;
DROP TABLE archived_times;
DROP TABLE archives;
DROP FUNCTION keep_archive, month_start, month_end;
