//! Broadcast channels of Live Activities, which the push service keeps.

use stentor_core::device::ProviderKind;
use stentor_core::id::AppId;
use stentor_core::name::ChannelId;
use stentor_core::ports::provider::{ChannelRefusal, Channels};

use super::{Caller, ErrorCode, Problem, Service, ServiceResult};
use crate::contract::Serve;
use crate::contract::channels::{ChannelList, ChannelRequest, ChannelView};
use crate::contract::table::{CreateChannel, ListChannels, PutCredential, RemoveChannel};
use crate::pipeline::LentProvider;

impl Serve<CreateChannel> for Service {
    async fn serve(&self, caller: Caller, (): (), request: ChannelRequest) -> ServiceResult<ChannelView> {
        caller.allow::<CreateChannel>()?;
        let lent = self.lent_channels(caller.app()).await?;
        let created = channels_of(&lent)?.create(request.storage.unwrap_or_default()).await;
        Ok(created.map_err(problem)?.into())
    }
}

impl Serve<ListChannels> for Service {
    async fn serve(&self, caller: Caller, (): (), (): ()) -> ServiceResult<ChannelList> {
        caller.allow::<ListChannels>()?;
        let lent = self.lent_channels(caller.app()).await?;
        let listed = channels_of(&lent)?.list().await;
        Ok(ChannelList { channels: listed.map_err(problem)?.into_iter().map(ChannelView::from).collect() })
    }
}

impl Serve<RemoveChannel> for Service {
    async fn serve(&self, caller: Caller, channel: ChannelId, (): ()) -> ServiceResult<()> {
        caller.allow::<RemoveChannel>()?;
        let lent = self.lent_channels(caller.app()).await?;
        channels_of(&lent)?.remove(&channel).await.map_err(problem)
    }
}

impl Service {
    /// Borrows the provider of an app's channels.
    async fn lent_channels(&self, app: AppId) -> ServiceResult<LentProvider> {
        let provider = ProviderKind::LiveActivityChannel;
        // A missing credential gets another response than one that does not work.
        if self.store.credential(app, provider).await.is_err() {
            let detail = format!("the app has no credential for {provider}");
            let hint = format!("put one for {provider}, with the same key as for the devices");
            return Err(Problem::new(ErrorCode::Conflict, detail).helped_by::<PutCredential>(hint));
        }
        let lent = self.pipeline.lend(app, provider).await;
        lent.map_err(|failure| Problem::new(ErrorCode::Unavailable, failure.cause))
    }
}

fn channels_of(lent: &LentProvider) -> ServiceResult<&dyn Channels> {
    lent.provider()
        .channels()
        .ok_or_else(|| problem(ChannelRefusal::Refused("it has no channels".to_owned())))
}

fn problem(refusal: ChannelRefusal) -> Problem {
    let code = match refusal {
        ChannelRefusal::Unknown => return Problem::not_found("channel"),
        ChannelRefusal::LimitReached(_) => ErrorCode::LimitReached,
        ChannelRefusal::Refused(_) => ErrorCode::Conflict,
        ChannelRefusal::Unavailable(_) => ErrorCode::Unavailable,
    };
    Problem::new(code, refusal.to_string())
}
