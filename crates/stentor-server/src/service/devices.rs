//! Devices: registration, change, history.

use stentor_core::device::{DeviceFacts, DevicePatch, ProviderKind, PushToken, Registration};
use stentor_core::error::Invalid;
use stentor_core::id::{DeviceId, MessageId};
use stentor_core::limits;
use stentor_core::name::{ExternalId, Tag, TimeZoneName, TopicName};
use stentor_core::ports::store::{
    self, AttemptFilter, DeviceFilter, Page, Removal, Replacement, SubscriptionAction, TokenKind,
};
use stentor_providers::descriptor::TokenKinds;

use super::calendar::known_zone;
use super::long_list::LongList;
use super::precondition::precondition;
use super::{Caller, ErrorCode, Problem, Service, ServiceCounters, ServiceResult};
use crate::contract::devices::{
    AttemptView, Deliveries, DeviceChange, DeviceList, DeviceQuery, DeviceRequest, DeviceView, History,
    RegisteredView,
};
use crate::contract::table::{
    ChangeDevice, ListDeliveries, ListDevices, RegisterDevice, RemoveDevice, ReplaceDevice, ShowDevice,
    ShowHistory,
};
use crate::contract::{After, Before, Conditional, Serve};

impl DeviceRequest {
    /// Checks every field.
    pub fn checked(mut self) -> Result<Registration, Invalid> {
        let texts = self.take_texts();
        let provider = match self.provider.or(stentor_providers::usual_provider(self.platform)) {
            Some(provider) => provider,
            None => return Err(Invalid::new("provider", format!("must be given for {}", self.platform))),
        };
        let token = read_token(provider, self.token)?;
        let former = self.former_token.map(|text| read_former(provider, text)).transpose()?;
        let topics: Result<_, _> = self.topics.into_iter().map(TopicName::new).collect();
        let user = self.user.map(ExternalId::new).transpose()?;
        let texts = DeviceFacts::of_texts(texts)?;
        check_zone(texts.time_zone.as_ref())?;
        Registration {
            platform: self.platform,
            provider,
            token,
            former,
            facts: DeviceFacts { user, tags: tags_of(self.tags)?, ..texts },
            topics: topics.map_err(|invalid: Invalid| Invalid::new("topics", invalid.problem))?,
        }
        .checked()
    }
}

impl DeviceChange {
    /// Checks every field.
    pub fn checked(mut self) -> Result<DevicePatch, Invalid> {
        let token = self.token.take().map(PushToken::new).transpose()?;
        let user = self.user.take().map(|user| user.map(ExternalId::new).transpose()).transpose()?;
        let texts = self.texts()?;
        check_zone(texts.time_zone.as_ref().and_then(Option::as_ref))?;
        Ok(DevicePatch { token, user, tags: self.tags.map(tags_of).transpose()?, ..texts })
    }
}

impl Serve<RegisterDevice> for Service {
    async fn serve(&self, caller: Caller, (): (), request: DeviceRequest) -> ServiceResult<RegisteredView> {
        caller.allow::<RegisterDevice>()?;
        let registration = [request.checked()?];
        self.open_gateway_for(caller, &registration).await?;
        self.respell(caller.app(), &registration).await?;
        let replies = self.store.register_some(caller.app(), &registration, self.now()).await?;
        let reply = replies.first().copied().ok_or_else(|| Problem::not_found("device"))?;
        self.count_devices(DeviceCounts::of(&[reply]));
        Ok(RegisteredView { id: reply.device, created: reply.created })
    }
}

impl Serve<ShowDevice> for Service {
    async fn serve(&self, caller: Caller, id: DeviceId, (): ()) -> ServiceResult<DeviceView> {
        caller.allow::<ShowDevice>()?;
        Ok(self.store.device(caller.app(), id).await?.into())
    }
}

impl Serve<ListDevices> for Service {
    async fn serve(&self, caller: Caller, (): (), query: DeviceQuery) -> ServiceResult<DeviceList> {
        let DeviceQuery { after, limit, provider, user, tag, state, address } = query;
        let page = After { after, limit }.page(|text| text.parse().ok().map(DeviceId::raw))?;
        caller.allow::<ListDevices>()?;
        let kind = address.map(|word| token_kind(provider, &word)).transpose()?;
        let filter = DeviceFilter { provider, user, tag, state, kind };
        let (mut list, mut after) = (LongList::new(page.limit), page.after);
        while let Some(limit) = list.wanted() {
            let found = self.store.devices(caller.app(), &filter, Page { after, limit }).await?;
            after = found.last().map_or(after, |last| last.id.raw());
            list.add(limit, found.into_iter().map(|one| (one.id.to_string(), DeviceView::from(one))));
        }
        let (devices, next) = list.page();
        Ok(DeviceList { devices, next })
    }
}

