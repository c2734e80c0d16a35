//! `stentor emulate`: emulators of push services on this machine.

mod devices;
mod options;
mod sink;

use crate::failure::CommandFailure;
use crate::output::Output;
use clap::{Args, Subcommand, ValueEnum};
use devices::{DeviceGateway, DeviceOptions};
use options::{StartOptions, TlsOptions, facts, parse, read};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use stentor_emulators::control::Running;
use stentor_emulators::{
    ApnsConfig, ApnsEmulator, CcsConfig, CcsEmulator, CcsGeneration, EmulatorConfig, FcmConfig, FcmEmulator,
    GcmConfig, GcmEmulator, HmsEmulator, Policy, VendorOptions, WebPushConfig, WebPushEmulator, WnsConfig,
    WnsEmulator,
};

/// Run an emulator of a push service until it is terminated
#[derive(Debug, Args)]
pub(crate) struct EmulateArgs {
    #[command(subcommand)]
    service: PushService,
}

#[derive(Debug, Subcommand)]
enum PushService {
    /// Firebase Cloud Messaging (HTTP v1), with its token endpoint and topics
    #[command(after_help = "\
Examples:
  stentor emulate fcm --listen 127.0.0.1:8443 --ca-dir emulator
  stentor emulate fcm --policy '{\"mix\":\"realistic\",\"latency\":{\"kind\":\"fixed\",\"ms\":50}}'
  stentor emulate fcm --control 127.0.0.1:8444 --observer fcm.observer
  stentor emulate fcm --control 127.0.0.1:8444 --credential account.json --keep-messages 1000
  stentor emulate fcm --plaintext --devices 127.0.0.1:8445 --devices-mcs 127.0.0.1:5228")]
    Fcm(FcmArgs),
    /// Apple Push Notification service (HTTP/2), with broadcast channels
    #[command(after_help = "\
Examples:
  stentor emulate apns --listen 127.0.0.1:9443 --ca-dir emulator
  stentor emulate apns --policy policy.json --observer apns.observer
  stentor emulate apns --management 127.0.0.1:2196 --control 127.0.0.1:8444
  stentor emulate apns --control 127.0.0.1:8444 --credential AuthKey.p8 --keep-messages 1000")]
    Apns(ApnsArgs),
    /// Google Cloud Messaging and FCM's legacy HTTP API, with device groups and topics
    #[command(after_help = "\
Examples:
  stentor emulate gcm --listen 127.0.0.1:8443 --ca-dir emulator
  stentor emulate gcm --plaintext --data-overhead-bytes 34 --control 127.0.0.1:8444
  stentor emulate gcm --policy '{\"scripts\":[{\"token\":\"gone\",\"then\":{\"error\":{\"code\":\"NotRegistered\"}}}]}'

App servers send to /gcm/send or /fcm/send of its address, with Authorization: key=ANYTHING")]
    Gcm(GcmArgs),
    /// Huawei Push Kit (REST API), with its token endpoint
    #[command(after_help = "\
Examples:
  stentor emulate hms --listen 127.0.0.1:8443 --ca-dir emulator
  stentor emulate hms --policy '{\"scripts\":[{\"prefix\":\"gone\",\"then\":{\"error\":{\"code\":\"80300007\"}}}]}'
  stentor emulate hms --plaintext --control 127.0.0.1:8444 --observer hms.observer

App servers get access tokens at /oauth2/v3/token of its address, with any client and secret, unless the settings file
names some, and send to /v2/PROJECT/messages:send or /v1/CLIENT/messages:send")]
    Hms(EmulatorOptions),
    /// The connection server of GCM and FCM (XMPP), for app servers that stay connected
    #[command(after_help = "\
Examples:
  stentor emulate ccs --listen 127.0.0.1:5235 --ca-dir emulator --control 127.0.0.1:8444
  stentor emulate ccs --generation fcm --policy '{\"goaway\":{\"after_requests\":1000}}'
  curl http://127.0.0.1:8444/upstream -d '{\"sender_id\":\"4711\",\"data\":{\"text\":\"hello\"}}'

App servers log in with any sender id and key, unless the settings file names some.
--streams is how many messages a connection may have without an answer")]
    Ccs(CcsArgs),
    /// A push service of Web Push, as browsers use it (RFC 8030, with VAPID), which decrypts what its devices receive
    #[command(after_help = "\
Examples:
  stentor emulate web-push --listen 127.0.0.1:8443 --ca-dir emulator --control 127.0.0.1:8444
  curl -X POST http://127.0.0.1:8444/device/register
  stentor emulate web-push --limit-per-minute --policy '{\"mix\":\"realistic\"}'

A device that registers at the control port gets its endpoint and its keys, and `push_token`, by which Stentor knows it")]
    WebPush(WebPushArgs),
    /// Windows Push Notification Services, with the token endpoint of Entra ID
    #[command(after_help = "\
Examples:
  stentor emulate wns --listen 127.0.0.1:8443 --ca-dir emulator --control 127.0.0.1:8444
  curl -X POST http://127.0.0.1:8444/device/register
  stentor emulate wns --policy '{\"scripts\":[{\"prefix\":\"\",\"answers\":[{\"answer\":{\"error\":{\"code\":\"AppThrottled\",\"retry_after_s\":5}}}]}]}'

A device that registers at the control port gets its channel URI. Any client with any secret gets access tokens at
/TENANT/oauth2/v2.0/token, unless the settings file names some")]
    Wns(WnsArgs),
    /// A sink for either service: responds with 200 to everything, to measure a sender
    #[command(after_help = "\
Examples:
  stentor emulate sink --service apns --listen 127.0.0.1:9443 --ca-dir emulator
  stentor emulate sink --service fcm --observer fcm.observer --capacity-tokens 10000000 --latency-ms 50")]
    Sink(sink::SinkOptions),
}

