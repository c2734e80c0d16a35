//! The check of content against the limits of each push service that a message may reach.

use stentor_core::device::ProviderKind;
use stentor_core::id::AppId;
use stentor_core::message::{Message, MessageSpec};
use stentor_core::ports::store::StoreError;
use stentor_core::target::Target;

use super::messages::target_problem;
use super::{ErrorCode, Problem, Service, ServiceResult};
use crate::contract::messages::{DryRun, PreviewView};
use crate::contract::table::PutCredential;

impl Service {
    /// Checks a message against each provider that it may reach, and returns these providers.
    pub(super) async fn check_content(
        &self,
        app: AppId,
        spec: &MessageSpec,
    ) -> ServiceResult<Vec<ProviderKind>> {
        let providers = match self.providers_of(app, spec) {
            // Another server may have put a credential that is not known here yet. Only this app's credentials are read; otherwise an app
            // without any would cause all credentials to be decrypted with each of its messages.
            Err(_) if self.settings.is_shared => {
                self.find_credentials(app).await?;
                self.providers_of(app, spec)?
            }
            providers => providers?,
        };
        match check_all(providers, spec) {
            // The push service is known only for a single named device. For other targets every possible one must accept the message.
            Err(problem) if matches!(spec.target, Target::Device(_)) => {
                self.check_device_only(app, spec, problem).await
            }
            answer => answer,
        }
    }

    /// Counts the audience of a message at present, and its bytes.
    pub(super) async fn count(&self, message: &Message, providers: &[ProviderKind]) -> ServiceResult<DryRun> {
        let mut counts = self.store.count_audience(message.app, &message.spec.target).await?;
        counts.retain(|(provider, _)| message.spec.content.is_for(*provider));
        let bytes =
            |provider: &ProviderKind| (*provider, crate::providers::payload_bytes(*provider, message));
        let requests = self.previews(message, &counts).await?;
        Ok(DryRun::new(counts, providers.iter().map(bytes), requests))
    }

    /// Shows the request that a message causes for one device of each push service that it reaches.
    async fn previews(
        &self,
        message: &Message,
        counts: &[(ProviderKind, u64)],
    ) -> ServiceResult<Vec<PreviewView>> {
        let mut previews = Vec::new();
        for (provider, _) in counts.iter().filter(|(_, count)| *count > 0) {
            let credential = match self.store.credential(message.app, *provider).await {
                Ok(credential) => credential,
                Err(StoreError::NotFound(_) | StoreError::Damaged(_)) => continue,
                Err(error) => return Err(error.into()),
            };
            // A credential of an earlier version may not be readable any more; its own check says so.
            if let Ok(Some(preview)) = crate::providers::preview(&credential, message) {
                previews.push(PreviewView::new(*provider, preview));
            }
        }
        Ok(previews)
    }

    fn providers_of(&self, app: AppId, spec: &MessageSpec) -> ServiceResult<Vec<ProviderKind>> {
        let mut known = self.credentials.of_app(app);
        if known.is_empty() {
            return Err(no_credential("the app has no credential for any push service"));
        }
        known.retain(|provider| spec.content.is_for(*provider));
        if known.is_empty() {
            return Err(no_credential("the app has no credential for devices that get this content"));
        }
        match &spec.target {
            Target::Token(token) if !spec.content.is_for(token.provider) => {
                let problem = format!("devices of {} get other content", token.provider);
                Err(Problem::field("target.token.provider", problem))
            }
            Target::Token(token) if known.contains(&token.provider) => Ok(vec![token.provider]),
            Target::Token(token) => {
                Err(no_credential(&format!("the app has no credential for {}", token.provider)))
            }
            _ => Ok(known),
        }
    }

    /// Limits of push services that do not serve the device are irrelevant to it.
    async fn check_device_only(
        &self,
        app: AppId,
        spec: &MessageSpec,
        problem: Problem,
    ) -> ServiceResult<Vec<ProviderKind>> {
        let Target::Device(id) = spec.target else { return Err(problem) };
        let device = self.store.device(app, id).await.map_err(|error| target_problem(error.into()))?;
        check_all(vec![device.provider], spec)
    }
}

fn check_all(providers: Vec<ProviderKind>, spec: &MessageSpec) -> ServiceResult<Vec<ProviderKind>> {
    providers.iter().try_for_each(|provider| crate::providers::check(*provider, spec))?;
    Ok(providers)
}

fn no_credential(detail: &str) -> Problem {
    let named = |for_trials: bool| {
        let adapters = stentor_providers::all().filter(move |adapter| adapter.is_for_trials == for_trials);
        adapters.map(|adapter| adapter.kind.as_str()).collect::<Vec<_>>()
    };
    Problem::new(ErrorCode::Conflict, detail.to_owned()).helped_by::<PutCredential>(format!(
        "put one for {} (`{}` sends nothing and is for trials)",
        named(false).join(", "),
        named(true).join("`, `"),
    ))
}
