DROP FUNCTION forget, extend_partitions, time_bound, fence;
DROP PROCEDURE partition_by_time, add_time_partition, append_only, refuse_truncation, govern, guard;
CALL revoke_from('{tenant,system,recorder}', 'USAGE ON SCHEMA public');
DROP PROCEDURE grant_to, revoke_from;
DROP FUNCTION role_list;
DROP TABLE time_partitions, authority_changes, tenant_revisions, record_versions;
DROP FUNCTION refuse_change, raise_revision, log_change, keep_version, may_see;
