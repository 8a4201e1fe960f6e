-- A row of `events` now has up to 64 consecutive events of a tenant. With a row for each event, an
-- event took 1.1 kB of write-ahead log and two index entries, more than half of what its decision
-- takes.
--
-- Three columns get another meaning, and therefore another name. The previous release would skip
-- events in shared rows. With the new names, its statements on this table fail instead, and events
-- wait for a node of this release.

-- exception: the previous release must not use it, see docs/operations/production.md
ALTER TABLE events RENAME COLUMN sequence TO last_sequence;
-- exception: the previous release must not use it, as above
ALTER TABLE events RENAME COLUMN event_type TO event_types;
-- exception: the previous release must not use it, as above
ALTER TABLE events RENAME COLUMN body TO bodies;
-- The number of events in the row. `id` is the id of the first. If there are several, its last four
-- digits are 0000, and the ids of the others have their place there, as a hexadecimal number.
-- `event_types` are all their types, with spaces between them. `bodies` are their envelopes in
-- order, with line feeds between them, which canonical JSON does not contain.
ALTER TABLE events ADD COLUMN size integer NOT NULL DEFAULT 1;
-- exception: the previous release does not read it; the envelope has both
ALTER TABLE events DROP COLUMN principal_entity_id, DROP COLUMN occurred_at;

-- The envelopes of a row differ little, and the decisions in a row of the outbox as well. lz4 makes
-- both five to ten times as short, which takes less time than writing them. PostgreSQL 14 and later
-- have lz4 if they were built with it. Without lz4, the outbox stays uncompressed, and pglz
-- compresses events.

-- As in migration 25, except for the compression.
CREATE OR REPLACE PROCEDURE attach_time_partition(name text, part text, lower text, upper text)
LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING CONSTRAINTS
                    INCLUDING GENERATED INCLUDING STORAGE %s) WITH (toast_tuple_target = 4080)',
                   part, name, CASE WHEN current_setting('server_version_num')::integer >= 140000
                                    THEN 'INCLUDING COMPRESSION' ELSE '' END);
    EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%L)',
                   name, part, lower, upper);
    IF EXISTS (SELECT FROM pg_trigger
               WHERE tgrelid = format('%I', name)::regclass
                 AND tgname = 'append_only_truncate') THEN
        CALL refuse_truncation(format('%I', part)::regclass);
    END IF;
END $$;

DO $$
DECLARE part regclass;
BEGIN
    FOR part IN SELECT relid FROM pg_partition_tree('events') LOOP
        EXECUTE format('ALTER TABLE ONLY %s ALTER COLUMN bodies SET COMPRESSION lz4', part);
    END LOOP;
    EXECUTE 'ALTER TABLE event_outbox ALTER COLUMN decisions SET COMPRESSION lz4';
    ALTER TABLE event_outbox ALTER COLUMN decisions SET STORAGE EXTENDED;
EXCEPTION WHEN feature_not_supported OR syntax_error THEN
    RAISE NOTICE 'this PostgreSQL has no lz4: events take more space';
END $$;
