ALTER TABLE console_sessions DROP COLUMN refreshing_until;
