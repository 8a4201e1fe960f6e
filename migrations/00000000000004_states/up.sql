-- State machines and their events. Their rows never change. A record's current state is stored in
-- state_heads, and each state change locks that row.

CREATE TABLE state_library (
    id text COLLATE "C" NOT NULL,
    version text COLLATE "C" NOT NULL,
    category text COLLATE "C" NOT NULL,
    body jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (id, version)
);
CALL grant_to('{system}', 'SELECT, INSERT ON state_library');

-- Machines without a tenant are the installation's own, which no tenant's role can see.
CREATE TABLE state_machines (
    id text COLLATE "C" PRIMARY KEY,
    tenant_id text COLLATE "C" REFERENCES tenants,
    entity_class text COLLATE "C" NOT NULL,
    title text,
    description text,
    states text[] NOT NULL,
    initial_state text NOT NULL,
    final_states text[] NOT NULL DEFAULT '{}',
    transitions jsonb[] NOT NULL DEFAULT '{}',
    state_descriptions jsonb NOT NULL DEFAULT '{}',
    library_id text COLLATE "C",
    library_version text COLLATE "C",
    notes text,
    tags text[] NOT NULL DEFAULT '{}',
    metadata jsonb NOT NULL DEFAULT '{}',
    created_at timestamptz NOT NULL DEFAULT now(),
    created_by text NOT NULL,
    -- The library's versions that machines were created from can't be deleted.
    FOREIGN KEY (library_id, library_version) REFERENCES state_library (id, version)
);
CREATE INDEX state_machines_page ON state_machines (tenant_id, created_at, id);
CREATE INDEX state_machines_page_all ON state_machines (created_at, id);
CALL append_only('state_machines');
CALL may_erase('state_machines', '{created_by}');
CREATE TRIGGER keep_version AFTER INSERT ON state_machines
    FOR EACH ROW EXECUTE FUNCTION keep_version('tenant_id', '{}', '{}');

CREATE TABLE state_events (
    id text COLLATE "C" PRIMARY KEY,
    tenant_id text COLLATE "C" REFERENCES tenants,
    machine_id text COLLATE "C" NOT NULL REFERENCES state_machines,
    entity_id text COLLATE "C" NOT NULL,
    sequence integer NOT NULL CHECK (sequence > 0),
    from_state text,
    to_state text NOT NULL,
    trigger text,
    actor text NOT NULL,
    first_actor text CHECK (first_actor <> actor),
    reason text,
    evidence_refs text[] NOT NULL DEFAULT '{}',
    compensates_event_id text COLLATE "C" REFERENCES state_events,
    previous_digest text,
    digest text NOT NULL,
    created_at timestamptz NOT NULL,
    CHECK ((sequence = 1) = (previous_digest IS NULL)),
    UNIQUE (machine_id, entity_id, sequence),
    -- An event is compensated at most once.
    UNIQUE (compensates_event_id)
);
CREATE INDEX state_events_of_machine ON state_events (machine_id, created_at DESC, id DESC);
CREATE INDEX state_events_of_entity ON state_events (entity_id, created_at DESC, id DESC);
CALL append_only('state_events');
CALL may_erase('state_events', '{actor,first_actor}');
CALL revoke_from('{recorder}', 'ALL ON state_machines, state_events');

-- The current state of each record, according to its last event.
CREATE TABLE state_heads (
    machine_id text COLLATE "C" NOT NULL REFERENCES state_machines,
    entity_id text COLLATE "C" NOT NULL,
    tenant_id text COLLATE "C",
    state text,
    sequence integer NOT NULL DEFAULT 0,
    digest text,
    PRIMARY KEY (machine_id, entity_id)
);
CALL guard('state_heads');
CALL grant_to('{tenant,system}', 'SELECT, INSERT, UPDATE ON state_heads');

-- State changes that wait for a second person.
CREATE TABLE state_proposals (
    machine_id text COLLATE "C" NOT NULL,
    entity_id text COLLATE "C" NOT NULL,
    tenant_id text COLLATE "C",
    -- The head's sequence at the time of the request. If the head changes, the proposal is void.
    sequence integer NOT NULL,
    trigger text NOT NULL,
    actor text NOT NULL,
    -- Issuer and subject, which identify a person independently of names.
    person text NOT NULL,
    compensates_event_id text COLLATE "C",
    evidence_refs text[] NOT NULL,
    created_at timestamptz NOT NULL,
    PRIMARY KEY (machine_id, entity_id),
    FOREIGN KEY (machine_id, entity_id) REFERENCES state_heads
);
CALL guard('state_proposals');
CALL grant_to('{tenant,system}', 'SELECT, INSERT, UPDATE, DELETE ON state_proposals');
