//! The data that the page of a request reads in addition to the request.

use authority_model::proto::approval::Approval;

use super::{
    acts::askers,
    advice::advice,
    history::{Past, history, requests},
    lapsed::Lapsed,
    summary::Summary,
    would_be::WouldBe,
};
use crate::{administration::authority::Authority, kit::prelude::*};

pub(super) struct Around {
    pub(super) authority: Option<Authority>,
    /// `None` if the agent is not a known principal.
    pub(super) agent_name: Option<String>,
    pub(super) asked_by: Vec<String>,
    pub(super) requests: Vec<Summary>,
    pub(super) history: Vec<Past>,
    pub(super) advice: String,
    pub(super) lapsed: Option<Lapsed>,
}

impl Around {
    pub(super) async fn of(view: &View, approval: &Approval, would_be: Option<&WouldBe>) -> Self {
        let (authority, names, asked_by, requests, history, advice, lapsed) = tokio::join!(
            Authority::if_any(view, approval.authority.as_ref()),
            Names::of(view, vec![approval.subject.clone()]),
            askers(view, approval),
            requests(view, approval),
            history(view, approval),
            advice(view, approval, would_be),
            Lapsed::of(view, approval),
        );
        let agent_name = names.get(&approval.subject).map(str::to_owned);
        Self { authority, agent_name, asked_by, requests, history, advice, lapsed }
    }
}
