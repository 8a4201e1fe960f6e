-- Warnings about the last change of a model: the terms that became milder for the agents that use
-- it.
ALTER TABLE models ADD COLUMN warnings text[] NOT NULL DEFAULT '{}';
