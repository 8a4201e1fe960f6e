-- Decisions of the last twelve months and this month, for `script/bench --only lists`. The bench
-- runs this file as the database owner. To run it with psql, also as the database owner:
--
--   psql -v rows=8000000 -f benches/load/lists.sql DATABASE
--
-- There are fifty tenants; `load-00` has half of the decisions. Each tenant has 200 agents and 40
-- actions. A few agents and actions have most of the decisions. 85 % of the decisions are permitted,
-- 10 % denied and 5 % held. The agent `rare`, the action `rare.act` and the reason `x_rare` of `load-00`
-- each occur once in 400,000 decisions. Agents with even numbers never perform the second most
-- frequent action, `act.01`, and are never denied for the second most frequent reason. Rows have
-- about a third of the usual length.

-- Creates the partitions that a service has after it has run for twelve months.
DO $$
DECLARE
    made timestamptz := date_trunc('month', now(), 'UTC') - interval '12 months';
BEGIN
    SET LOCAL timezone = 'UTC';
    DROP TABLE decisions_before;
    FOR month IN 1..12 LOOP
        CALL add_time_partition('decisions', 'decisions_' || to_char(made, 'YYYYMMDD'),
            quote_literal(time_bound('svc:decision:', made)),
            time_bound('svc:decision:', made + interval '1 month'));
        made := made + interval '1 month';
    END LOOP;
END $$;

SELECT setseed(0.5);

INSERT INTO decisions (id, tenant_id, subject, action, decision, reason_code, evaluated_at, record, kid, signature,
                       context, context_salt, facts, facts_salt)
SELECT time_bound('svc:decision:', at) || md5(n::text) || substr(md5((-n)::text), 1, 20),
       'svc:tenant:load-' || tenant,
       'svc:agent:load-' || tenant || ':' || CASE WHEN rare = 7 THEN 'rare' ELSE 'bot-' || lpad(agent::text, 3, '0') END,
       CASE WHEN rare = 11 THEN 'rare.act' ELSE 'act.' || lpad(act::text, 2, '0') END,
       CASE WHEN rare = 13 OR outcome < 0.1 THEN 'deny' WHEN outcome < 0.15 THEN 'require_approval'
            WHEN outcome < 0.2 THEN 'allow' ELSE 'allow_with_constraints' END,
       CASE WHEN rare = 13 THEN 'x_rare'
            WHEN outcome < 0.1 THEN (ARRAY['constraint_exceeded', 'policy_denied', 'permission_missing',
                'delegation_expired', 'jurisdiction_unsupported', 'purpose_not_admitted', 'subject_suspended'])[reason]
            WHEN outcome < 0.15 THEN 'approval_threshold_breach' ELSE 'permission_granted' END,
       date_trunc('milliseconds', at), convert_to(repeat(md5(n::text), 12), 'UTF8'), 'svc-evidence-2026-00000000',
       decode(md5(n::text) || md5((n + 1)::text), 'hex'), '{}', '', convert_to(repeat(md5(n::text), 3), 'UTF8'), ''
FROM (SELECT n, first + (now() - interval '1 minute' - first) * (n / :rows::float8) AS at, rare, outcome,
             CASE WHEN rare IN (7, 11, 13) THEN '00' ELSE tenant END AS tenant, agent,
             CASE WHEN act = 1 AND agent % 2 = 0 THEN 0 ELSE act END AS act,
             CASE WHEN reason = 2 AND agent % 2 = 0 THEN 1 ELSE reason END AS reason
      FROM (SELECT n, date_trunc('month', now(), 'UTC') - interval '12 months' AS first, n % 400000 AS rare,
                   random() AS outcome,
                   CASE WHEN random() < 0.5 THEN '00' ELSE lpad((1 + floor(49 * random()))::text, 2, '0') END AS tenant,
                   floor(200 * random() ^ 3)::int AS agent, floor(40 * random() ^ 2)::int AS act,
                   1 + floor(7 * random() ^ 2)::int AS reason
            FROM generate_series(1, :rows) AS n OFFSET 0) AS drawn) AS made;

VACUUM (ANALYZE) decisions;
