//! Measures the speed of the SQLite store by itself, without a network: the floor under every other figure.
//!
//! `cargo run --release -p stentor-storage --example store_floor -- [devices] [directory]`
#![expect(clippy::print_stdout, reason = "a program that prints its figures")]

use std::path::PathBuf;
use std::time::Instant;

use stentor_core::app::App;
use stentor_core::campaign::CampaignState;
use stentor_core::chunk::TrafficClass;
use stentor_core::delivery::{DeliveryState, Record};
use stentor_core::device::{Platform, ProviderKind, PushToken, Registration};
use stentor_core::id::{AppId, ChunkId, DeviceId, MessageId};
use stentor_core::message::{Content, Message, MessageSpec, Notification, Priority, Ttl};
use stentor_core::name::Label;
use stentor_core::outcome::Reason;
use stentor_core::ports::store::{
    Expansion, LeaseReply, LeaseTerms, LeasedChunk, MessageStore, NewMessage, PipelineStore,
};
use stentor_core::settlement::Settlement;
use stentor_core::target::Target;
use stentor_core::time::Timestamp;
use stentor_storage::conformance::PlainChanges;
use stentor_storage::sqlite::{SqliteSettings, SqliteStore};

const BATCH_DEVICES: usize = 16_384;
const CHUNK_DEVICES: usize = 1_000;
const CHUNKS_AT_ONCE: usize = 8;
const SINGLES: u64 = 5_000;
const SINGLES_AT_ONCE: u64 = 64;

type Failed = Box<dyn std::error::Error>;

#[tokio::main]
async fn main() -> Result<(), Failed> {
    let mut arguments = std::env::args().skip(1);
    let devices: usize = arguments.next().map_or(Ok(1_000_000), |text| text.parse())?;
    let folder = arguments.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let folder = folder.join(format!("stentor-store-floor-{}", std::process::id()));
    let store = SqliteStore::open(folder.join("stentor.db"), SqliteSettings::store())?;
    measure(&store, devices).await?;
    drop(store);
    std::fs::remove_dir_all(folder)?;
    Ok(())
}

async fn measure(store: &SqliteStore, devices: usize) -> Result<(), Failed> {
    let app =
        App { id: AppId::from_raw(1 << 50), name: Label::new("floor").map_err(text)?, created_at: at(0) };
    store.create_app(&app).await?;
    let begun = Begun::now();
    register(store, app.id, devices, at(1)).await?;
    begun.print("devices registered", devices);
    let begun = Begun::now();
    register(store, app.id, devices, at(2)).await?;
    begun.print("devices registered again", devices);
    let begun = Begun::now();
    accept_singles(store, app.id).await?;
    begun.print("single messages accepted", SINGLES as usize);
    campaign(store, app.id, devices).await
}

async fn register(store: &SqliteStore, app: AppId, devices: usize, now: Timestamp) -> Result<(), Failed> {
    let numbers: Vec<usize> = (0..devices).collect();
    for batch in numbers.chunks(BATCH_DEVICES) {
        let batch: Vec<_> = batch.iter().map(|number| registration(*number)).collect::<Result<_, _>>()?;
        store.register(app, &batch, now).await?;
    }
    Ok(())
}

async fn accept_singles(store: &SqliteStore, app: AppId) -> Result<(), Failed> {
    for first in (0..SINGLES).step_by(SINGLES_AT_ONCE as usize) {
        let new = |number: u64| message(app, 1_000 + first + number, Target::Device(DeviceId::from_raw(1)));
        let replies = store.accept((0..SINGLES_AT_ONCE).map(new).collect()).await;
        replies.into_iter().collect::<Result<Vec<_>, _>>()?;
    }
    Ok(())
}

