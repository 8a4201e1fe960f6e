-- Stop signals and quarantines. They suspend an agent, or a part of a tenant's authority, until a
-- person lifts them.

CREATE TABLE stop_signals (
    id text COLLATE "C" PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL REFERENCES tenants,
    state text NOT NULL CHECK (state IN ('standing', 'lifted')),
    actor_id text COLLATE "C" NOT NULL,
    reason text NOT NULL,
    lifted_by text,
    created_at timestamptz NOT NULL DEFAULT now(),
    created_by text NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (tenant_id, id),
    CONSTRAINT stop_signals_actor_id_fkey FOREIGN KEY (tenant_id, actor_id)
        REFERENCES principals (tenant_id, id)
);
CREATE INDEX stop_signals_page ON stop_signals (tenant_id, created_at, id);
CREATE INDEX stop_signals_page_all ON stop_signals (created_at, id);
CREATE INDEX stop_signals_actor_id ON stop_signals (actor_id);
CALL govern('stop_signals', true);

CREATE TABLE quarantines (
    id text COLLATE "C" PRIMARY KEY,
    tenant_id text COLLATE "C" NOT NULL REFERENCES tenants,
    state text NOT NULL CHECK (state IN ('standing', 'released')),
    subject_id text COLLATE "C",
    action text COLLATE "C",
    delegation_id text COLLATE "C",
    reason text NOT NULL,
    released_by text,
    created_at timestamptz NOT NULL DEFAULT now(),
    created_by text NOT NULL,
    updated_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (tenant_id, id),
    CONSTRAINT quarantines_subject_id_fkey FOREIGN KEY (tenant_id, subject_id)
        REFERENCES principals (tenant_id, id),
    CONSTRAINT quarantines_delegation_id_fkey FOREIGN KEY (tenant_id, delegation_id)
        REFERENCES delegations (tenant_id, id)
);
CREATE INDEX quarantines_page ON quarantines (tenant_id, created_at, id);
CREATE INDEX quarantines_page_all ON quarantines (created_at, id);
CREATE INDEX quarantines_subject_id ON quarantines (subject_id);
CREATE INDEX quarantines_delegation_id ON quarantines (delegation_id);
CALL govern('quarantines', true);
