-- How many requests an agent has pending, and what it was declined, are read by these.

-- The pending requests of an agent are counted before another one is opened.
-- exception: it has only what is pending, and reading a million of all takes about a second
CREATE INDEX approvals_pending_by_subject ON approvals (tenant_id, subject) WHERE state = 'pending';
-- What an agent was declined, for whoever is to approve something alike.
-- exception: it has only what was declined, and reading a million of all takes about a second
CREATE INDEX approvals_declined ON approvals (tenant_id, subject, action, created_at) WHERE state = 'declined';
