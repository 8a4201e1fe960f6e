CREATE OR REPLACE PROCEDURE add_time_partition(name text, part text, lower text, upper text)
LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING CONSTRAINTS
                    INCLUDING GENERATED INCLUDING STORAGE)', part, name);
    EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%L)',
                   name, part, lower, upper);
    IF EXISTS (SELECT FROM pg_trigger
               WHERE tgrelid = format('%I', name)::regclass
                 AND tgname = 'append_only_truncate') THEN
        CALL refuse_truncation(format('%I', part)::regclass);
    END IF;
END $$;
DROP PROCEDURE copy_statistics_targets;

DO $$
DECLARE
    col name;
BEGIN
    FOR col IN SELECT attname FROM pg_attribute
               WHERE attrelid = 'decisions'::regclass AND attnum > 0 AND NOT attisdropped LOOP
        EXECUTE format('ALTER TABLE decisions ALTER COLUMN %I SET STATISTICS -1', col);
    END LOOP;
END $$;
