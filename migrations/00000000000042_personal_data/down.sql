DROP TABLE erasures;
DROP TABLE context_retention;
DROP INDEX reality_snapshots_observed;
DO $$
BEGIN
    EXECUTE replace(pg_get_functiondef('announce_delegation'::regproc), '{created_by,state,', '{state,');
END $$;
DROP FUNCTION erase_versions;
CALL revoke_from('{system}', 'SELECT, DELETE ON notification_reads');
CALL revoke_from('{system}', 'UPDATE (caller) ON idempotency_keys');
CALL revoke_from('{system}', 'DELETE ON fact_blobs');
CALL revoke_from('{system}', 'UPDATE (context, context_salt, facts, facts_salt) ON decisions');
CALL revoke_from('{system}', 'UPDATE (person, record, by_salt, comment, comment_salt) ON approval_acts');
CALL revoke_from('{system}', 'UPDATE (reported_by, detail, record) ON decision_reports');
CALL revoke_from('{system}', 'UPDATE (created_by) ON policy_versions');
CALL revoke_from('{system}', 'UPDATE (created_by) ON state_machines');
CALL revoke_from('{system}', 'UPDATE (actor, first_actor) ON state_events');
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY '{fact_blobs,decisions,approval_acts,decision_reports,policy_versions,
                            state_machines,state_events}'::text[] LOOP
        EXECUTE format('DROP TRIGGER append_only ON %I', name);
        EXECUTE format('CREATE TRIGGER append_only BEFORE UPDATE OR DELETE ON %I
                        FOR EACH ROW EXECUTE FUNCTION refuse_change()', name);
    END LOOP;
END $$;
ALTER TABLE approval_acts DROP COLUMN by_salt, DROP COLUMN comment, DROP COLUMN comment_salt;
DROP PROCEDURE may_erase;
DROP FUNCTION refuse_all_but_erasing, is_erased, person_acted, erased_act, without_person,
    person_mentioned, person_code, person_in_scope;
ALTER TABLE tenants DROP COLUMN retention;
