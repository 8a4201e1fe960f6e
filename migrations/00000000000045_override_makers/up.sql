-- The people who made an override. Each decision checks that they may still do so: if a maker has
-- become the agent's owner or delegator since, the override does not count. Overrides from before
-- this migration have no makers and do not count.

ALTER TABLE reality_overrides ADD COLUMN makers jsonb NOT NULL DEFAULT '[]';
ALTER TABLE reality_overrides ALTER COLUMN makers DROP DEFAULT;
