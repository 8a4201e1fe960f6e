DROP PROCEDURE add_time_partition;
ALTER PROCEDURE attach_time_partition RENAME TO add_time_partition;

DO $$
DECLARE
    col name;
BEGIN
    FOR col IN SELECT attname FROM pg_attribute
               WHERE attrelid = 'decisions'::regclass AND attnum > 0 AND NOT attisdropped LOOP
        EXECUTE format('ALTER TABLE decisions ALTER COLUMN %I SET STATISTICS -1', col);
    END LOOP;
END $$;
