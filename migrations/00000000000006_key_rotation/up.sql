-- The time since which a rotation's successor is published; it signs later.
ALTER TABLE key_rotations ADD COLUMN begun_at timestamptz;
UPDATE key_rotations SET due_at = created_at WHERE due_at IS NULL;
ALTER TABLE key_rotations ALTER COLUMN due_at SET NOT NULL;
