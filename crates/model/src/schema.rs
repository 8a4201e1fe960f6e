//! @generated: the tables as the migrations make them. Written by `AUTHORITY_UPDATE=1 cargo test --test it schema`.

diesel::table! {
    acts_in (id) {
        id -> Text,
        tenant_id -> Text,
        principal_id -> Text,
        workspace_id -> Text,
        since -> Timestamptz,
        until -> Nullable<Timestamptz>,
        allowed_actions_json -> Nullable<Text>,
        notes -> Nullable<Text>,
        created_at -> Timestamptz,
        created_by -> Text,
        updated_at -> Timestamptz,
    }
}

diesel::table! {
    address_keys (day) {
        day -> Date,
        sealed -> Bytea,
    }
}

diesel::table! {
    announced_expiries (id, expired_at) {
        id -> Text,
        expired_at -> Timestamptz,
        tenant_id -> Text,
    }
}

diesel::table! {
    anonymous_calls (kind, address) {
        kind -> Text,
        address -> Bytea,
        since -> Timestamptz,
        calls -> Int4,
    }
}

diesel::table! {
    api_keys (id) {
        id -> Text,
        tenant_id -> Text,
        label -> Text,
        prefix -> Text,
        scopes -> Array<Text>,
        principal_ids -> Array<Text>,
        ip_allowlist -> Array<Text>,
        status -> Text,
        expires_at -> Nullable<Timestamptz>,
        last_used_at -> Nullable<Timestamptz>,
        rotated_at -> Nullable<Timestamptz>,
        revoked_at -> Nullable<Timestamptz>,
        notes -> Nullable<Text>,
        created_at -> Timestamptz,
        created_by -> Text,
        updated_at -> Timestamptz,
        secret_code -> Bytea,
        previous_code -> Nullable<Bytea>,
        previous_until -> Nullable<Timestamptz>,
        rotated_by -> Nullable<Text>,
        people -> Array<Text>,
        people_emails -> Array<Text>,
        decisions_per_second -> Nullable<Int4>,
    }
}

diesel::table! {
    applies_to (id) {
        id -> Text,
        tenant_id -> Text,
        policy_id -> Text,
        target_class -> Text,
        notes -> Nullable<Text>,
        created_at -> Timestamptz,
        created_by -> Text,
    }
}

diesel::table! {
    approval_acts (about, person, round, withdraws) {
        about -> Text,
        person -> Text,
        tenant_id -> Text,
        record -> Text,
        kid -> Text,
        signature -> Bytea,
        created_at -> Timestamptz,
        round -> Int4,
        withdraws -> Bool,
        by_salt -> Nullable<Text>,
        comment -> Nullable<Text>,
        comment_salt -> Nullable<Text>,
    }
}

diesel::table! {
    approval_askers (key_id, created_at, approval_id) {
        key_id -> Text,
        created_at -> Timestamptz,
        approval_id -> Text,
        tenant_id -> Text,
    }
}

diesel::table! {
    approval_facts (tenant_id, role, value, created_at, approval_id) {
        tenant_id -> Text,
        role -> Text,
        value -> Bytea,
        created_at -> Timestamptz,
        approval_id -> Text,
        decision_id -> Text,
    }
}

diesel::table! {
    approvals (id) {
        id -> Text,
        tenant_id -> Text,
        decision_id -> Text,
        subject -> Text,
        action -> Text,
        reason_code -> Text,
        request_digest -> Bytea,
        needed -> Int4,
        roles -> Array<Text>,
        state -> Text,
        created_at -> Timestamptz,
        expires_at -> Timestamptz,
        given -> Int4,
        acts -> Array<Jsonb>,
        used_by -> Nullable<Text>,
        updated_at -> Timestamptz,
        requested_by -> Array<Jsonb>,
        eligible -> Nullable<Text>,
        authority -> Nullable<Jsonb>,
        policies -> Array<Jsonb>,
        asker_emails -> Array<Text>,
        reality -> Array<Jsonb>,
        declined_at -> Nullable<Timestamptz>,
        declined_for_seconds -> Nullable<Int4>,
        reopened_at -> Nullable<Timestamptz>,
        void_reason -> Nullable<Text>,
        justification -> Nullable<Text>,
    }
}

diesel::table! {
    archive_parts (tenant_id, month, part) {
        tenant_id -> Text,
        month -> Text,
        part -> Int4,
        decisions -> Int8,
        first_id -> Text,
        last_id -> Text,
        name -> Text,
        bytes -> Int8,
        sha256 -> Bytea,
        index_name -> Text,
        index_bytes -> Int8,
        index_sha256 -> Bytea,
    }
}

diesel::table! {
    archive_runs (tenant_id, month) {
        tenant_id -> Text,
        month -> Text,
        begun_at -> Timestamptz,
        lease -> Text,
        leased_until -> Timestamptz,
        written -> Array<Text>,
    }
}

diesel::table! {
    archived_parts (tenant_id, month, part) {
        tenant_id -> Text,
        month -> Text,
        part -> Int4,
        decisions -> Int8,
        first_id -> Text,
        last_id -> Text,
        has_others -> Bool,
    }
}

diesel::table! {
    archived_times (hour, tenant_id) {
        tenant_id -> Text,
        month -> Text,
        hour -> Int4,
        times -> Bytea,
    }
}

