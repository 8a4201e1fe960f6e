-- Whether a development server has started on this database. Production then refuses the database.
-- Other data may not reveal it: with an external identity provider, development creates no keys and
-- adds no seed data.

CREATE TABLE development_use (
    -- One row at most.
    is_used boolean PRIMARY KEY DEFAULT true CHECK (is_used),
    since timestamptz NOT NULL DEFAULT clock_timestamp()
);
CALL grant_to('{system}', 'SELECT, INSERT ON development_use');
