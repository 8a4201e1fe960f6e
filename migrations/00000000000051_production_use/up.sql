-- Whether production has used this database. Development then refuses it: it would add people and keys that
-- anybody knows.

CREATE TABLE production_use (
    -- One row at most.
    is_used boolean PRIMARY KEY DEFAULT true CHECK (is_used),
    since timestamptz NOT NULL DEFAULT clock_timestamp()
);
CALL grant_to('{system}', 'SELECT, INSERT ON production_use');

-- Asked before anything else, without a role.
CREATE FUNCTION is_production() RETURNS boolean
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = public, pg_temp
AS 'SELECT EXISTS (SELECT FROM production_use)';