diesel::table! {
    archives (tenant_id, month) {
        tenant_id -> Text,
        month -> Text,
        lower -> Text,
        upper -> Text,
        decisions -> Int8,
        versions -> Int8,
        changes -> Int8,
        bytes -> Int8,
        manifest -> Text,
        manifest_sha256 -> Bytea,
        replaced -> Array<Text>,
        intended -> Array<Text>,
        settled_before -> Timestamptz,
        archived_at -> Timestamptz,
        checked_at -> Nullable<Timestamptz>,
        is_tidy -> Bool,
        removal_begun -> Nullable<Timestamptz>,
        removed_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    audit_cursors (stream_id) {
        stream_id -> Text,
        tenant_id -> Text,
        sequence -> Int8,
        lost_from -> Nullable<Int8>,
        lost_to -> Nullable<Int8>,
        checkpoint_at -> Nullable<Timestamptz>,
        failures -> Int4,
        next_try_at -> Nullable<Timestamptz>,
        lease -> Nullable<Uuid>,
        leased_until -> Nullable<Timestamptz>,
        failed_at -> Nullable<Timestamptz>,
        last_error -> Nullable<Text>,
        checkpoint_failures -> Int4,
        checkpoint_failed_at -> Nullable<Timestamptz>,
        checkpoint_error -> Nullable<Text>,
    }
}

diesel::table! {
    audit_streams (id) {
        id -> Text,
        tenant_id -> Text,
        state -> Text,
        name -> Nullable<Text>,
        sink -> Text,
        target -> Nullable<Text>,
        filter -> Nullable<Jsonb>,
        notes -> Nullable<Text>,
        tags -> Array<Text>,
        metadata -> Jsonb,
        created_at -> Timestamptz,
        created_by -> Text,
        updated_at -> Timestamptz,
    }
}

diesel::table! {
    authority_changes (seq) {
        seq -> Int8,
        tenant_id -> Text,
        tenant_revision -> Int8,
        table_name -> Text,
        entity_id -> Text,
        at -> Timestamptz,
    }
}

diesel::table! {
    authority_tables (name) {
        name -> Text,
    }
}

diesel::table! {
    billing_accounts (id) {
        id -> Text,
        tenant_id -> Text,
        state -> Text,
        billing_email -> Text,
        legal_entity_id -> Nullable<Text>,
        currency -> Nullable<Text>,
        plan -> Nullable<Text>,
        purchase_order -> Nullable<Text>,
        notes -> Nullable<Text>,
        tags -> Array<Text>,
        metadata -> Jsonb,
        created_at -> Timestamptz,
        created_by -> Text,
        updated_at -> Timestamptz,
    }
}

diesel::table! {
    certifications (id) {
        id -> Text,
        tenant_id -> Text,
        consultant_id -> Text,
        level -> Text,
        program -> Nullable<Text>,
        not_before -> Nullable<Timestamptz>,
        not_after -> Nullable<Timestamptz>,
        evidence_pack_id -> Nullable<Text>,
        signed -> Text,
        signed_by -> Text,
        signature_kid -> Text,
        signature_value_b64 -> Text,
        revoked_at -> Nullable<Timestamptz>,
        revoke_reason -> Nullable<Text>,
        created_at -> Timestamptz,
        created_by -> Text,
        updated_at -> Timestamptz,
        deleted_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    console_sessions (digest) {
        digest -> Bytea,
        person -> Text,
        email -> Nullable<Text>,
        sid -> Nullable<Text>,
        tenant_id -> Nullable<Text>,
        shown_tenant_id -> Nullable<Text>,
        sealed_tokens -> Bytea,
        opened -> Jsonb,
        authenticated_at -> Timestamptz,
        created_at -> Timestamptz,
        last_used_at -> Timestamptz,
        expires_at -> Timestamptz,
        refreshing_until -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    consultant_links (id) {
        id -> Text,
        tenant_id -> Text,
        consultant_id -> Text,
        scope -> Text,
        status -> Text,
        accepted_at -> Nullable<Timestamptz>,
        revoked_at -> Nullable<Timestamptz>,
        revoke_reason -> Nullable<Text>,
        created_at -> Timestamptz,
        created_by -> Text,
        updated_at -> Timestamptz,
        deleted_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    consultants (id) {
        id -> Text,
        tenant_id -> Text,
        status -> Text,
        display_name -> Text,
        email -> Text,
        legal_name -> Nullable<Text>,
        phone -> Nullable<Text>,
        country -> Nullable<Text>,
        sectors -> Array<Text>,
        languages -> Array<Text>,
        bio -> Nullable<Text>,
        website -> Nullable<Text>,
        linkedin -> Nullable<Text>,
        certification_level -> Nullable<Text>,
        attribution_kid -> Nullable<Text>,
        listed -> Bool,
        suspended_at -> Nullable<Timestamptz>,
        suspend_reason -> Nullable<Text>,
        notes -> Nullable<Text>,
        tags -> Array<Text>,
        metadata -> Jsonb,
        created_at -> Timestamptz,
        created_by -> Text,
        updated_at -> Timestamptz,
        deleted_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    context_retention (tenant_id) {
        tenant_id -> Text,
        erased_until -> Text,
    }
}

diesel::table! {
    counters (tenant_id, holder_id, counts, window_seconds, window_start) {
        tenant_id -> Text,
        holder_id -> Text,
        counts -> Text,
        window_seconds -> Int4,
        window_start -> Int8,
        used -> Int8,
    }
}

diesel::table! {
    decision_rates (tenant_id, key_id) {
        tenant_id -> Text,
        key_id -> Text,
        unused_at -> Timestamptz,
    }
}

diesel::table! {
    decision_reports (decision_id) {
        decision_id -> Text,
        tenant_id -> Text,
        outcome -> Text,
        at -> Timestamptz,
        detail -> Nullable<Text>,
        reported_by -> Text,
        record -> Text,
        kid -> Text,
        signature -> Bytea,
        created_at -> Timestamptz,
        stored_at -> Timestamptz,
    }
}

diesel::table! {
    decisions (id) {
        id -> Text,
        tenant_id -> Text,
        subject -> Text,
        action -> Text,
        decision -> Text,
        reason_code -> Text,
        evaluated_at -> Timestamptz,
        record -> crate::stored_record::StoredRecord,
        kid -> Text,
        signature -> Bytea,
        context -> Bytea,
        context_salt -> Bytea,
        facts -> Bytea,
        facts_salt -> Bytea,
        approval_id -> Nullable<Text>,
        sort_key -> Int8,
        subject_key -> Int4,
        action_key -> Int4,
        decision_key -> Int4,
        reason_key -> Int4,
    }
}

diesel::table! {
    delegations (id) {
        id -> Text,
        tenant_id -> Text,
        state -> Text,
        delegator_id -> Text,
        delegate_id -> Text,
        actions -> Array<Text>,
        purposes -> Array<Text>,
        jurisdictions -> Array<Text>,
        resource_ids -> Array<Text>,
        workspace_ids -> Array<Text>,
        max_amount -> Nullable<Text>,
        currency -> Nullable<Text>,
        max_risk_tier -> Nullable<Text>,
        max_total_amount -> Nullable<Jsonb>,
        max_uses -> Nullable<Jsonb>,
        hours -> Nullable<Jsonb>,
        not_before -> Nullable<Timestamptz>,
        expires_at -> Nullable<Timestamptz>,
        parent_id -> Nullable<Text>,
        can_delegate -> Bool,
        needs_standing_approval -> Bool,
        root_id -> Text,
        depth -> Int4,
        revoked_at -> Nullable<Timestamptz>,
        revoke_reason -> Nullable<Text>,
        notes -> Nullable<Text>,
        tags -> Array<Text>,
        metadata -> Jsonb,
        created_at -> Timestamptz,
        created_by -> Text,
        updated_at -> Timestamptz,
        standing -> Array<Jsonb>,
        line_id -> Nullable<Text>,
        renewed_by -> Nullable<Text>,
    }
}

diesel::table! {
    development_use (is_used) {
        is_used -> Bool,
        since -> Timestamptz,
    }
}

diesel::table! {
    domains (id) {
        id -> Text,
        tenant_id -> Text,
        state -> Text,
        fqdn -> Text,
        verification_method -> Nullable<Text>,
        verification_token -> Nullable<Text>,
        verified_at -> Nullable<Timestamptz>,
        notes -> Nullable<Text>,
        tags -> Array<Text>,
        metadata -> Jsonb,
        created_at -> Timestamptz,
        created_by -> Text,
        updated_at -> Timestamptz,
    }
}

diesel::table! {
    erasures (id) {
        id -> Text,
        tenant_id -> Nullable<Text>,
        at -> Timestamptz,
        by -> Text,
        reason -> Text,
        erased -> Jsonb,
    }
}

diesel::table! {
    event_demands (id) {
        id -> Text,
        tenant_id -> Text,
        event_types -> Array<Text>,
        until -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    event_heads (tenant_id) {
        tenant_id -> Text,
        sequence -> Int8,
        oldest -> Int8,
    }
}

diesel::table! {
    event_outbox (number) {
        number -> Int8,
        tenant_id -> Text,
        event_type -> Nullable<Text>,
        subject_ref -> Nullable<Text>,
        correlation_id -> Nullable<Text>,
        actor_entity_id -> Nullable<Text>,
        principal_entity_id -> Nullable<Text>,
        reason_code -> Nullable<Text>,
        occurred_at -> Timestamptz,
        data -> Jsonb,
        decisions -> Nullable<Array<Text>>,
        size -> Int4,
    }
}

diesel::table! {
    events (id) {
        id -> Text,
        tenant_id -> Text,
        last_sequence -> Int8,
        event_types -> Text,
        bodies -> Bytea,
        size -> Int4,
    }
}

diesel::table! {
    evidence_packs (decision_id) {
        log_index -> Int8,
        tree_size -> Int8,
        sealed_at -> Timestamptz,
        epoch -> Int4,
        automatic -> Bool,
        decision_id -> Text,
        tenant_id -> Text,
    }
}

diesel::table! {
    expiry_notices (id, expires_at, days) {
        id -> Text,
        tenant_id -> Text,
        expires_at -> Timestamptz,
        days -> Int4,
    }
}

diesel::table! {
    expiry_sweep (sole) {
        sole -> Bool,
        until -> Timestamptz,
    }
}

diesel::table! {
    external_apps (id) {
        id -> Text,
        tenant_id -> Text,
        state -> Text,
        vendor_name -> Text,
        connector_kind -> Text,
        base_url -> Nullable<Text>,
        scopes -> Array<Text>,
        actions -> Array<Text>,
        notes -> Nullable<Text>,
        tags -> Array<Text>,
        metadata -> Jsonb,
        created_at -> Timestamptz,
        created_by -> Text,
        updated_at -> Timestamptz,
        mcp -> Nullable<Jsonb>,
    }
}

diesel::table! {
    fact_blobs (tenant_id, sha256) {
        tenant_id -> Text,
        sha256 -> Bytea,
        body -> Bytea,
    }
}

diesel::table! {
    fact_cursor (one) {
        one -> Bool,
        indexed_until -> Text,
        seen_at -> Timestamptz,
        seen_xid -> Int8,
    }
}

diesel::table! {
    granted_access_to (id) {
        id -> Text,
        tenant_id -> Text,
        resource_id -> Text,
        grantee_id -> Text,
        grantee_kind -> Text,
        access_level -> Text,
        notes -> Nullable<Text>,
        created_at -> Timestamptz,
        created_by -> Text,
    }
}

diesel::table! {
    idempotency_keys (tenant_id, scope, key, caller) {
        tenant_id -> Text,
        caller -> Text,
        scope -> Text,
        key -> Text,
        request_sha256 -> Bytea,
        answer -> Nullable<Bytea>,
        sealed -> Bool,
        created_at -> Timestamptz,
        decision_id -> Nullable<Text>,
    }
}

diesel::table! {
    key_rotations (id) {
        id -> Text,
        kid -> Text,
        successor_kid -> Nullable<Text>,
        state -> Text,
        reason -> Nullable<Text>,
        due_at -> Timestamptz,
        created_at -> Timestamptz,
        created_by -> Text,
        ended_at -> Nullable<Timestamptz>,
        begun_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    lead_repeats (digest) {
        digest -> Bytea,
        at -> Timestamptz,
    }
}

diesel::table! {
    leads (id) {
        id -> Text,
        tenant_id -> Text,
        status -> Text,
        submitter_email -> Text,
        submitter_name -> Nullable<Text>,
        organisation -> Nullable<Text>,
        sector -> Nullable<Text>,
        country -> Nullable<Text>,
        message -> Nullable<Text>,
        consent_marketing -> Bool,
        consent_at -> Nullable<Timestamptz>,
        consent_source -> Nullable<Text>,
        consent_withdrawn_at -> Nullable<Timestamptz>,
        source -> Nullable<Text>,
        utm -> Jsonb,
        assigned_consultant_id -> Nullable<Text>,
        converted_tenant_id -> Nullable<Text>,
        created_at -> Timestamptz,
        created_by -> Text,
        updated_at -> Timestamptz,
        deleted_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    legal_entities (id) {
        id -> Text,
        tenant_id -> Text,
        state -> Text,
        legal_name -> Text,
        form -> Text,
        country_code -> Text,
        registration_number -> Nullable<Text>,
        registered_address -> Nullable<Text>,
        parent_legal_entity_id -> Nullable<Text>,
        notes -> Nullable<Text>,
        tags -> Array<Text>,
        metadata -> Jsonb,
        created_at -> Timestamptz,
        created_by -> Text,
        updated_at -> Timestamptz,
    }
}

diesel::table! {
    log_checkpoints (tenant_id, epoch, size) {
        tenant_id -> Text,
        epoch -> Int4,
        size -> Int8,
        note -> Text,
        issuer -> Text,
    }
}

diesel::table! {
    log_heads (tenant_id, epoch) {
        tenant_id -> Text,
        epoch -> Int4,
        origin -> Text,
        size -> Int8,
        root -> Bytea,
        checkpoint -> Text,
        follows -> Nullable<Text>,
        signed_at -> Timestamptz,
        last_decision_id -> Nullable<Text>,
    }
}

diesel::table! {
    log_nodes (tenant_id, epoch, level, first) {
        tenant_id -> Text,
        epoch -> Int4,
        level -> Int2,
        first -> Int8,
        hashes -> Bytea,
    }
}

diesel::table! {
    member_of (id) {
        id -> Text,
        tenant_id -> Text,
        team_id -> Text,
        principal_id -> Text,
        role -> Text,
        joined_at -> Timestamptz,
        left_at -> Nullable<Timestamptz>,
        notes -> Nullable<Text>,
        created_at -> Timestamptz,
        created_by -> Text,
        updated_at -> Timestamptz,
    }
}

diesel::table! {
    message_channels (id) {
        id -> Text,
        tenant_id -> Text,
        kind -> Text,
        person -> Nullable<Text>,
        subject -> Nullable<Text>,
        email -> Nullable<Text>,
        role -> Text,
        target -> Text,
        sealed_url -> Nullable<Bytea>,
        settings -> Jsonb,
        created_at -> Timestamptz,
        updated_at -> Timestamptz,
        tested_at -> Nullable<Timestamptz>,
        failing_since -> Nullable<Timestamptz>,
        last_error -> Nullable<Text>,
    }
}

diesel::table! {
    messages (id) {
        id -> Text,
        tenant_id -> Text,
        channel_id -> Text,
        approval_id -> Text,
        kind -> Text,
        state -> Text,
        attempts -> Int4,
        next_at -> Timestamptz,
        created_at -> Timestamptz,
    }
}

diesel::table! {
    models (id) {
        id -> Text,
        tenant_id -> Text,
        state -> Text,
        model_provider -> Text,
        model_family -> Text,
        version -> Text,
        risk_tier -> Nullable<Text>,
        license -> Nullable<Text>,
        endpoint -> Nullable<Text>,
        actions -> Array<Text>,
        notes -> Nullable<Text>,
        tags -> Array<Text>,
        metadata -> Jsonb,
        created_at -> Timestamptz,
        created_by -> Text,
        updated_at -> Timestamptz,
        warnings -> Array<Text>,
    }
}

diesel::table! {
    notification_reads (id, person) {
        id -> Text,
        tenant_id -> Text,
        person -> Text,
        read_at -> Timestamptz,
    }
}

diesel::table! {
    notifications (id) {
        id -> Text,
        tenant_id -> Text,
        kind -> Text,
        roles -> Array<Text>,
        subject_ref -> Text,
        data -> Jsonb,
        created_at -> Timestamptz,
        xact -> Nullable<Int8>,
    }
}

diesel::table! {
    observation_cursor (one) {
        one -> Bool,
        counted_until -> Text,
        seen_at -> Timestamptz,
        seen_xid -> Int8,
    }
}

diesel::table! {
    policies (id) {
        id -> Text,
        tenant_id -> Text,
        state -> Text,
        regime -> Text,
        name -> Nullable<Text>,
        description -> Nullable<Text>,
        cedar -> Nullable<Text>,
        effective_from -> Nullable<Timestamptz>,
        effective_until -> Nullable<Timestamptz>,
        version -> Int4,
        draft_version -> Nullable<Int4>,
        draft_cedar -> Nullable<Text>,
        notes -> Nullable<Text>,
        tags -> Array<Text>,
        metadata -> Jsonb,
        created_at -> Timestamptz,
        created_by -> Text,
        updated_at -> Timestamptz,
        activated_at -> Nullable<Timestamptz>,
        activated_by -> Nullable<Text>,
        activation_reason -> Nullable<Text>,
        observing_version -> Nullable<Int4>,
        observing_cedar -> Nullable<Text>,
        observing_since -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    policy_activations (id) {
        id -> Int8,
        tenant_id -> Text,
        policy_id -> Text,
        version -> Int4,
        at -> Timestamptz,
        by -> Text,
        reason -> Nullable<Text>,
    }
}

diesel::table! {
    policy_observations (policy_id, version) {
        policy_id -> Text,
        tenant_id -> Text,
        version -> Int4,
        since -> Timestamptz,
        ended_at -> Nullable<Timestamptz>,
        would_allow -> Int8,
        would_require_approval -> Int8,
        would_deny -> Int8,
        would_change -> Int8,
    }
}

diesel::table! {
    policy_versions (policy_id, version) {
        policy_id -> Text,
        tenant_id -> Text,
        version -> Int4,
        cedar -> Text,
        created_at -> Timestamptz,
        created_by -> Text,
        author -> Nullable<Text>,
    }
}

diesel::table! {
    principals (id) {
        id -> Text,
        tenant_id -> Text,
        state -> Text,
        principal_class -> Text,
        display_name -> Text,
        name -> Nullable<Text>,
        legal_entity_id -> Nullable<Text>,
        email -> Nullable<Text>,
        external_subject -> Nullable<Text>,
        model_id -> Nullable<Text>,
        owner_principal_id -> Nullable<Text>,
        notes -> Nullable<Text>,
        tags -> Array<Text>,
        metadata -> Jsonb,
        created_at -> Timestamptz,
        created_by -> Text,
        updated_at -> Timestamptz,
        deleted_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    production_use (is_used) {
        is_used -> Bool,
        since -> Timestamptz,
    }
}

diesel::table! {
    projects (id) {
        id -> Text,
        tenant_id -> Text,
        state -> Text,
        name -> Text,
        workspace_id -> Nullable<Text>,
        visible_in_workspaces -> Array<Text>,
        description -> Nullable<Text>,
        notes -> Nullable<Text>,
        tags -> Array<Text>,
        metadata -> Jsonb,
        created_at -> Timestamptz,
        created_by -> Text,
        updated_at -> Timestamptz,
    }
}

diesel::table! {
    purposes (id) {
        id -> Text,
        tenant_id -> Text,
        state -> Text,
        slug -> Text,
        name -> Text,
        allowed_actions -> Array<Text>,
        principal_classes -> Array<Text>,
        jurisdictions -> Array<Text>,
        not_before -> Nullable<Timestamptz>,
        expires_at -> Nullable<Timestamptz>,
        description -> Nullable<Text>,
        notes -> Nullable<Text>,
        tags -> Array<Text>,
        metadata -> Jsonb,
        created_at -> Timestamptz,
        created_by -> Text,
        updated_at -> Timestamptz,
    }
}

diesel::table! {
    push_cursor (id) {
        id -> Int4,
        snapshot -> Text,
        at -> Timestamptz,
    }
}

diesel::table! {
    push_subscriptions (id) {
        id -> Text,
        tenant_id -> Text,
        person -> Text,
        subject -> Text,
        email -> Nullable<Text>,
        role -> Text,
        endpoint_code -> Bytea,
        sealed_endpoint -> Bytea,
        origin -> Text,
        label -> Nullable<Text>,
        expires_at -> Nullable<Timestamptz>,
        created_at -> Timestamptz,
        renewed_at -> Timestamptz,
        failures -> Int4,
    }
}

diesel::table! {
    quarantines (id) {
        id -> Text,
        tenant_id -> Text,
        state -> Text,
        subject_id -> Nullable<Text>,
        action -> Nullable<Text>,
        delegation_id -> Nullable<Text>,
        reason -> Text,
        released_by -> Nullable<Text>,
        release_reason -> Nullable<Text>,
        created_at -> Timestamptz,
        created_by -> Text,
        updated_at -> Timestamptz,
    }
}

diesel::table! {
    reality_anchors (id) {
        id -> Text,
        tenant_id -> Text,
        anchor_type -> Text,
        display_name -> Text,
        description -> Nullable<Text>,
        status -> Text,
        authority -> Jsonb,
        freshness_contract -> Nullable<Jsonb>,
        grounds_actions -> Array<Text>,
        grounds_profiles -> Array<Text>,
        source -> Nullable<Jsonb>,
        tags -> Array<Text>,
        jwk_thumbprints -> Array<Text>,
        verification -> Nullable<Jsonb>,
        deprecate_reason -> Nullable<Text>,
        version -> Int4,
        created_at -> Timestamptz,
        created_by -> Text,
        updated_at -> Timestamptz,
        deleted_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    reality_coupling_checks (id) {
        id -> Text,
        tenant_id -> Text,
        action_id -> Text,
        action -> Text,
        subject_id -> Nullable<Text>,
        actor_entity_id -> Nullable<Text>,
        principal_entity_id -> Nullable<Text>,
        purpose_grant_id -> Nullable<Text>,
        coupling_result -> Text,
        runtime_effect -> Text,
        result_source -> Text,
        evaluated_at -> Nullable<Timestamptz>,
        pipeline_node -> Nullable<Text>,
        anchors_consulted -> Array<Text>,
        assumptions -> Array<Jsonb>,
        severity -> Nullable<Text>,
        reason_codes -> Array<Text>,
        drift_event_id -> Nullable<Text>,
        snapshot_refs -> Array<Text>,
        evidence_refs -> Array<Text>,
        notes -> Nullable<Text>,
        findings -> Array<Jsonb>,
        history -> Array<Jsonb>,
        decision -> Nullable<Jsonb>,
        #[sql_name = "override"]
        override_ -> Nullable<Jsonb>,
        tolerated -> Jsonb,
        created_at -> Timestamptz,
        created_by -> Text,
        updated_at -> Timestamptz,
        deleted_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    reality_feeding (anchor_id, feeder_key_id) {
        anchor_id -> Text,
        feeder_key_id -> Text,
        tenant_id -> Text,
        due_at -> Timestamptz,
    }
}

diesel::table! {
    reality_heads (id) {
        id -> Text,
        tenant_id -> Text,
        snapshot_id -> Nullable<Text>,
        sampled_at -> Nullable<Timestamptz>,
        valid_until -> Nullable<Timestamptz>,
        content_hash -> Nullable<Text>,
        contested -> Bool,
        changed_at -> Timestamptz,
    }
}

diesel::table! {
    reality_overrides (id) {
        id -> Text,
        tenant_id -> Text,
        action -> Text,
        actor_id -> Nullable<Text>,
        until -> Timestamptz,
        lifts -> Jsonb,
        makers -> Jsonb,
    }
}

diesel::table! {
    reality_snapshots (id) {
        id -> Text,
        tenant_id -> Text,
        anchor_id -> Text,
        anchor_type -> Text,
        sampled_at -> Timestamptz,
        valid_until -> Nullable<Timestamptz>,
        source_version -> Nullable<Text>,
        content_hash -> Text,
        content_summary -> Nullable<Jsonb>,
        content_ref -> Nullable<Text>,
        freshness -> Nullable<Jsonb>,
        observations -> Array<Jsonb>,
        observations_hash -> Nullable<Text>,
        tags -> Array<Text>,
        signature -> Nullable<Jsonb>,
        signed_by -> Nullable<Text>,
        feeder_key_id -> Nullable<Text>,
        verification -> Nullable<Jsonb>,
        created_at -> Timestamptz,
        created_by -> Text,
        updated_at -> Timestamptz,
        deleted_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    record_versions (version) {
        version -> Int8,
        table_name -> Text,
        entity_id -> Text,
        tenant_id -> Nullable<Text>,
        actor -> Text,
        valid_from -> Timestamptz,
        valid_to -> Nullable<Timestamptz>,
        body -> Nullable<Jsonb>,
    }
}

diesel::table! {
    replay_proofs (id) {
        id -> Text,
        tenant_id -> Text,
        decision_id -> Text,
        mode -> Text,
        result -> Text,
        body -> Bytea,
        created_at -> Timestamptz,
        stored_at -> Timestamptz,
    }
}

diesel::table! {
    resources (id) {
        id -> Text,
        tenant_id -> Text,
        state -> Text,
        kind -> Text,
        name -> Text,
        workspace_id -> Nullable<Text>,
        uri -> Nullable<Text>,
        sensitivity -> Nullable<Text>,
        owner_principal_id -> Nullable<Text>,
        notes -> Nullable<Text>,
        tags -> Array<Text>,
        metadata -> Jsonb,
        created_at -> Timestamptz,
        created_by -> Text,
        updated_at -> Timestamptz,
        external_id -> Nullable<Text>,
    }
}

diesel::table! {
    service_secrets (name) {
        name -> Text,
        sealed -> Bytea,
        created_at -> Timestamptz,
    }
}

diesel::table! {
    signing_keys (kid) {
        kid -> Text,
        alg -> Text,
        purpose -> Text,
        custody_provider -> Text,
        custody_ref -> Nullable<Text>,
        status -> Text,
        managed -> Bool,
        created_at -> Timestamptz,
        created_by -> Text,
        activated_at -> Nullable<Timestamptz>,
        rotation_due_at -> Nullable<Timestamptz>,
        rotated_at -> Nullable<Timestamptz>,
        retired_at -> Nullable<Timestamptz>,
        revoked_at -> Nullable<Timestamptz>,
        notes -> Nullable<Text>,
        public_jwk -> Jsonb,
        private_key -> Nullable<Bytea>,
    }
}

diesel::table! {
    stable_drift_events (id) {
        id -> Text,
        tenant_id -> Text,
        check_id -> Text,
        action_id -> Text,
        action -> Text,
        subject_id -> Nullable<Text>,
        drift_type -> Text,
        severity -> Text,
        status -> Text,
        result_source -> Text,
        actor_entity_id -> Nullable<Text>,
        principal_entity_id -> Nullable<Text>,
        detected_at -> Timestamptz,
        applies_since -> Timestamptz,
        anchors_implicated -> Array<Text>,
        expected_state -> Nullable<Jsonb>,
        observed_state -> Nullable<Jsonb>,
        description -> Nullable<Text>,
        reason_codes -> Array<Text>,
        recommended_runtime_effect -> Text,
        recommended_obligations -> Array<Text>,
        evidence_refs -> Array<Text>,
        until_fresh -> Nullable<Jsonb>,
        quarantine_id -> Nullable<Text>,
        resolution -> Nullable<Text>,
        acts -> Array<Jsonb>,
        created_at -> Timestamptz,
        created_by -> Text,
        updated_at -> Timestamptz,
        deleted_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    state_events (id) {
        id -> Text,
        tenant_id -> Nullable<Text>,
        machine_id -> Text,
        entity_id -> Text,
        sequence -> Int4,
        from_state -> Nullable<Text>,
        to_state -> Text,
        trigger -> Nullable<Text>,
        actor -> Text,
        first_actor -> Nullable<Text>,
        reason -> Nullable<Text>,
        evidence_refs -> Array<Text>,
        compensates_event_id -> Nullable<Text>,
        previous_digest -> Nullable<Text>,
        digest -> Text,
        created_at -> Timestamptz,
    }
}

diesel::table! {
    state_heads (machine_id, entity_id) {
        machine_id -> Text,
        entity_id -> Text,
        tenant_id -> Nullable<Text>,
        state -> Nullable<Text>,
        sequence -> Int4,
        digest -> Nullable<Text>,
    }
}

diesel::table! {
    state_library (id, version) {
        id -> Text,
        version -> Text,
        category -> Text,
        body -> Jsonb,
        created_at -> Timestamptz,
    }
}

diesel::table! {
    state_machines (id) {
        id -> Text,
        tenant_id -> Nullable<Text>,
        entity_class -> Text,
        title -> Nullable<Text>,
        description -> Nullable<Text>,
        states -> Array<Text>,
        initial_state -> Text,
        final_states -> Array<Text>,
        transitions -> Array<Jsonb>,
        state_descriptions -> Jsonb,
        library_id -> Nullable<Text>,
        library_version -> Nullable<Text>,
        notes -> Nullable<Text>,
        tags -> Array<Text>,
        metadata -> Jsonb,
        created_at -> Timestamptz,
        created_by -> Text,
    }
}

diesel::table! {
    state_proposals (machine_id, entity_id) {
        machine_id -> Text,
        entity_id -> Text,
        tenant_id -> Nullable<Text>,
        sequence -> Int4,
        trigger -> Text,
        actor -> Text,
        person -> Text,
        compensates_event_id -> Nullable<Text>,
        evidence_refs -> Array<Text>,
        created_at -> Timestamptz,
    }
}

diesel::table! {
    stop_signals (id) {
        id -> Text,
        tenant_id -> Text,
        state -> Text,
        actor_id -> Text,
        reason -> Text,
        lifted_by -> Nullable<Text>,
        lift_reason -> Nullable<Text>,
        created_at -> Timestamptz,
        created_by -> Text,
        updated_at -> Timestamptz,
    }
}

diesel::table! {
    teams (id) {
        id -> Text,
        tenant_id -> Text,
        state -> Text,
        name -> Text,
        workspace_id -> Nullable<Text>,
        description -> Nullable<Text>,
        notes -> Nullable<Text>,
        tags -> Array<Text>,
        metadata -> Jsonb,
        created_at -> Timestamptz,
        created_by -> Text,
        updated_at -> Timestamptz,
    }
}

diesel::table! {
    tenant_revisions (tenant_id) {
        tenant_id -> Text,
        revision -> Int8,
    }
}

diesel::table! {
    tenants (id) {
        id -> Text,
        tenant_id -> Text,
        state -> Text,
        slug -> Text,
        name -> Text,
        env -> Text,
        idp_org_id -> Nullable<Text>,
        owner_email -> Nullable<Text>,
        contract_status -> Text,
        sla_tier -> Text,
        region -> Text,
        require_declaration -> Bool,
        durability -> Text,
        gate -> Nullable<Jsonb>,
        valid_for_seconds -> Nullable<Int4>,
        activated_at -> Nullable<Timestamptz>,
        notes -> Nullable<Text>,
        tags -> Array<Text>,
        metadata -> Jsonb,
        created_at -> Timestamptz,
        created_by -> Text,
        updated_at -> Timestamptz,
        deleted_at -> Nullable<Timestamptz>,
        auto_seal -> Bool,
        receipts -> Text,
        policy_validation -> Text,
        context_schema -> Nullable<Jsonb>,
        self_approval -> Bool,
        approval_ttl_seconds -> Nullable<Int4>,
        cite_ready_approval -> Bool,
        event_retention_days -> Int4,
        legal_hold -> Nullable<Jsonb>,
        retention -> Nullable<Jsonb>,
        decisions_per_second -> Nullable<Int4>,
        approval_max_auth_age_seconds -> Nullable<Int4>,
        declined_for_seconds -> Nullable<Int4>,
        open_requests_per_agent -> Int4,
        time_zone -> Text,
        message_facts -> Bool,
        author_activates -> Bool,
        message_defaults -> Nullable<Jsonb>,
    }
}

diesel::table! {
    time_partitions (table_name) {
        table_name -> Text,
        prefix -> Text,
        span -> Text,
        made_until -> Timestamptz,
    }
}

diesel::table! {
    tool_definitions (tool_id, digest) {
        tenant_id -> Text,
        tool_id -> Text,
        digest -> Text,
        definition -> Text,
        pinned -> Bool,
    }
}

diesel::table! {
    tools (id) {
        id -> Text,
        tenant_id -> Text,
        state -> Text,
        name -> Text,
        function_signature -> Text,
        workspace_id -> Nullable<Text>,
        description -> Nullable<Text>,
        input_schema -> Nullable<Jsonb>,
        actions -> Array<Text>,
        requires -> Array<Text>,
        access_level -> Nullable<Text>,
        action_declaration -> Nullable<Jsonb>,
        action_risk_classification -> Nullable<Jsonb>,
        notes -> Nullable<Text>,
        tags -> Array<Text>,
        metadata -> Jsonb,
        created_at -> Timestamptz,
        created_by -> Text,
        updated_at -> Timestamptz,
        warnings -> Array<Text>,
        input_at -> Text,
        presentation -> Nullable<Jsonb>,
        mcp -> Nullable<Jsonb>,
    }
}

diesel::table! {
    usage_cursor (one) {
        one -> Bool,
        counted_until -> Text,
        seen_at -> Timestamptz,
        seen_xid -> Int8,
    }
}

diesel::table! {
    usage_days (tenant_id, starts_at, subject, action, reason_code) {
        tenant_id -> Text,
        starts_at -> Timestamptz,
        subject -> Text,
        action -> Text,
        reason_code -> Text,
        allow -> Int8,
        require_approval -> Int8,
        deny -> Int8,
    }
}

diesel::table! {
    usage_hours (tenant_id, starts_at, subject, action, reason_code) {
        tenant_id -> Text,
        starts_at -> Timestamptz,
        subject -> Text,
        action -> Text,
        reason_code -> Text,
        allow -> Int8,
        require_approval -> Int8,
        deny -> Int8,
    }
}

diesel::table! {
    uses (id) {
        id -> Text,
        tenant_id -> Text,
        agent_id -> Text,
        used_id -> Text,
        used_kind -> Text,
        allowed -> Nullable<Int4>,
        since -> Timestamptz,
        until -> Nullable<Timestamptz>,
        constraints_json -> Nullable<Text>,
        notes -> Nullable<Text>,
        created_at -> Timestamptz,
        created_by -> Text,
        updated_at -> Timestamptz,
    }
}

diesel::table! {
    webhook_attempts (id, attempt) {
        id -> Text,
        tenant_id -> Text,
        attempt -> Int4,
        at -> Timestamptz,
        status -> Nullable<Int4>,
        error_class -> Nullable<Text>,
        latency_ms -> Nullable<Int4>,
        body_start -> Nullable<Text>,
    }
}

diesel::table! {
    webhook_cursors (endpoint_id) {
        endpoint_id -> Text,
        tenant_id -> Text,
        sequence -> Int8,
        lost_from -> Nullable<Int8>,
        lost_to -> Nullable<Int8>,
        failing_since -> Nullable<Timestamptz>,
        last_success_at -> Nullable<Timestamptz>,
        breaker -> Text,
        breaker_count -> Int4,
        breaker_until -> Nullable<Timestamptz>,
        waits_until -> Nullable<Timestamptz>,
        filter_errors -> Int8,
        tested_from -> Nullable<Timestamptz>,
        tests -> Int4,
        dead_since -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    webhook_deliveries (id) {
        id -> Text,
        tenant_id -> Text,
        endpoint_id -> Text,
        event_id -> Text,
        event_type -> Text,
        sequence -> Int8,
        replay_id -> Nullable<Text>,
        state -> Text,
        lane -> Int2,
        attempts -> Int4,
        attempts_before -> Int4,
        due_at -> Timestamptz,
        lease -> Nullable<Uuid>,
        leased_until -> Nullable<Timestamptz>,
        last_status -> Nullable<Int4>,
        last_error -> Nullable<Text>,
        created_at -> Timestamptz,
        ended_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    webhook_endpoints (id) {
        id -> Text,
        tenant_id -> Text,
        state -> Text,
        state_reason -> Nullable<Text>,
        url -> Text,
        event_types -> Array<Text>,
        filter -> Nullable<Text>,
        retry_policy -> Jsonb,
        signing_suites -> Array<Text>,
        rate_limit_per_second -> Int4,
        headers -> Jsonb,
        description -> Nullable<Text>,
        key_id -> Nullable<Text>,
        person_subject -> Nullable<Text>,
        person_email -> Nullable<Text>,
        adopted_by -> Nullable<Text>,
        created_at -> Timestamptz,
        created_by -> Text,
        updated_at -> Timestamptz,
        deleted_at -> Nullable<Timestamptz>,
        secret -> Nullable<Bytea>,
        previous_secret -> Nullable<Bytea>,
        previous_until -> Nullable<Timestamptz>,
        sealed_headers -> Nullable<Bytea>,
        pause_reason -> Nullable<Text>,
    }
}

diesel::table! {
    webhook_paces (endpoint_id) {
        endpoint_id -> Text,
        tenant_id -> Text,
        paced_until -> Timestamptz,
    }
}

diesel::table! {
    webhook_replays (id) {
        id -> Text,
        tenant_id -> Text,
        endpoint_id -> Text,
        state -> Text,
        after_sequence -> Int8,
        until_sequence -> Int8,
        event_types -> Array<Text>,
        only_state -> Text,
        position -> Int8,
        made -> Int8,
        created_at -> Timestamptz,
        created_by -> Text,
        updated_at -> Timestamptz,
        lost_from -> Nullable<Int8>,
        lost_to -> Nullable<Int8>,
    }
}

diesel::table! {
    white_label_configs (id) {
        id -> Text,
        tenant_id -> Nullable<Text>,
        consultant_id -> Text,
        status -> Text,
        brand_name -> Text,
        primary_colour_hex -> Nullable<Text>,
        secondary_colour_hex -> Nullable<Text>,
        logo_url -> Nullable<Text>,
        domain -> Nullable<Text>,
        support_email -> Nullable<Text>,
        legal_footer -> Nullable<Text>,
        notes -> Nullable<Text>,
        created_at -> Timestamptz,
        created_by -> Text,
        updated_at -> Timestamptz,
        deleted_at -> Nullable<Timestamptz>,
    }
}

diesel::table! {
    workspace_slugs (tenant_id, slug) {
        tenant_id -> Text,
        slug -> Text,
    }
}

diesel::table! {
    workspaces (id) {
        id -> Text,
        tenant_id -> Text,
        state -> Text,
        name -> Text,
        slug -> Nullable<Text>,
        description -> Nullable<Text>,
        notes -> Nullable<Text>,
        tags -> Array<Text>,
        metadata -> Jsonb,
        created_at -> Timestamptz,
        created_by -> Text,
        updated_at -> Timestamptz,
    }
}
