//! Messages that wait for an approval.

use stentor_core::audit::{Actor, AuditAction, AuditNote};
use stentor_core::campaign::CampaignState;
use stentor_core::id::{AppId, MessageId, ProposalId};
use stentor_core::limits::PROPOSALS_PER_APP_MAX_COUNT;
use stentor_core::message::Message;
use stentor_core::person::Person;
use stentor_core::ports::store::{AuditFilter, Change, Changed, NewAuditEntry, Page, Store, StoreError};
use stentor_core::proposal::Proposal;
use stentor_core::target::Target;

use crate::conformance::PlainChanges;
use crate::conformance::scene::{Draft, Scene, at};

/// Returns a proposal that is made at the beginning.
fn proposal(app: AppId, id: u64, expires: i64) -> Proposal {
    let message = Draft::to(Target::Everyone).message(app, id);
    Proposal {
        id: ProposalId::from_raw(id),
        app,
        author: Actor::Person(Person::new("248289", "Ada").expect("a person")),
        spec: message.spec,
        send_at: Some(at(40)),
        exact: true,
        device_count: 12_000,
        created_at: at(0),
        expires_at: at(expires),
        message: None,
    }
}

fn message_of(proposal: &Proposal, id: u64, now: i64) -> Box<Message> {
    let message = Draft::to(Target::Everyone).message(proposal.app, id);
    Box::new(Message { spec: proposal.spec.clone(), created_at: at(now), due_at: at(now), ..message })
}

async fn approve(
    store: &dyn Store,
    proposal: &Proposal,
    message: u64,
    now: i64,
) -> Result<Changed, StoreError> {
    let change = Change::ApproveProposal(proposal.id, message_of(proposal, message, now));
    let note = AuditNote {
        at: at(now),
        actor: Actor::Root,
        app: Some(proposal.app),
        action: AuditAction::ProposalApprove,
        thing: proposal.id.to_string(),
        detail: String::new(),
        address: None,
        request_id: String::new(),
        refused: false,
    };
    store.change(change, Some(NewAuditEntry { note, max_count: 100 })).await
}

async fn waiting(store: &dyn Store, app: AppId, now: i64) -> Vec<ProposalId> {
    let page = Page { after: 0, limit: 200 };
    let listed = store.proposals(app, page, at(now)).await.expect("listed");
    assert!(listed.broken.is_empty());
    listed.readable.into_iter().map(|one| one.id).collect()
}

pub async fn a_proposal_is_shown_until_it_is_approved_and_sends_its_message_once(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(2).await;
    let made = proposal(scene.app, 70, 90);
    store.plain(Change::CreateProposal(Box::new(made.clone()))).await.expect("kept");
    assert_eq!(store.proposal(scene.app, made.id, at(1)).await.as_ref(), Ok(&made));
    assert_eq!(waiting(store, scene.app, 1).await, [made.id]);
    let first = approve(store, &made, 71, 2).await;
    assert_eq!(first, Ok(Changed::Approved { message: MessageId::from_raw(71), is_repeat: false }));
    let again = approve(store, &made, 72, 3).await;
    assert_eq!(again, Ok(Changed::Approved { message: MessageId::from_raw(71), is_repeat: true }));
    assert_eq!(waiting(store, scene.app, 3).await, []);
    assert_eq!(scene.state(MessageId::from_raw(71)).await, CampaignState::Scheduled);
    assert!(store.message(scene.app, MessageId::from_raw(72)).await.is_err(), "a repeat sends nothing");
    let entries = store.audit(AuditFilter::default(), Page { after: 0, limit: 9 }).await.expect("entries");
    assert_eq!(entries.len(), 1, "a repeat leaves no entry");
    assert_eq!(scene.start(at(3)).await.len(), 0, "the audience is expanded by producers");
    assert_eq!(scene.state(MessageId::from_raw(71)).await, CampaignState::Running);
}

pub async fn a_proposal_that_has_expired_or_belongs_to_another_app_cannot_be_approved(store: &dyn Store) {
    let (app, other) = (Scene::new(store).await.app, Scene::in_app(store, 2).await.app);
    let made = proposal(app, 70, 5);
    store.plain(Change::CreateProposal(Box::new(made.clone()))).await.expect("kept");
    let foreign = Proposal { app: other, ..made.clone() };
    for (proposal, now) in [(&foreign, 1), (&made, 5)] {
        let refused = approve(store, proposal, 71, now).await;
        assert!(matches!(refused, Err(StoreError::NotFound("proposal"))), "{refused:?}");
    }
    assert!(store.message(app, MessageId::from_raw(71)).await.is_err());
    assert_eq!(waiting(store, app, 5).await, []);
}

pub async fn an_app_has_a_bounded_number_of_proposals_and_expired_ones_make_room(store: &dyn Store) {
    let app = Scene::new(store).await.app;
    let create = |proposal: Proposal| store.plain(Change::CreateProposal(Box::new(proposal)));
    for number in 0..PROPOSALS_PER_APP_MAX_COUNT as u64 {
        let expires = if number == 7 { 5 } else { 50 };
        create(proposal(app, 100 + number, expires)).await.expect("kept");
    }
    let one_more = proposal(app, 99, 50);
    let refused = create(Proposal { created_at: at(4), ..one_more.clone() }).await;
    assert!(matches!(refused, Err(StoreError::LimitReached(_))), "{refused:?}");
    create(Proposal { created_at: at(5), ..one_more }).await.expect("there is room");
    assert_eq!(waiting(store, app, 5).await.len(), PROPOSALS_PER_APP_MAX_COUNT);
}

pub async fn a_deleted_proposal_is_gone_and_one_goes_with_its_app(store: &dyn Store) {
    let (app, other) = (Scene::new(store).await.app, Scene::in_app(store, 2).await.app);
    let (made, of_other) = (proposal(app, 70, 90), proposal(other, 71, 90));
    for proposal in [&made, &of_other] {
        store.plain(Change::CreateProposal(Box::new(proposal.clone()))).await.expect("kept");
    }
    let foreign = store.plain(Change::DeleteProposal(other, made.id)).await;
    assert!(matches!(foreign, Err(StoreError::NotFound("proposal"))), "{foreign:?}");
    store.plain(Change::DeleteProposal(app, made.id)).await.expect("deleted");
    assert_eq!(waiting(store, app, 1).await, []);
    store.delete_app(other).await.expect("deleted");
    assert_eq!(waiting(store, other, 1).await, []);
    let orphan = store.plain(Change::CreateProposal(Box::new(proposal(other, 72, 90)))).await;
    assert!(matches!(orphan, Err(StoreError::NotFound("app"))), "{orphan:?}");
}
