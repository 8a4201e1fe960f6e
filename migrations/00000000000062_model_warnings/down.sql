ALTER TABLE models DROP COLUMN warnings;
