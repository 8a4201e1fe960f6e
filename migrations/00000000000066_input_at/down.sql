ALTER TABLE tools DROP COLUMN input_at;
