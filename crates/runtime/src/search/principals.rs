//! Principals that a search finds, by a part of their id, name or e-mail address.

use authority_api::{error::ApiError, identity::may_call};
use authority_model::proto::runtime::FoundPrincipal;
use authority_store::{self as store, RunQueryDsl};
use diesel::{
    QueryableByName,
    sql_types::{BigInt, Nullable, Text},
};

use super::{LIMIT, LIST_PRINCIPALS, Search, SearchHandlers};
use crate::decision_filter::limit;

/// The ICU collation folds the case of every script, independently of the database's locale, as in
/// the list of principals.
const FIND: &str = r#"
    SELECT id, tenant_id, principal_class, display_name, state
    FROM principals CROSS JOIN (SELECT lower($2 COLLATE "und-x-icu") AS sought) AS by
    WHERE ($1 IS NULL OR tenant_id = $1) AND deleted_at IS NULL
      AND strpos(lower(concat_ws(E'\n', id, display_name, email) COLLATE "und-x-icu"), sought) > 0
    ORDER BY id = $2 DESC, coalesce(name = $2, false) DESC,
             lower(display_name COLLATE "und-x-icu") = sought DESC, display_name, id
    LIMIT $3"#;

#[derive(QueryableByName)]
struct PrincipalRow {
    #[diesel(sql_type = Text)]
    id: String,
    #[diesel(sql_type = Text)]
    tenant_id: String,
    #[diesel(sql_type = Text)]
    principal_class: String,
    #[diesel(sql_type = Text)]
    display_name: String,
    #[diesel(sql_type = Text)]
    state: String,
}

impl SearchHandlers {
    pub(super) async fn principals(
        &self,
        search: &Search,
    ) -> Result<Vec<FoundPrincipal>, ApiError> {
        if !may_call(LIST_PRINCIPALS, &search.caller) {
            return Ok(Vec::new());
        }
        let (tenant_id, text) = (search.tenant_id.clone(), search.text.clone());
        let found = self.queries.store.read_tx(&search.caller.scope(), async move |db| {
            limit(db).await?;
            let found = diesel::sql_query(FIND)
                .bind::<Nullable<Text>, _>(tenant_id)
                .bind::<Text, _>(text)
                .bind::<BigInt, _>(LIMIT);
            Ok::<Vec<PrincipalRow>, store::Error>(found.load(db).await?)
        });
        let shown = |row: PrincipalRow| FoundPrincipal {
            principal_id: row.id,
            tenant_id: row.tenant_id,
            principal_class: row.principal_class,
            display_name: row.display_name,
            state: row.state,
        };
        Ok(found.await?.into_iter().map(shown).collect())
    }
}
