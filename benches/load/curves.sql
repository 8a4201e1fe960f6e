-- Procedures that multiply the records of the demonstration tenant, for `script/bench --curves`. The bench runs this
-- file as a superuser, calls some of the procedures in the same session, and then starts the service again, which
-- reads authority at its start. The history and the log of changes do not contain these rows.
SET session_replication_role = replica;

-- Makes `count` copies of each row that meets the condition `which`, in the table `name`. The expression `change`
-- returns a copy as jsonb. It can use the original row as `r`, also jsonb, and the number of the copy as `n`.
CREATE PROCEDURE pg_temp.copy(name regclass, which text, change text, count integer) LANGUAGE plpgsql AS $$
DECLARE
    columns text;
BEGIN
    SELECT string_agg(quote_ident(attname), ', ') INTO columns FROM pg_attribute
    WHERE attrelid = name AND attnum > 0 AND NOT attisdropped AND attgenerated = '';
    EXECUTE format(
        'INSERT INTO %1$s (%2$s) SELECT %2$s
         FROM (SELECT to_jsonb(original) AS r FROM %1$s AS original WHERE %3$s) AS originals,
              generate_series(1, %4$s) AS n, LATERAL jsonb_populate_record(NULL::%1$s, %5$s) AS made',
        name, columns, which, count, change);
END $$;

-- Returns an id of the same form for another record.
CREATE FUNCTION pg_temp.other(id text, name text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT left(id, -32) || md5(name)
$$;

-- Creates the agents `bot-1` to `bot-<count>`, each with a copy of the delegation of `invoice-bot`.
CREATE PROCEDURE pg_temp.agents(count integer) LANGUAGE plpgsql AS $$
BEGIN
    CALL pg_temp.copy('principals', 'id = ''svc:agent:acme:invoice-bot''',
                      'replace(r::text, ''invoice-bot'', ''bot-'' || n)::jsonb', count);
    CALL pg_temp.copy('delegations', 'delegate_id = ''svc:agent:acme:invoice-bot''',
                      'r || jsonb_build_object(''delegate_id'', ''svc:agent:acme:bot-'' || n,
                                               ''id'', pg_temp.other(r ->> ''id'', ''bot-'' || n),
                                               ''root_id'', pg_temp.other(r ->> ''id'', ''bot-'' || n))', count);
END $$;

-- Gives an agent `count` copies of its delegation.
CREATE PROCEDURE pg_temp.delegations(agent text, count integer) LANGUAGE plpgsql AS $$
BEGIN
    CALL pg_temp.copy('delegations', format('delegate_id = %L', agent),
                      'r || jsonb_build_object(''id'', pg_temp.other(r ->> ''id'', (r ->> ''id'') || n),
                                               ''root_id'', pg_temp.other(r ->> ''id'', (r ->> ''id'') || n))', count);
END $$;

-- Creates the tenants `<prefix>1` to `<prefix><count>` with the authority of the demonstration tenant.
CREATE PROCEDURE pg_temp.tenants(prefix text, count integer) LANGUAGE plpgsql AS $$
DECLARE
    name regclass;
BEGIN
    FOREACH name IN ARRAY '{tenants,principals,workspaces,purposes,tools,delegations,policies,applies_to}'::regclass[]
    LOOP
        CALL pg_temp.copy(name, 'tenant_id = ''svc:tenant:acme''',
                          format('replace(r::text, ''acme'', %L || n)::jsonb', prefix), count);
    END LOOP;
END $$;

-- Gives a tenant `count` copies of its policy, for the actions that begin with the word in `applies`.
CREATE PROCEDURE pg_temp.policies(slug text, count integer, applies text) LANGUAGE plpgsql AS $$
DECLARE
    its text := format('tenant_id = %L', 'svc:tenant:' || slug);
BEGIN
    CALL pg_temp.copy('applies_to', its,
                      format('r || jsonb_build_object(''id'', pg_temp.other(r ->> ''id'', %1$L || n),
                                  ''policy_id'', pg_temp.other(r ->> ''policy_id'', %1$L || n),
                                  ''target_class'', %2$L)', slug, 'action:' || applies || '.*'), count);
    CALL pg_temp.copy('policies', its,
                      format('r || jsonb_build_object(''id'', pg_temp.other(r ->> ''id'', %1$L || n),
                                  ''cedar'', replace(replace(r ->> ''cedar'', ''payment-threshold'', ''threshold-'' || n),
                                                     ''"payment"'', %2$L))', slug, '"' || applies || '"'), count);
END $$;

-- Replaces the statement of a tenant's policy with `count` statements.
CREATE PROCEDURE pg_temp.statements(slug text, count integer) LANGUAGE sql AS $$
    UPDATE policies SET cedar = (SELECT string_agg(replace(cedar, 'payment-threshold', 'threshold-' || n), E'\n')
                                 FROM generate_series(1, count) AS n)
    WHERE tenant_id = 'svc:tenant:' || slug
$$;
