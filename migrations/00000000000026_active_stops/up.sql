-- The state of a stop signal or quarantine that applies is now called `active`, as for all other
-- records.
ALTER TABLE stop_signals DROP CONSTRAINT stop_signals_state_check;
ALTER TABLE quarantines DROP CONSTRAINT quarantines_state_check;
-- The tables' owner sees no rows: row-level security also applies to it.
SELECT set_config('role', authority_role('system'), true);
UPDATE stop_signals SET state = 'active' WHERE state = 'standing';
UPDATE quarantines SET state = 'active' WHERE state = 'standing';
-- The change log's triggers are deferred, and a table cannot be altered while they are pending.
SET CONSTRAINTS ALL IMMEDIATE;
RESET ROLE;
ALTER TABLE stop_signals
    ADD CONSTRAINT stop_signals_state_check CHECK (state IN ('active', 'lifted'));
ALTER TABLE quarantines
    ADD CONSTRAINT quarantines_state_check CHECK (state IN ('active', 'released'));
