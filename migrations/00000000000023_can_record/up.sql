-- Whether a decision could be stored now: the database is writable and the current partition
-- exists. The function inserts a row without a tenant. If the partition exists, the insert fails
-- because of the missing tenant, before anything is written. Not even a dead row remains.
CREATE FUNCTION can_record() RETURNS boolean
LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
    INSERT INTO decisions (id, tenant_id, subject, action, decision, reason_code, evaluated_at,
                           record, kid, signature, context, context_salt, facts, facts_salt)
    VALUES (time_bound('svc:decision:', clock_timestamp()), NULL, '', '', '', '',
            clock_timestamp(), '', '', '', '', '', '', '');
    RAISE 'a decision of no tenant was stored';
EXCEPTION WHEN not_null_violation THEN
    RETURN true;
END $$;
REVOKE EXECUTE ON FUNCTION can_record FROM PUBLIC;
CALL grant_to('{recorder}', 'EXECUTE ON FUNCTION can_record');
