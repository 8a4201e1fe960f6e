ALTER TABLE tools DROP COLUMN warnings;
