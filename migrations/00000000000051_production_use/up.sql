-- Whether production has used this database. The development mode then refuses the database,
-- because it would add publicly known people and keys.

CREATE TABLE production_use (
    -- One row at most.
    is_used boolean PRIMARY KEY DEFAULT true CHECK (is_used),
    since timestamptz NOT NULL DEFAULT clock_timestamp()
);
CALL grant_to('{system}', 'SELECT, INSERT ON production_use');

-- Called at startup before a role is set.
CREATE FUNCTION is_production() RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
AS 'SELECT EXISTS (SELECT FROM production_use)';
