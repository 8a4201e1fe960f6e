-- Decisions are found by two indexes, never by their content. Each time the table grew by a tenth,
-- analysing all columns occupied a CPU core for 0.4 to 1.9 s, and new decisions had to wait.

ALTER PROCEDURE add_time_partition RENAME TO attach_time_partition;

-- New partitions do not inherit statistics targets. A target of -1 (NULL since PostgreSQL 17) means
-- the server's default.
CREATE PROCEDURE add_time_partition(name text, part text, lower text, upper text)
LANGUAGE plpgsql AS $$
DECLARE
    col record;
BEGIN
    CALL attach_time_partition(name, part, lower, upper);
    FOR col IN SELECT attname, attstattarget FROM pg_attribute
               WHERE attrelid = format('%I', name)::regclass AND attnum > 0 AND NOT attisdropped
                 AND attstattarget >= 0 LOOP
        EXECUTE format('ALTER TABLE %I ALTER COLUMN %I SET STATISTICS %s',
                       part, col.attname, col.attstattarget);
    END LOOP;
END $$;

-- Also applies to the existing partitions. A target of 10 means a sample of 3,000 rows, which is
-- enough to estimate the number of tenants and agents.
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
