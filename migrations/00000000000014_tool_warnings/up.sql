-- The terms that the last change of a tool made stricter for requests that name no tool.
ALTER TABLE tools ADD COLUMN warnings text[] NOT NULL DEFAULT '{}';
