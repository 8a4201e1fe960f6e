-- Terms that the last change of a model made milder for the agents that run on it.
ALTER TABLE models ADD COLUMN warnings text[] NOT NULL DEFAULT '{}';
