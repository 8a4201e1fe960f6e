-- The part of a request that a tool's schema describes: the whole context, or its field
-- `arguments`.
ALTER TABLE tools
    ADD COLUMN input_at text NOT NULL DEFAULT 'context' CHECK (input_at IN ('context', 'arguments'));