impl Serve<ReplaceDevice> for Service {
    async fn serve(
        &self,
        caller: Caller,
        id: DeviceId,
        Conditional { request, condition }: Conditional<DeviceRequest>,
    ) -> ServiceResult<DeviceView> {
        caller.allow::<ReplaceDevice>()?;
        if request.former_token.is_some() {
            let problem =
                "is for registrations: here the path names the device, and `token` replaces its token";
            return Err(Problem::field("former_token", problem));
        }
        let registration = request.checked()?;
        let present = self.store.device(caller.app(), id).await?;
        // The push service of a device never changes: chunks refer to it by provider, and its token belongs to it.
        if (present.platform, present.provider) != (registration.platform, registration.provider) {
            let problem = format!("stays {} by {}", present.platform, present.provider);
            return Err(Problem::new(ErrorCode::Conflict, problem)
                .at("platform")
                .with_hint("another platform or provider is another device: register it"));
        }
        let has_moved = registration.token != present.token;
        let replacing = DevicePatch::replacing(registration.facts);
        let patch = DevicePatch { token: Some(registration.token), ..replacing };
        let precondition = precondition(condition, DeviceView::from);
        let change = self.store.update_device(caller.app(), id, &patch, self.now(), &precondition);
        let device = change.await?;
        if has_moved {
            // A client connected with the former token must not continue to receive.
            self.gateway.cut_off(id);
        }
        // After the change, because its condition may fail. Topics are only added, so a repeated request completes an interrupted one.
        for topic in &registration.topics {
            self.store
                .change_subscriptions(caller.app(), topic, &[id], SubscriptionAction::Subscribe)
                .await?;
        }
        Ok(device.into())
    }
}

impl Serve<ChangeDevice> for Service {
    async fn serve(
        &self,
        caller: Caller,
        id: DeviceId,
        Conditional { request, condition }: Conditional<DeviceChange>,
    ) -> ServiceResult<DeviceView> {
        caller.allow::<ChangeDevice>()?;
        let mut patch = request.checked()?;
        // The form of a token depends on the push service of the device.
        if let Some(token) = patch.token {
            let present = self.store.device(caller.app(), id).await?;
            patch.token = Some(checked_token(present.provider, token)?);
        }
        let precondition = precondition(condition, DeviceView::from);
        let change = self.store.update_device(caller.app(), id, &patch, self.now(), &precondition);
        let device = change.await?;
        if patch.token.is_some() {
            // After the change, so that a reconnection with the former token is refused.
            self.gateway.cut_off(id);
        }
        Ok(device.into())
    }
}

impl Serve<RemoveDevice> for Service {
    async fn serve(
        &self,
        caller: Caller,
        id: DeviceId,
        Conditional { condition, .. }: Conditional<()>,
    ) -> ServiceResult<()> {
        caller.allow::<RemoveDevice>()?;
        let precondition = precondition(condition, DeviceView::from);
        self.store.remove(caller.app(), Removal::Device(id, precondition)).await?;
        // A lost device must not continue to receive its messages.
        self.gateway.cut_off(id);
        Ok(())
    }
}

impl Serve<ShowHistory> for Service {
    async fn serve(&self, caller: Caller, id: DeviceId, page: Before) -> ServiceResult<History> {
        let page = page.page(|text| text.parse().ok().map(MessageId::raw))?;
        caller.allow::<ShowHistory>()?;
        // A device of another app is refused like one that does not exist.
        self.store.device(caller.app(), id).await?;
        let (mut list, mut after) = (LongList::new(page.limit), page.after);
        while let Some(limit) = list.wanted() {
            let found =
                self.store.attempts(caller.app(), id, AttemptFilter::Page(Page { after, limit })).await?;
            after = found.last().map_or(after, |last| last.message.raw());
            list.add(limit, found.into_iter().map(|one| (one.message.to_string(), AttemptView::from(one))));
        }
        let (deliveries, next) = list.page();
        Ok(History { deliveries, next })
    }
}

impl Serve<ListDeliveries> for Service {
    async fn serve(
        &self,
        caller: Caller,
        (message, device): (MessageId, DeviceId),
        (): (),
    ) -> ServiceResult<Deliveries> {
        caller.allow::<ListDeliveries>()?;
        let attempts = self.store.attempts(caller.app(), device, AttemptFilter::Message(message)).await?;
        if attempts.is_empty() {
            // A missing message and a device outside its audience get different responses.
            self.store.message(caller.app(), message).await?;
            return Err(
                Problem::not_found("delivery").with_hint("the device is not in the message's audience")
            );
        }
        Ok(Deliveries { deliveries: attempts.into_iter().map(AttemptView::from).collect() })
    }
}

