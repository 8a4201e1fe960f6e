-- A rotation's successor is published first and signs later; from when on it has been published.
ALTER TABLE key_rotations ADD COLUMN begun_at timestamptz;
UPDATE key_rotations SET due_at = created_at WHERE due_at IS NULL;
ALTER TABLE key_rotations ALTER COLUMN due_at SET NOT NULL;
