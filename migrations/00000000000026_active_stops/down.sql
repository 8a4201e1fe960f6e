ALTER TABLE stop_signals DROP CONSTRAINT stop_signals_state_check;
ALTER TABLE quarantines DROP CONSTRAINT quarantines_state_check;
-- The tables' owner sees no rows: row-level security also applies to it.
SELECT set_config('role', authority_role('system'), true);
UPDATE stop_signals SET state = 'standing' WHERE state = 'active';
UPDATE quarantines SET state = 'standing' WHERE state = 'active';
-- The change log's triggers are deferred, and a table cannot be altered while they are pending.
SET CONSTRAINTS ALL IMMEDIATE;
RESET ROLE;
ALTER TABLE stop_signals
    ADD CONSTRAINT stop_signals_state_check CHECK (state IN ('standing', 'lifted'));
ALTER TABLE quarantines
    ADD CONSTRAINT quarantines_state_check CHECK (state IN ('standing', 'released'));
