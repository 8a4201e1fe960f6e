-- A stop signal or quarantine that holds is `active`, as every other record in force.
ALTER TABLE stop_signals DROP CONSTRAINT stop_signals_state_check;
ALTER TABLE quarantines DROP CONSTRAINT quarantines_state_check;
-- The owner of the tables sees no row of them: row-level security binds it, too.
SELECT set_config('role', authority_role('system'), true);
UPDATE stop_signals SET state = 'active' WHERE state = 'standing';
UPDATE quarantines SET state = 'active' WHERE state = 'standing';
-- The change log's triggers wait for the commit, and no table is altered before them.
SET CONSTRAINTS ALL IMMEDIATE;
RESET ROLE;
ALTER TABLE stop_signals
    ADD CONSTRAINT stop_signals_state_check CHECK (state IN ('active', 'lifted'));
ALTER TABLE quarantines
    ADD CONSTRAINT quarantines_state_check CHECK (state IN ('active', 'released'));
