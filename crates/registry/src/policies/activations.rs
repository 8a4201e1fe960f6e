//! Lists the versions of a policy, each with its last activation and its last observation. The
//! database records both.

use std::collections::HashMap;

use authority_model::{
    proto::registry::*,
    schema::{policy_activations, policy_versions},
    wire::Time,
};
use tonic::Response;

use super::observations;
use crate::flow::{operations::or_not_found, prelude::*};
use authority_api::{page, page_token::PageTokens};

const SIZE: i32 = 500;

/// An activation of a version.
#[derive(Queryable, Selectable)]
#[diesel(table_name = policy_activations, check_for_backend(Pg))]
struct Activation {
    version: i32,
    at: Time,
    by: String,
    reason: Option<String>,
}

pub(crate) async fn list(
    registry: &Registry,
    call: Request<ListPolicyVersionsRequest>,
) -> Reply<ListPolicyVersionsResponse> {
    let (caller, request) = admitted(call)?;
    let whose = caller.scope();
    let tokens = PageTokens::of(&registry.keys, &caller, &request);
    let place = tokens.read(&request.page_token)?;
    let after = place.and_then(|place| place.try_into().ok()).map_or(0, i32::from_be_bytes);
    let size = request.limit.unwrap_or(SIZE);
    let read = registry.store.read_tx(&whose, async move |db| {
        let found =
            or_not_found(Policy::find(db, caller.tenant(), &request.id, false).await, &request.id)?;
        let versions = versions(db, &found, after, size).await?;
        let ids = [found.id.clone()];
        let counted = observations::of_policies(db, &ids).await?;
        Ok::<_, Error>((versions, activations(db, &found).await?, counted))
    });
    let (mut versions, activations, mut counted) = read.await?;
    let mut last = last(activations);
    for version in &mut versions {
        let observed = (version.policy_id.clone(), version.version);
        version.observation = counted.remove(&observed);
        let Some((activation, superseded_at)) = last.remove(&version.version) else { continue };
        version.activated_at = Some(activation.at);
        version.activated_by = Some(activation.by);
        version.activation_reason = activation.reason;
        version.superseded_at = superseded_at;
    }
    let goes_on = page::cut(&mut versions, usize::try_from(size).unwrap_or_default());
    let last = versions.last().filter(|_| goes_on);
    let next_page_token = last.map(|last| tokens.write(&last.version.to_be_bytes()));
    Ok(Response::new(ListPolicyVersionsResponse { versions, next_page_token }))
}

/// Returns the versions after the version `after`: at most `size` and one more.
async fn versions(
    db: &mut Db,
    of: &Policy,
    after: i32,
    size: i32,
) -> QueryResult<Vec<PolicyVersion>> {
    let rows: Vec<(String, i32, String, Time, String)> = policy_versions::table
        .filter(policy_versions::policy_id.eq(&of.id))
        .filter(policy_versions::tenant_id.eq(&of.tenant_id))
        .filter(policy_versions::version.gt(after))
        .order(policy_versions::version)
        .limit(i64::from(size) + 1)
        .select((
            policy_versions::policy_id,
            policy_versions::version,
            policy_versions::cedar,
            policy_versions::created_at,
            policy_versions::created_by,
        ))
        .load(db)
        .await?;
    let rows = rows.into_iter();
    let versions = rows.map(|(policy_id, version, cedar, at, created_by)| PolicyVersion {
        policy_id,
        version,
        cedar,
        created_at: Some(at),
        created_by,
        ..PolicyVersion::default()
    });
    Ok(versions.collect())
}

/// Returns every activation of the policy, oldest first.
async fn activations(db: &mut Db, of: &Policy) -> QueryResult<Vec<Activation>> {
    policy_activations::table
        .filter(policy_activations::policy_id.eq(&of.id))
        .filter(policy_activations::tenant_id.eq(&of.tenant_id))
        .order((policy_activations::at, policy_activations::id))
        .select(Activation::as_select())
        .load(db)
        .await
}

/// Returns the last activation of each version, and when it was replaced.
fn last(activations: Vec<Activation>) -> HashMap<i32, (Activation, Option<Time>)> {
    let mut last = HashMap::new();
    let mut next = None;
    for activation in activations.into_iter().rev() {
        let at = activation.at;
        last.entry(activation.version).or_insert((activation, next));
        next = Some(at);
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_has_its_last_activation_and_what_followed_it() {
        let at = Time::from_micros;
        let activation = |version, seconds| Activation {
            version,
            at: at(seconds),
            by: String::new(),
            reason: None,
        };
        let found =
            last([(1, 10), (2, 20), (1, 30), (1, 40)].map(|(v, t)| activation(v, t)).into());
        let times = |version: i32| found.get(&version).map(|(one, next)| (one.at, *next));
        assert_eq!(times(1), Some((at(40), None)));
        assert_eq!(times(2), Some((at(20), Some(at(30)))));
        assert_eq!(times(3), None);
    }
}
