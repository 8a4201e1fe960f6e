-- Whether a development server has started on this database. Production then refuses it, also where nothing else in it
-- shows that: with an external identity provider development makes no key, and seeds nothing.

CREATE TABLE development_use (
    -- One row at most.
    is_used boolean PRIMARY KEY DEFAULT true CHECK (is_used),
    since timestamptz NOT NULL DEFAULT clock_timestamp()
);
CALL grant_to('{system}', 'SELECT, INSERT ON development_use');
