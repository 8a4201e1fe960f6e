-- The time until which one request may refresh the session's tokens; NULL if no request is doing
-- so. Some providers accept a refresh token only once, and revoke all tokens of the session if it
-- is reused. Therefore only one request at a time, across all nodes, sends it.

ALTER TABLE console_sessions ADD COLUMN refreshing_until timestamptz;
