ALTER TABLE event_outbox ALTER COLUMN decisions SET STORAGE EXTERNAL;
CREATE OR REPLACE PROCEDURE attach_time_partition(name text, part text, lower text, upper text)
LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING CONSTRAINTS
                    INCLUDING GENERATED INCLUDING STORAGE) WITH (toast_tuple_target = 4080)',
                   part, name);
    EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%s) TO (%L)',
                   name, part, lower, upper);
    IF EXISTS (SELECT FROM pg_trigger
               WHERE tgrelid = format('%I', name)::regclass
                 AND tgname = 'append_only_truncate') THEN
        CALL refuse_truncation(format('%I', part)::regclass);
    END IF;
END $$;

ALTER TABLE events ADD COLUMN principal_entity_id text COLLATE "C", ADD COLUMN occurred_at timestamptz;
-- Gives each event a row of its own.
SELECT set_config('role', authority_role('system'), true);
WITH taken AS (DELETE FROM events RETURNING *)
INSERT INTO events (id, tenant_id, last_sequence, event_types, principal_entity_id, occurred_at, bodies)
SELECT CASE size WHEN 1 THEN id ELSE left(id, -4) || lpad(to_hex(place - 1), 4, '0') END,
       tenant_id, last_sequence - size + place, coalesce(body ->> 'event_type', event_types),
       body ->> 'principal_entity_id', coalesce((body ->> 'occurred_at')::timestamptz, now()),
       convert_to(line, 'UTF8')
FROM taken
CROSS JOIN unnest(string_to_array(convert_from(bodies, 'UTF8'), E'\n')) WITH ORDINALITY AS each (line, place)
CROSS JOIN LATERAL (SELECT line::jsonb AS body) AS parsed;
RESET ROLE;
ALTER TABLE events DROP COLUMN size, ALTER COLUMN occurred_at SET NOT NULL;
ALTER TABLE events RENAME COLUMN bodies TO body;
ALTER TABLE events RENAME COLUMN event_types TO event_type;
ALTER TABLE events RENAME COLUMN last_sequence TO sequence;