/// Options of the emulator of FCM.
#[derive(Debug, Args)]
struct FcmArgs {
    #[command(flatten)]
    emulator: EmulatorOptions,
    #[command(flatten)]
    test: TestOptions,
    #[command(flatten)]
    devices: DeviceOptions,
}

/// Options of the emulator of APNs.
#[derive(Debug, Args)]
struct ApnsArgs {
    #[command(flatten)]
    emulator: EmulatorOptions,
    #[command(flatten)]
    test: TestOptions,
    /// The address at which apps create, read and delete their broadcast channels
    #[arg(long, value_name = "ADDRESS")]
    management: Option<SocketAddr>,
}

/// Options for tests of a sender.
#[derive(Debug, Args)]
struct TestOptions {
    /// Make a credential and write it to this file: a service account for FCM, a signing key for APNs
    #[arg(long, value_name = "FILE")]
    credential: Option<PathBuf>,
    /// Keep the latest accepted messages, up to this number, for /messages of the control port
    #[arg(long, value_name = "N")]
    keep_messages: Option<usize>,
}

/// Options of the emulator of GCM.
#[derive(Debug, Args)]
struct GcmArgs {
    #[command(flatten)]
    emulator: EmulatorOptions,
    /// Charge this number of bytes for each message in addition to its data's keys and values
    #[arg(long, value_name = "N")]
    data_overhead_bytes: Option<usize>,
}

/// Options of the emulator of CCS.
#[derive(Debug, Args)]
struct CcsArgs {
    #[command(flatten)]
    emulator: EmulatorOptions,
    /// The generation of the service
    #[arg(long, value_enum)]
    generation: Option<CcsGenerationName>,
    /// Charge this number of bytes for each message in addition to its data's keys and values
    #[arg(long, value_name = "N")]
    data_overhead_bytes: Option<usize>,
}

/// Options of the emulator of Web Push.
#[derive(Debug, Args)]
struct WebPushArgs {
    #[command(flatten)]
    emulator: EmulatorOptions,
    /// The origin of the endpoints, such as https://localhost:8443, if it is not the address to listen on
    #[arg(long, value_name = "URL")]
    origin: Option<String>,
    /// Answer 429 to a sender's key above this number of messages in a minute; without a number 1,000, the limit of Chrome
    #[arg(long, value_name = "N", num_args = 0..=1, default_missing_value = "1000")]
    limit_per_minute: Option<u64>,
    /// Decrypt the messages for one in this number of synthetic subscriptions; 0 decrypts none
    #[arg(long, value_name = "N")]
    decrypt_every: Option<u64>,
}

