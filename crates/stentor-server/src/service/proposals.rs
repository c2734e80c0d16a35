//! Messages that wait for an approval, and the rule that a person needs one for a large audience.

use stentor_core::audit::{Actor, AuditAction};
use stentor_core::device::ProviderKind;
use stentor_core::id::{AppId, ProposalId};
use stentor_core::message::MessageSpec;
use stentor_core::ports::store::{Change, Changed, Listed, Page};
use stentor_core::proposal::{PROPOSAL_LIFE, Proposal};
use stentor_core::target::Target;

use super::audit::{AuditSubject, Author, unexpected};
use super::long_list::LongList;
use super::messages::{MessageDraft, target_problem};
use super::{Caller, ErrorCode, Origin, Problem, Service, ServiceResult};
use crate::contract::proposals::{ProposalList, ProposalRequest, ProposalView};
use crate::contract::table::{ApproveProposal, CreateProposal, ListProposals, RemoveProposal, ShowProposal};
use crate::contract::{After, Serve};

impl Serve<CreateProposal> for Service {
    async fn serve(
        &self,
        (caller, from): (Caller, Origin),
        (): (),
        ProposalRequest { message }: ProposalRequest,
    ) -> ServiceResult<ProposalView> {
        let (app, author) = (caller.app(), Author::for_caller(caller, from));
        let subject = AuditSubject::new(AuditAction::ProposalCreate, app, "");
        self.permitted(&author, &subject, caller.allow::<CreateProposal>()).await?;
        if message.dry_run {
            return Err(Problem::field("message.dry_run", "has no meaning here: use `messages.send`"));
        }
        let (now, is_later) = (self.now(), message.send_at.is_some());
        let draft = message.draft(now).map_err(|problem| problem.within("message"))?;
        self.check_draft(app, &draft, now).await.map_err(|problem| problem.within("message"))?;
        let audience = self.audience(app, &draft.spec).await.map_err(|problem| problem.within("message"))?;
        let device_count = sum(&audience);
        let proposal = Proposal {
            id: ProposalId::from_raw(self.next_id(now)),
            app,
            author: author.actor().clone(),
            spec: draft.spec,
            send_at: is_later.then_some(draft.due_at),
            exact: draft.exact,
            device_count,
            created_at: now,
            expires_at: now.plus(PROPOSAL_LIFE),
            message: None,
        };
        let subject = about(subject, &proposal);
        self.change(author, subject, Change::CreateProposal(Box::new(proposal.clone()))).await?;
        Ok(proposal.into())
    }
}

impl Serve<ListProposals> for Service {
    async fn serve(&self, caller: Caller, (): (), page: After) -> ServiceResult<ProposalList> {
        let page = page.page(|text| text.parse().ok().map(ProposalId::raw))?;
        caller.allow::<ListProposals>()?;
        let (mut list, mut after, mut damaged) = (LongList::new(page.limit), page.after, Vec::new());
        while let Some(limit) = list.wanted() {
            let Listed { readable: found, broken } =
                self.store.proposals(caller.app(), Page { after, limit }, self.now()).await?;
            damaged.extend(broken);
            after = found.last().map_or(after, |last| last.id.raw());
            list.add(limit, found.into_iter().map(|one| (one.id.to_string(), ProposalView::from(one))));
        }
        let (proposals, next) = list.page();
        Ok(ProposalList { proposals, damaged, next })
    }
}

impl Serve<ShowProposal> for Service {
    async fn serve(&self, caller: Caller, id: ProposalId, (): ()) -> ServiceResult<ProposalView> {
        caller.allow::<ShowProposal>()?;
        Ok(self.store.proposal(caller.app(), id, self.now()).await?.into())
    }
}

impl Serve<ApproveProposal> for Service {
    async fn serve(
        &self,
        (caller, from): (Caller, Origin),
        id: ProposalId,
        (): (),
    ) -> ServiceResult<ProposalView> {
        let (app, author) = (caller.app(), Author::for_caller(caller, from));
        let subject = AuditSubject::new(AuditAction::ProposalApprove, app, id);
        self.permitted(&author, &subject, caller.allow::<ApproveProposal>()).await?;
        let now = self.now();
        let proposal = self.store.proposal(app, id, now).await?;
        self.permitted(&author, &subject, by_somebody_else(&proposal, author.actor())).await?;
        if proposal.message.is_some() {
            return Ok(proposal.into());
        }
        let subject = about(subject, &proposal);
        let draft = MessageDraft {
            spec: proposal.spec.clone(),
            due_at: proposal.send_at.map_or(now, |at| at.max(now)),
            exact: proposal.exact,
        };
        self.check_draft(app, &draft, now).await?;
        let size = sum(&self.audience(app, &draft.spec).await?);
        if has_grown(proposal.device_count, size) {
            let why =
                format!("it was proposed for {} devices, and would go to {size} now", proposal.device_count);
            return Err(
                Problem::new(ErrorCode::Conflict, why).helped_by::<CreateProposal>("propose it again")
            );
        }
        let message = self.numbered(app, draft, now).await?;
        self.refuse_when_full(app, &message.spec.target, 0).await?;
        let change = Change::ApproveProposal(id, Box::new(message));
        let Changed::Approved { message, .. } = self.change(author, subject, change).await? else {
            return Err(unexpected());
        };
        self.pipeline.wake();
        Ok(Proposal { message: Some(message), ..proposal }.into())
    }
}