impl Service {
    /// Counts new devices and known devices.
    pub(super) fn count_devices(&self, counts: DeviceCounts) {
        ServiceCounters::add(&self.counters.devices_created, counts.created);
        ServiceCounters::add(&self.counters.devices_updated, counts.updated);
    }
}

/// Counts of registered devices: those that were made, and those that were known before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct DeviceCounts {
    pub(super) created: u64,
    pub(super) updated: u64,
    /// Known ones that have moved to another token.
    pub(super) renewed: u64,
    /// Known ones that have become one with another device.
    pub(super) merged: u64,
}

impl DeviceCounts {
    /// Counts the devices of some replies.
    pub(super) fn of(replies: &[store::Registered]) -> Self {
        let count =
            |is: &dyn Fn(&store::Registered) -> bool| replies.iter().filter(|reply| is(reply)).count() as u64;
        let created = count(&|reply| reply.created);
        Self {
            created,
            updated: replies.len() as u64 - created,
            renewed: count(&|reply| reply.replacement == Replacement::Renewed),
            merged: count(&|reply| reply.replacement == Replacement::Merged),
        }
    }

    /// Adds the counts of other devices.
    pub(super) const fn and(self, other: Self) -> Self {
        Self {
            created: self.created + other.created,
            updated: self.updated + other.updated,
            renewed: self.renewed + other.renewed,
            merged: self.merged + other.merged,
        }
    }
}

/// Parses a token of a push service, in its canonical spelling.
pub(super) fn read_token(provider: ProviderKind, text: String) -> Result<PushToken, Invalid> {
    checked_token(provider, PushToken::new(text)?)
}

/// Parses the token that a registration replaces.
fn read_former(provider: ProviderKind, text: String) -> Result<PushToken, Invalid> {
    if provider == ProviderKind::Gateway {
        return Err(Invalid::new(
            "former_token",
            "is not for devices of the gateway, which gives them new tokens",
        ));
    }
    read_token(provider, text).map_err(|invalid| Invalid::new("former_token", invalid.problem))
}

/// Returns the kind of tokens that a word means at a push service.
fn token_kind(provider: Option<ProviderKind>, word: &str) -> ServiceResult<TokenKind> {
    let needed = || Problem::field("provider", "must be given with `address`");
    let adapter = stentor_providers::descriptor(provider.ok_or_else(needed)?);
    let Some(TokenKinds { newer, form, older }) = &adapter.token_kinds else {
        let problem = format!("is not for {}, which has one kind of addresses", adapter.label);
        return Err(Problem::field("address", problem));
    };
    let has_it = word.eq_ignore_ascii_case(newer);
    if has_it || word.eq_ignore_ascii_case(older) {
        return Ok(TokenKind { form: *form, has_it });
    }
    Err(Problem::field("address", format!("must be {newer} or {older}")))
}

/// Checks a token against the rules of the push service. One of another form would fail with every message.
fn checked_token(provider: ProviderKind, token: PushToken) -> Result<PushToken, Invalid> {
    let adapter = stentor_providers::descriptor(provider);
    if !(adapter.can_be_token)(token.expose()) {
        return Err(Invalid::new("token", format!("must be {} for {}", adapter.token_form, adapter.label)));
    }
    Ok(adapter.spelled(token))
}

/// Fails if a time zone is not in the database.
fn check_zone(name: Option<&TimeZoneName>) -> Result<(), Invalid> {
    if name.is_none_or(known_zone) {
        return Ok(());
    }
    Err(Invalid::new(
        "time_zone",
        "is not in the time zone database; give an IANA name such as `Europe/Rome`",
    ))
}

/// Parses tags, sorted and without duplicates.
pub(super) fn tags_of(tags: Vec<String>) -> Result<Vec<Tag>, Invalid> {
    if tags.len() > limits::TAGS_PER_DEVICE_MAX_COUNT {
        return Err(Invalid::new("tags", format!("at most {}", limits::TAGS_PER_DEVICE_MAX_COUNT)));
    }
    let mut tags = tags.into_iter().map(Tag::new).collect::<Result<Vec<_>, _>>()?;
    // Sorted and without duplicates, so that equal sets are equal lists.
    tags.sort();
    tags.dedup();
    Ok(tags)
}
