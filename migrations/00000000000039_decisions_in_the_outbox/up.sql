-- Events of decisions go through the outbox together: one row for each tenant of a batch of the recorder. A row
-- for each decision, and reading its record again when it was numbered, took longer than storing the event.

ALTER TABLE event_outbox
    ALTER COLUMN event_type DROP NOT NULL,
    ALTER COLUMN subject_ref DROP NOT NULL,
    -- What their events say, as JSON, in order; then every other member of the row is NULL or its default.
    ADD COLUMN decisions text[],
    -- How many events the row becomes.
    ADD COLUMN size integer NOT NULL DEFAULT 1 CHECK (size > 0),
    ADD CONSTRAINT event_outbox_kind CHECK (
        CASE WHEN decisions IS NULL THEN num_nulls(event_type, subject_ref) = 0
             ELSE num_nonnulls(event_type, subject_ref) = 0 END);

-- They are read once and deleted: compressing them would take longer than both.
ALTER TABLE event_outbox ALTER COLUMN decisions SET STORAGE EXTERNAL;