/// Options of the emulator of WNS.
#[derive(Debug, Args)]
struct WnsArgs {
    #[command(flatten)]
    emulator: EmulatorOptions,
    /// The origin of the channel URIs, such as https://localhost:8443, if it is not the address to listen on
    #[arg(long, value_name = "URL")]
    origin: Option<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum CcsGenerationName {
    /// Google Cloud Messaging
    Gcm,
    /// Firebase Cloud Messaging
    Fcm,
}

/// Options of an emulator.
#[derive(Debug, Args)]
struct EmulatorOptions {
    /// The address to listen on; port 0 selects a free port
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// The address for control and test devices, in plain HTTP
    #[arg(long, value_name = "ADDRESS")]
    control: Option<SocketAddr>,
    /// The policy of responses: a JSON object, or a file with one
    #[arg(long, value_name = "FILE|JSON")]
    policy: Option<String>,
    /// The file with a counter for every token; it stays when the emulator ends
    #[arg(long, value_name = "FILE")]
    observer: Option<PathBuf>,
    /// Capacity for different tokens
    #[arg(long, value_name = "N")]
    capacity_tokens: Option<u64>,
    #[command(flatten)]
    tls: TlsOptions,
    /// Seed that makes random choices repeatable
    #[arg(long)]
    seed: Option<u64>,
    /// Most open requests of a client on one connection
    #[arg(long, value_name = "N")]
    streams: Option<u32>,
    /// Ignored: scripts written when there were two engines may name one
    #[arg(long, value_enum, hide = true)]
    engine: Option<EngineName>,
    #[command(flatten)]
    start: StartOptions,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum EngineName {
    H2,
    Frames,
}

impl EmulateArgs {
    /// Runs the emulator.
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<()> {
        match self.service {
            PushService::Fcm(args) => args.run(output).await,
            PushService::Apns(args) => {
                let ended = args.emulator.start.prepare()?;
                let running = ApnsEmulator::start(args.configuration()?).await.map_err(refused)?;
                args.emulator.serve("apns", running, ended, output).await
            }
            PushService::Gcm(args) => {
                let ended = args.emulator.start.prepare()?;
                let running = GcmEmulator::start(args.configuration()?).await.map_err(refused)?;
                args.emulator.serve("gcm", running, ended, output).await
            }
            PushService::Hms(options) => {
                let ended = options.start.prepare()?;
                let running = HmsEmulator::start(options.configuration()?).await.map_err(refused)?;
                options.serve("hms", running, ended, output).await
            }
            PushService::Ccs(args) => {
                let ended = args.emulator.start.prepare()?;
                let ccs = CcsEmulator::start(args.configuration()?).await.map_err(refused)?;
                args.emulator.serve("ccs", ccs.running, ended, output).await
            }
            PushService::WebPush(args) => {
                let ended = args.emulator.start.prepare()?;
                let started = WebPushEmulator::start(args.configuration()?).await.map_err(refused)?;
                args.emulator.serve("web-push", started.running, ended, output).await
            }
            PushService::Wns(args) => {
                let ended = args.emulator.start.prepare()?;
                let started = WnsEmulator::start(args.configuration()?).await.map_err(refused)?;
                args.emulator.serve("wns", started.running, ended, output).await
            }
            PushService::Sink(options) => options.run(output).await,
        }
    }
}

fn refused(error: stentor_emulators::EmulatorError) -> anyhow::Error {
    CommandFailure::usage(format!("the emulator cannot start: {error}")).into()
}

impl FcmArgs {
    fn configuration(&self) -> anyhow::Result<FcmConfig> {
        let mut config: FcmConfig = self.emulator.configuration()?;
        let own = &mut config.vendor;
        own.credential = self.test.credential.clone().or_else(|| own.credential.take());
        own.keep_messages = self.test.keep_messages.unwrap_or(own.keep_messages);
        Ok(config)
    }

