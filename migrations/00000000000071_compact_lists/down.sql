DROP INDEX decisions_by_tenant, decisions_by_subject, decisions_not_allowed;
ALTER TABLE decisions
    DROP COLUMN sort_key, DROP COLUMN subject_key, DROP COLUMN action_key, DROP COLUMN decision_key,
    DROP COLUMN reason_key;
CREATE INDEX decisions_by_tenant ON decisions (tenant_id, id);
CREATE INDEX decisions_by_subject ON decisions (tenant_id, subject, id, action, decision);
CREATE INDEX decisions_by_action ON decisions (tenant_id, action, id, decision);
CREATE INDEX decisions_by_decision ON decisions (tenant_id, decision, id);
CREATE INDEX decisions_by_reason ON decisions (tenant_id, reason_code, id, decision, subject, action)
    WHERE reason_code <> 'permission_granted';

CREATE OR REPLACE FUNCTION refuse_all_but_erasing() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    erasable CONSTANT text[] := TG_ARGV[0]::text[];
    was CONSTANT jsonb := to_jsonb(OLD);
    is_now CONSTANT jsonb := to_jsonb(NEW);
BEGIN
    IF TG_OP = 'UPDATE' AND was - erasable = is_now - erasable AND NOT EXISTS (
        SELECT FROM unnest(erasable) AS name
        WHERE is_now -> name IS DISTINCT FROM was -> name AND NOT is_erased(is_now ->> name))
    THEN
        RETURN NEW;
    END IF;
    RAISE 'table `%` is append-only: % is refused', TG_TABLE_NAME, lower(TG_OP)
        USING ERRCODE = 'restrict_violation', TABLE = TG_TABLE_NAME, CONSTRAINT = 'append_only';
END $$;
