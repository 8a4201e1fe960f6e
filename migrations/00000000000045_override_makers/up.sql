-- Who made an override, so that each decision can tell whether they still may: whoever becomes the agent's owner or
-- delegator later has not lifted anything for it. An override of before is of nobody, and lifts nothing.

ALTER TABLE reality_overrides ADD COLUMN makers jsonb NOT NULL DEFAULT '[]';
ALTER TABLE reality_overrides ALTER COLUMN makers DROP DEFAULT;