    async fn run(&self, output: Output) -> anyhow::Result<()> {
        let ended = self.emulator.start.prepare()?;
        let running = FcmEmulator::start(self.configuration()?).await.map_err(refused)?;
        let Some(gateway) = self.devices.start().await? else {
            return self.emulator.serve("fcm", running, ended, output).await;
        };
        self.emulator.serve_before(gateway, running, ended, output).await
    }
}

impl ApnsArgs {
    fn configuration(&self) -> anyhow::Result<ApnsConfig> {
        let mut config: ApnsConfig = self.emulator.configuration()?;
        let own = &mut config.vendor;
        own.management = self.management.or(own.management);
        own.credential = self.test.credential.clone().or_else(|| own.credential.take());
        own.keep_messages = self.test.keep_messages.unwrap_or(own.keep_messages);
        Ok(config)
    }
}

impl GcmArgs {
    fn configuration(&self) -> anyhow::Result<GcmConfig> {
        let mut config: GcmConfig = self.emulator.configuration()?;
        let own = &mut config.vendor;
        own.data_overhead_bytes = self.data_overhead_bytes.unwrap_or(own.data_overhead_bytes);
        Ok(config)
    }
}

impl CcsArgs {
    fn configuration(&self) -> anyhow::Result<CcsConfig> {
        let mut config: CcsConfig = self.emulator.configuration()?;
        let own = &mut config.vendor;
        own.data_overhead_bytes = self.data_overhead_bytes.unwrap_or(own.data_overhead_bytes);
        own.generation = match self.generation {
            Some(CcsGenerationName::Gcm) => CcsGeneration::Gcm,
            Some(CcsGenerationName::Fcm) => CcsGeneration::Fcm,
            None => own.generation,
        };
        Ok(config)
    }
}

impl WebPushArgs {
    fn configuration(&self) -> anyhow::Result<WebPushConfig> {
        let mut config: WebPushConfig = self.emulator.configuration()?;
        let own = &mut config.vendor;
        own.origin = self.origin.clone().or_else(|| own.origin.take());
        own.limit_per_minute = self.limit_per_minute.or(own.limit_per_minute);
        own.decrypt_every = self.decrypt_every.unwrap_or(own.decrypt_every);
        Ok(config)
    }
}

impl WnsArgs {
    fn configuration(&self) -> anyhow::Result<WnsConfig> {
        let mut config: WnsConfig = self.emulator.configuration()?;
        let own = &mut config.vendor;
        own.origin = self.origin.clone().or_else(|| own.origin.take());
        Ok(config)
    }
}

impl EmulatorOptions {
    fn configuration<T>(&self) -> anyhow::Result<EmulatorConfig<T>>
    where
        T: VendorOptions + DeserializeOwned,
    {
        let mut config: EmulatorConfig<T> = self.start.configured()?;
        config.listen = self.listen.unwrap_or(config.listen);
        config.control = self.control.or(config.control);
        config.seed = self.seed.unwrap_or(config.seed);
        config.max_concurrent_streams = self.streams.unwrap_or(config.max_concurrent_streams);
        config.tls = self.tls.apply(config.tls);
        config.policy = self.policy(config.policy)?;
        self.observe(&mut config.observer);
        Ok(config)
    }

    fn policy(&self, configured: Policy) -> anyhow::Result<Policy> {
        match self.policy.as_deref() {
            None => Ok(configured),
            Some(text) if text.trim_start().starts_with('{') => parse(text, "--policy"),
            Some(path) => parse(&read(Path::new(path))?, path),
        }
    }

    fn observe(&self, observer: &mut stentor_emulators::ObserverConfig) {
        if let Some(path) = &self.observer {
            observer.path = Some(path.clone());
        }
        observer.capacity_tokens = self.capacity_tokens.unwrap_or(observer.capacity_tokens);
    }

    async fn serve(
        &self,
        service: &str,
        running: Running,
        ended: impl Future<Output = ()>,
        output: Output,
    ) -> anyhow::Result<()> {
        self.start.announce(&self.facts(service, &running), output)?;
        ended.await;
        running.stop().await;
        Ok(())
    }

    /// Serves FCM with a gateway that delivers the accepted messages to its devices.
    async fn serve_before(
        &self,
        mut gateway: DeviceGateway,
        running: Running,
        ended: impl Future<Output = ()>,
        output: Output,
    ) -> anyhow::Result<()> {
        let accepted = running.devices().follow();
        let mut facts = self.facts("fcm", &running);
        facts["devices"] = gateway.facts().clone();
        self.start.announce(&facts, output)?;
        let followed = tokio::select! {
            followed = gateway.follow(accepted) => followed,
            () = ended => Ok(()),
        };
        running.stop().await;
        followed
    }

    fn facts(&self, service: &str, running: &Running) -> Value {
        let has_tls = running.ca_pem().is_some();
        let mut facts = facts(service, running.addr(), has_tls, &self.tls);
        if let Some(address) = running.management_addr() {
            facts["management"] = json!(format!("{}://{address}", if has_tls { "https" } else { "http" }));
        }
        if let Some(credential) = running.credential() {
            facts["credential"] = json!(credential);
        }
        facts["control"] = json!(running.control_addr().map(|address| format!("http://{address}")));
        facts
    }
}
