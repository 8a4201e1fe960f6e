-- What a tool's schema is about: the whole context of a request, or its member `arguments`.
ALTER TABLE tools
    ADD COLUMN input_at text NOT NULL DEFAULT 'context' CHECK (input_at IN ('context', 'arguments'));
