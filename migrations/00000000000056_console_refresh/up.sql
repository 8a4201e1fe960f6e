-- Until when one request has the turn to refresh the session's tokens; null if none has. Some providers take a
-- refresh token once and end everything of it when it comes again, so of all nodes one request sends it.

ALTER TABLE console_sessions ADD COLUMN refreshing_until timestamptz;
