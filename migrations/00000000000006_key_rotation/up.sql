-- The time at which the successor key was published. It signs only later, when verifiers know it.
ALTER TABLE key_rotations ADD COLUMN begun_at timestamptz;
UPDATE key_rotations SET due_at = created_at WHERE due_at IS NULL;
ALTER TABLE key_rotations ALTER COLUMN due_at SET NOT NULL;