async fn campaign(store: &SqliteStore, app: AppId, devices: usize) -> Result<(), Failed> {
    let new = message(app, 1 << 51, Target::Everyone);
    let id = new.message.id;
    store.accept(vec![new]).await.into_iter().collect::<Result<Vec<_>, _>>()?;
    let begun = Begun::now();
    store.start_due(1, CHUNK_DEVICES, at(3)).await?;
    let mut chunks = Vec::new();
    for task in store.producers().await? {
        loop {
            let how = Expansion { chunk_max_devices: CHUNK_DEVICES, max_chunks: 10, now: at(3) };
            let step = store.expand(task, how).await?;
            chunks.extend(step.tickets.iter().map(|ticket| ticket.chunk));
            if step.done {
                break;
            }
        }
    }
    begun.print("devices expanded", devices);
    let begun = Begun::now();
    for some in chunks.chunks(CHUNKS_AT_ONCE) {
        settle(store, some).await?;
    }
    begun.print("chunks leased and settled", chunks.len());
    begun.print("deliveries leased and settled", devices);
    let ledger = store.ledger(app, id.into()).await?;
    let whole = ledger.is_balanced() && ledger.total().accepted == devices as u64;
    println!("ledger whole: {}", whole && ledger.campaign.state == CampaignState::Finished);
    Ok(())
}

async fn settle(store: &SqliteStore, chunks: &[ChunkId]) -> Result<(), Failed> {
    let replies = store
        .lease(chunks, LeaseTerms { instance: 1, until: at(1_000), now: at(4), class: TrafficClass::Bulk })
        .await?;
    let leased = replies.into_iter().filter_map(|reply| match reply {
        LeaseReply::Leased(leased) => Some(accepted(&leased)),
        LeaseReply::Paused | LeaseReply::Void => None,
    });
    store.settle(leased.collect()).await?;
    Ok(())
}

fn accepted(leased: &LeasedChunk) -> Settlement {
    Settlement {
        chunk: leased.id,
        epoch: leased.epoch,
        now: at(5),
        records: vec![Record::new(DeliveryState::Accepted, Reason::None, false); leased.devices.len()],
        attempts: leased.devices.len() as u32,
        tokens: Vec::new(),
        children: Vec::new(),
        awaited: Vec::new(),
        stop: None,
    }
}

/// Half for FCM with tokens as long as its own, half for APNs.
fn registration(number: usize) -> Result<Registration, Failed> {
    let scattered = (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let (platform, provider, token) = if number.is_multiple_of(2) {
        let rest = "x".repeat(112);
        (Platform::Android, ProviderKind::Fcm, format!("{scattered:016x}:APA91b{number:08}{rest}"))
    } else {
        (Platform::Apple, ProviderKind::Apns, format!("{scattered:016x}{number:048x}"))
    };
    Ok(Registration::new(platform, provider, PushToken::new(token).map_err(text)?))
}

fn message(app: AppId, number: u64, target: Target) -> NewMessage {
    let notification = Some(Notification { title: Some("Floor".into()), ..Notification::default() });
    let content = Content { notification, ..Content::default() };
    let spec =
        MessageSpec { target, content, priority: Priority::High, ttl: Ttl::default(), collapse_key: None };
    let id = MessageId::from_raw(number);
    let message = Message { id, app, spec, created_at: at(3), due_at: at(3), occurrence: None };
    NewMessage { message, idempotency: None, at_once: None }
}

/// A start time, on the wall clock and in the processor time of this process: on a busy machine only the latter is meaningful.
struct Begun {
    at: Instant,
    processor_seconds: f64,
}

impl Begun {
    fn now() -> Self {
        Self { at: Instant::now(), processor_seconds: processor_seconds() }
    }

    fn print(&self, what: &str, count: usize) {
        let (seconds, used) = (self.at.elapsed().as_secs_f64(), processor_seconds() - self.processor_seconds);
        let (per_second, per_used) = (count as f64 / seconds, count as f64 / used);
        println!(
            "{what}: {count} in {seconds:.2} s ({per_second:.0}/s), {used:.2} processor seconds ({per_used:.0}/s)"
        );
    }
}

/// Reads user and system time, in the kernel's ticks of 10 ms; 0 where there is no such file.
fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let ticks = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
    ticks.filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
}

fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(seconds * 1_000)
}

fn text(error: impl std::fmt::Display) -> Failed {
    error.to_string().into()
}
