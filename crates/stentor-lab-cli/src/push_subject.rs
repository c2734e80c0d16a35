//! Push services as subjects of a study, by LSP-1: the real gateway, the app server, which speaks XMPP to it, and the device, which speaks
//! MCS to it. The device's message goes up to the app server and comes back down.

mod app_server_half;
mod device_half;
mod gateway_api;
mod gateway_half;
mod provider_delay;

use anyhow::{Context, bail};
use stentor_lab::subject::PUSH_SERVICES;
use stentor_lab::subject::protocol::{Prepare, Report, SubjectOrder, SubjectRole};

use crate::features::PushServiceFront;
use crate::orders::{self, OrderedHalf};
use app_server_half::AppServerHalf;
use device_half::DeviceHalf;
use gateway_half::GatewayHalf;

/// Plays a half of a push service until the order `Stop` or the end of standard input.
pub(crate) async fn speak(service: &str) -> anyhow::Result<()> {
    let known = PUSH_SERVICES.into_iter().zip(PushServiceFront::ALL);
    let service = known.into_iter().find(|(name, _)| *name == service).map(|(_, service)| service);
    let service = service.context("there is no such push service")?;
    orders::take(&mut PushSubject { service, half: PushHalf::None }).await
}

struct PushSubject {
    service: PushServiceFront,
    half: PushHalf,
}

enum PushHalf {
    None,
    // Held, because the gateway serves until it is dropped.
    Gateway { _half: GatewayHalf },
    AppServer(AppServerHalf),
    Device(Box<DeviceHalf>),
}

impl OrderedHalf for PushSubject {
    async fn follow(&mut self, order: SubjectOrder) -> anyhow::Result<Option<Report>> {
        match order {
            SubjectOrder::Hello => bail!("said already"),
            SubjectOrder::Prepare(prepare) => self.prepare(prepare).await.map(Some),
            SubjectOrder::Arm(arm) => {
                match &mut self.half {
                    PushHalf::None | PushHalf::Gateway { .. } => bail!("nothing is to be armed"),
                    PushHalf::AppServer(half) => half.arm(arm),
                    PushHalf::Device(half) => half.arm(arm),
                }
                Ok(Some(Report::Armed))
            }
            SubjectOrder::Go { t0_ns } => match &mut self.half {
                PushHalf::Device(half) => half.go(t0_ns).await.map(Some),
                _ => Ok(None),
            },
            SubjectOrder::Stop => match &mut self.half {
                PushHalf::AppServer(half) => half.stop().await.map(Some),
                _ => Ok(Some(Report::Done { n: 0, errors: 0, digest: String::new() })),
            },
        }
    }
}

impl PushSubject {
    async fn prepare(&mut self, prepare: Prepare) -> anyhow::Result<Report> {
        let (half, facts) = match prepare.role {
            SubjectRole::Gateway => {
                let (half, facts) = GatewayHalf::start(&prepare).await?;
                (PushHalf::Gateway { _half: half }, facts)
            }
            SubjectRole::Server => {
                let half = AppServerHalf::start(self.service, prepare).await?;
                (PushHalf::AppServer(half), Default::default())
            }
            SubjectRole::Client => {
                let half = DeviceHalf::start(self.service, prepare).await?;
                (PushHalf::Device(Box::new(half)), Default::default())
            }
        };
        self.half = half;
        Ok(Report::Ready { port: 0, facts })
    }
}
