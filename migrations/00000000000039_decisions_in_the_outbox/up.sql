-- The recorder now writes the events of a batch's decisions into the outbox as one row for each
-- tenant. With a row for each decision, writing the row and reading the decision's record again for
-- the event took longer than storing the event.

ALTER TABLE event_outbox
    ALTER COLUMN event_type DROP NOT NULL,
    ALTER COLUMN subject_ref DROP NOT NULL,
    -- The content of the decisions' events, as JSON, in order. All other columns of the row are
    -- then NULL or have their default.
    ADD COLUMN decisions text[],
    -- The number of events in the row.
    ADD COLUMN size integer NOT NULL DEFAULT 1 CHECK (size > 0),
    ADD CONSTRAINT event_outbox_kind CHECK (
        CASE WHEN decisions IS NULL THEN num_nulls(event_type, subject_ref) = 0
             ELSE num_nonnulls(event_type, subject_ref) = 0 END);

-- The values are read once and then deleted. Compressing them would take longer than that.
ALTER TABLE event_outbox ALTER COLUMN decisions SET STORAGE EXTERNAL;
