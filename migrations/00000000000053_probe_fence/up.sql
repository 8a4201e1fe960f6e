-- A decision waits for the fence before it is stored. The readiness probe now waits for it as well:
-- while another transaction locks the fence, decisions wait and the node is not ready.
CREATE OR REPLACE FUNCTION can_record() RETURNS boolean
LANGUAGE plpgsql SET search_path = public, pg_temp AS $$
BEGIN
    PERFORM pg_advisory_xact_lock_shared(4157001);
    INSERT INTO decisions (id, tenant_id, subject, action, decision, reason_code, evaluated_at,
                           record, kid, signature, context, context_salt, facts, facts_salt)
    VALUES (time_bound('svc:decision:', clock_timestamp()), NULL, '', '', '', '',
            clock_timestamp(), '', '', '', '', '', '', '');
    RAISE 'a decision of no tenant was stored';
EXCEPTION WHEN not_null_violation THEN
    RETURN true;
END $$;

-- Partitions are made three months ahead. Partitions for many years would need more locks than a
-- transaction that reads all of them may have.
CREATE OR REPLACE FUNCTION extend_partitions(until timestamptz DEFAULT now() + interval '3 months')
RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public, pg_temp SET timezone = 'UTC' AS $$
DECLARE
    each time_partitions;
    next timestamptz;
    made integer := 0;
BEGIN
    IF until > now() + interval '2 years' THEN
        RAISE 'partitions until % are not made: that is over 2 years ahead', until;
    END IF;
    PERFORM pg_advisory_xact_lock(4157002);
    FOR each IN SELECT * FROM time_partitions WHERE made_until <= until LOOP
        WHILE each.made_until <= until LOOP
            next := each.made_until + ('1 ' || each.span)::interval;
            CALL add_time_partition(
                each.table_name,
                each.table_name || '_' || to_char(each.made_until, 'YYYYMMDD'),
                quote_literal(time_bound(each.prefix, each.made_until)),
                time_bound(each.prefix, next));
            each.made_until := next;
            made := made + 1;
        END LOOP;
        UPDATE time_partitions SET made_until = each.made_until
        WHERE table_name = each.table_name;
    END LOOP;
    RETURN made;
END $$;