impl Serve<RemoveProposal> for Service {
    async fn serve(&self, (caller, from): (Caller, Origin), id: ProposalId, (): ()) -> ServiceResult<()> {
        let author = Author::for_caller(caller, from);
        let subject = AuditSubject::new(AuditAction::ProposalDelete, caller.app(), id);
        self.permitted(&author, &subject, caller.allow::<RemoveProposal>()).await?;
        self.change(author, subject, Change::DeleteProposal(caller.app(), id)).await.map(drop)
    }
}

impl Service {
    /// Refuses a message of a person to more devices than a person reaches without an approval. An audience that devices can join may grow
    /// until a later time, so that such a message always needs one.
    pub(super) async fn require_approval(
        &self,
        caller: Caller,
        spec: &MessageSpec,
        is_later: bool,
    ) -> ServiceResult<()> {
        let Some(max_count) = self.approval_limit(caller) else { return Ok(()) };
        if is_later && can_be_joined(&spec.target) {
            return Err(approval_required("a later message to an audience that may grow needs an approval"));
        }
        let audience = self.audience(caller.app(), spec).await?;
        // Its push service alone knows the number of phones that subscribe to a channel.
        if audience.iter().any(|(provider, _)| *provider == ProviderKind::LiveActivityChannel) {
            return Err(approval_required("a broadcast needs an approval"));
        }
        match sum(&audience) {
            size if size > max_count => Err(approval_required(format!(
                "the message goes to {size} devices, and above {max_count} somebody else has to approve it"
            ))),
            _ => Ok(()),
        }
    }

    /// Refuses many messages at once from a person who needs an approval for a large audience.
    pub(super) fn refuse_unapproved_batch(&self, caller: Caller) -> ServiceResult<()> {
        match self.approval_limit(caller) {
            Some(_) => Err(unproposable(approval_required("a person sends messages one by one here"))),
            None => Ok(()),
        }
    }

    /// Returns the largest audience that the caller reaches without an approval; `None` for any.
    fn approval_limit(&self, caller: Caller) -> Option<u64> {
        self.settings.limits.unapproved_devices_max_count.filter(|_| caller.is_person())
    }

    /// Counts the devices that a message would reach now, at each push service with any.
    async fn audience(&self, app: AppId, spec: &MessageSpec) -> ServiceResult<Vec<(ProviderKind, u64)>> {
        let counts = self.store.count_audience(app, &spec.target).await;
        let mut counts = counts.map_err(|error| target_problem(error.into()))?;
        counts.retain(|(provider, count)| *count > 0 && spec.content.is_for(*provider));
        Ok(counts)
    }
}

fn sum(audience: &[(ProviderKind, u64)]) -> u64 {
    audience.iter().map(|(_, count)| count).sum()
}

fn by_somebody_else(proposal: &Proposal, approver: &Actor) -> ServiceResult<()> {
    match proposal.may_be_approved_by(approver) {
        true => Ok(()),
        false => Err(Problem::new(ErrorCode::ApprovalRequired, "its author cannot approve a proposal")
            .with_hint("ask somebody else with the scope `send`")),
    }
}

fn approval_required(why: impl Into<std::borrow::Cow<'static, str>>) -> Problem {
    Problem::new(ErrorCode::ApprovalRequired, why).helped_by::<CreateProposal>("propose it")
}

/// Replaces the remedy: a batch and a schedule cannot be proposed.
pub(super) fn unproposable(problem: Problem) -> Problem {
    match problem.code {
        ErrorCode::ApprovalRequired => Problem { helps: None, ..problem }.with_hint("use an API key"),
        _ => problem,
    }
}

/// Returns true if devices can join the audience after the request.
const fn can_be_joined(target: &Target) -> bool {
    !matches!(target, Target::Device(_) | Target::Devices(_) | Target::Token(_))
}

/// Returns true if an audience is larger than a person who approves it expects: by more than a tenth.
const fn has_grown(before: u64, now: u64) -> bool {
    now > before + before / 10
}

/// Describes a proposal in the audit trail by its size and its title.
fn about(subject: AuditSubject, proposal: &Proposal) -> AuditSubject {
    let notification = proposal.spec.content.notification.as_ref();
    let title = notification.and_then(|shown| shown.title.as_deref()).unwrap_or_default();
    let subject = AuditSubject { thing: proposal.id.to_string(), ..subject };
    subject.with_detail(format!("{} devices {title}", proposal.device_count).trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_audience_may_grow_by_a_tenth_before_an_approval_is_void() {
        for (before, now, grown) in [(1_000, 1_100, false), (1_000, 1_101, true), (2, 3, true), (5, 0, false)]
        {
            assert_eq!(has_grown(before, now), grown, "{before} {now}");
        }
    }
}
