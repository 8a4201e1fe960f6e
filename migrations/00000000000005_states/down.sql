DROP TABLE state_proposals, state_heads, state_events, state_machines, state_library;
