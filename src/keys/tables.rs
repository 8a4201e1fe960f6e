//! The tables that only this room reads and writes.

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
    service_secrets (name) {
        name -> Text,
        sealed -> Bytea,
        created_at -> Timestamptz,
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
        begun_at -> Nullable<Timestamptz>,
        ended_at -> Nullable<Timestamptz>,
    }
}
