//! The only way to register a route: every HTTP route has limits, because routes without limits cannot be served.

use axum::Router;
use axum::extract::{Request, State};
use axum::handler::Handler;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::MethodRouter;
use utoipa_axum::router::OpenApiRouter;

use super::limited_body::{BodyRule, limited};
use super::middleware::{outer, timed_out};
use super::origin::network_of;
use super::refusal::{Refusal, WriteRefusal};
use super::request_permit::RequestPermit;
use crate::face::Api;
use crate::listen::LimitedRoutes;

/// The callers of a route, and the deadlines of their requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryRule {
    /// Callers with a key, a secret or a capability; deadlines for the body and the response.
    Keyed,
    /// All callers, counted by their address; the same deadlines.
    Open,
    /// Callers with a key that send bodies of any length; the handler limits the pace.
    Import,
    /// Callers with a key that get an open-ended response; a deadline for the body only.
    Lasting,
    /// All callers, counted by their address, that get an open-ended response.
    OpenLasting,
    /// All callers, without a limit per address, because a supervisor that gets a refusal would stop the server. Probes that arrive
    /// together share one check.
    Probe,
}

/// A served path and its rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryPoint {
    /// The path, with parameters in braces.
    pub path: String,
    /// Its limits.
    pub rule: EntryRule,
}

/// Routes without limits, which cannot be served yet.
pub(crate) struct Routes<S> {
    router: Router<S>,
    paths: Vec<String>,
    /// A layer between the limits and the writer of refusals.
    around: fn(Router<S>) -> Router<S>,
}

/// Routes with limits, which can be served.
#[derive(Clone, Default)]
pub(crate) struct LimitedRouter {
    router: Router,
    entry_points: Vec<EntryPoint>,
}

/// State of the layer around the routes of one rule.
#[derive(Clone)]
struct RouteLimits {
    api: Api,
    rule: EntryRule,
}

impl EntryRule {
    const fn is_open(self) -> bool {
        matches!(self, Self::Open | Self::OpenLasting)
    }

    /// Returns true if the response has no deadline.
    #[must_use]
    pub const fn lasts(self) -> bool {
        matches!(self, Self::Lasting | Self::OpenLasting)
    }

    const fn wants_key(self) -> bool {
        matches!(self, Self::Keyed | Self::Import | Self::Lasting)
    }

    const fn body(self) -> BodyRule {
        match self {
            Self::Import => BodyRule::Streamed,
            Self::Keyed | Self::Open | Self::Lasting | Self::OpenLasting | Self::Probe => BodyRule::Whole,
        }
    }
}

impl<S: Clone + Send + Sync + 'static> Routes<S> {
    /// Creates an empty set of routes.
    pub(crate) fn new() -> Self {
        Self { router: Router::new(), paths: Vec::new(), around: |router| router }
    }

    /// Adds the methods of a path.
    pub(crate) fn route(mut self, path: &str, methods: MethodRouter<S>) -> Self {
        self.paths.push(path.to_owned());
        Self { router: self.router.route(path, methods), ..self }
    }

    /// Adds routes with OpenAPI descriptions.
    pub(crate) fn described(mut self, routes: OpenApiRouter<S>) -> Self {
        let (router, described) = routes.split_for_parts();
        self.paths.extend(described.paths.paths.into_keys());
        Self { router: self.router.merge(router), ..self }
    }

    /// Sets the handler for all other paths.
    pub(crate) fn fallback<H: Handler<T, S>, T: 'static>(self, handler: H) -> Self {
        Self { router: self.router.fallback(handler), ..self }
    }

    /// Adds a layer that all responses pass before refusals are written, including those of the limits.
    pub(crate) fn around(self, around: fn(Router<S>) -> Router<S>) -> Self {
        Self { around, ..self }
    }

    /// Applies the limits of one rule to all routes; `write` writes refusals.
    pub(crate) fn limited(self, api: &Api, state: S, rule: EntryRule, write: WriteRefusal) -> LimitedRouter {
        let entry = RouteLimits { api: api.clone(), rule };
        let router = (self.around)(self.router.layer(from_fn_with_state(entry, within_limits)));
        LimitedRouter {
            // The last layer is the outermost: it writes the refusals of the inner ones.
            router: router.layer(from_fn_with_state(write, outer)).with_state(state),
            entry_points: self.paths.into_iter().map(|path| EntryPoint { path, rule }).collect(),
        }
    }
}

impl LimitedRouter {
    /// Combines the routes of both.
    pub(crate) fn merge(mut self, other: Self) -> Self {
        self.entry_points.extend(other.entry_points);
        Self { router: self.router.merge(other.router), ..self }
    }

    /// Returns every served path.
    pub(crate) fn entry_points(&self) -> &[EntryPoint] {
        &self.entry_points
    }
}

impl LimitedRoutes for LimitedRouter {
    fn into_router(self) -> Router {
        self.router
    }
}

/// Limits a request: its body, its time, its memory and its reply, each charged to an owner.
async fn within_limits(
    State(RouteLimits { api, rule }): State<RouteLimits>,
    request: Request,
    next: Next,
) -> Response {
    let limits = api.limits();
    let (mut parts, body) = request.into_parts();
    let permit = RequestPermit::new(limits, network_of(&parts, &api), rule.lasts());
    let body = limited(&parts, body, &permit, rule.body(), limits);
    if rule.is_open()
        && let Err(problem) = permit.open()
    {
        return Refusal(problem).into_response();
    }
    parts.extensions.insert(permit.clone());
    let request = Request::from_parts(parts, body);
    let answering = next.run(request);
    let answer = match rule {
        EntryRule::Keyed | EntryRule::Open | EntryRule::Probe => {
            tokio::time::timeout(limits.timeout, answering).await
        }
        EntryRule::Import | EntryRule::Lasting | EntryRule::OpenLasting => Ok(answering.await),
    };
    // Only now: a caller with a key must not wait for others at the same address without one.
    let counted = if rule.wants_key() { permit.count_unknown() } else { Ok(()) };
    let answer = answer.unwrap_or_else(|_| Refusal(timed_out()).into_response());
    permit.answered(counted.map_or_else(|problem| Refusal(problem).into_response(), |()| answer))
}
