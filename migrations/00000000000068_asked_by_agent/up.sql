-- Indexes for an agent's pending and declined requests.

-- The pending requests of an agent are counted before another one is opened.
-- exception: it has only pending requests, and reading a million requests takes about a second
CREATE INDEX approvals_pending_by_subject ON approvals (tenant_id, subject) WHERE state = 'pending';
-- An agent's declined requests, for people who approve a similar request.
-- exception: it has only declined requests, and reading a million requests takes about a second
CREATE INDEX approvals_declined ON approvals (tenant_id, subject, action, created_at) WHERE state = 'declined';
