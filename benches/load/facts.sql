-- The codes of four facts and the usage of the decisions of lists.sql, for the search and the overview of the
-- console. The bench runs this file after lists.sql, as the database owner.

-- Creates the partitions that a service has after it has run for twelve months.
DO $$
DECLARE
    made timestamptz := date_trunc('month', now(), 'UTC') - interval '12 months';
BEGIN
    SET LOCAL timezone = 'UTC';
    DROP TABLE decision_facts_before;
    FOR month IN 1..12 LOOP
        CALL add_time_partition('decision_facts', 'decision_facts_' || to_char(made, 'YYYYMMDD'),
            quote_literal(time_bound('', made)), time_bound('', made + interval '1 month'));
        made := made + interval '1 month';
    END LOOP;
END $$;

-- The workers leave these decisions out.
UPDATE usage_cursor SET counted_until = time_bound('svc:decision:', now());
UPDATE fact_cursor SET indexed_until = time_bound('svc:decision:', now());

INSERT INTO decision_facts (key, tenant_id, payee, account, document, amount)
SELECT fact_key(id), tenant_id, hashint4(floor(1000 * random())::int), hashint4(floor(1000 * random())::int),
       hashint4(floor(1e9 * random())::int), hashint4(floor(10000 * random())::int)
FROM decisions WHERE tenant_id LIKE 'svc:tenant:load-%' ORDER BY id;

INSERT INTO usage_days
SELECT tenant_id, date_trunc('day', evaluated_at, 'UTC'), subject, action, reason_code,
       count(*) FILTER (WHERE decision LIKE 'allow%'), count(*) FILTER (WHERE decision = 'require_approval'),
       count(*) FILTER (WHERE decision = 'deny')
FROM decisions WHERE tenant_id LIKE 'svc:tenant:load-%' GROUP BY 1, 2, 3, 4, 5
ON CONFLICT DO NOTHING;
INSERT INTO usage_hours
SELECT tenant_id, date_trunc('hour', evaluated_at, 'UTC'), subject, action, reason_code,
       count(*) FILTER (WHERE decision LIKE 'allow%'), count(*) FILTER (WHERE decision = 'require_approval'),
       count(*) FILTER (WHERE decision = 'deny')
FROM decisions WHERE tenant_id LIKE 'svc:tenant:load-%' AND evaluated_at > now() - interval '90 days'
GROUP BY 1, 2, 3, 4, 5
ON CONFLICT DO NOTHING;

VACUUM (ANALYZE) decision_facts, usage_days, usage_hours;
