-- Warnings about the last change of a tool: the terms that became stricter for requests that name
-- no tool.
ALTER TABLE tools ADD COLUMN warnings text[] NOT NULL DEFAULT '{}';
