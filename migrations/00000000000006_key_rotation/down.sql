ALTER TABLE key_rotations DROP COLUMN begun_at;
ALTER TABLE key_rotations ALTER COLUMN due_at DROP NOT NULL;
