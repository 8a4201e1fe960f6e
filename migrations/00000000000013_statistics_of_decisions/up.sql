-- Decisions are looked up by two indexes, and never by what they hold. Statistics of every column
-- took a core for half a second each time that a few hundred thousand more had been made, and
-- decisions waited behind it.

-- `LIKE` copies no statistics targets. -1 (NULL from PostgreSQL 17 on): the server's default.
CREATE PROCEDURE copy_statistics_targets(name text, part text) LANGUAGE plpgsql AS $$
DECLARE
    col record;
BEGIN
    FOR col IN SELECT attname, attstattarget FROM pg_attribute
               WHERE attrelid = format('%I', name)::regclass AND attnum > 0 AND NOT attisdropped
                 AND attstattarget >= 0 LOOP
        EXECUTE format('ALTER TABLE %I ALTER COLUMN %I SET STATISTICS %s',
                       part, col.attname, col.attstattarget);
    END LOOP;
END $$;

CREATE OR REPLACE PROCEDURE add_time_partition(name text, part text, lower text, upper text)
LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING CONSTRAINTS
                    INCLUDING GENERATED INCLUDING STORAGE)', part, name);
    CALL copy_statistics_targets(name, part);
    EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%L)',
                   name, part, lower, upper);
    IF EXISTS (SELECT FROM pg_trigger
               WHERE tgrelid = format('%I', name)::regclass
                 AND tgname = 'append_only_truncate') THEN
        CALL refuse_truncation(format('%I', part)::regclass);
    END IF;
END $$;

-- This reaches the partitions that there are. Ten: a sample of 3,000 rows is enough to see how many
-- tenants and agents there are.
ALTER TABLE decisions
    ALTER COLUMN id SET STATISTICS 10,
    ALTER COLUMN tenant_id SET STATISTICS 10,
    ALTER COLUMN subject SET STATISTICS 10,
    ALTER COLUMN action SET STATISTICS 10,
    ALTER COLUMN decision SET STATISTICS 10,
    ALTER COLUMN reason_code SET STATISTICS 10,
    ALTER COLUMN evaluated_at SET STATISTICS 10,
    ALTER COLUMN approval_id SET STATISTICS 10,
    ALTER COLUMN record SET STATISTICS 0,
    ALTER COLUMN kid SET STATISTICS 0,
    ALTER COLUMN signature SET STATISTICS 0,
    ALTER COLUMN context SET STATISTICS 0,
    ALTER COLUMN context_salt SET STATISTICS 0,
    ALTER COLUMN facts SET STATISTICS 0,
    ALTER COLUMN facts_salt SET STATISTICS 0;
