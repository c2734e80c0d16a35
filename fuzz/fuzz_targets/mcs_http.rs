//! HTTP requests of MCS programs before they connect: check-ins, registrations, installations. Every request gets a response in its format,
//! and a token issued to a web client belongs to a device.
#![no_main]
use async_trait::async_trait;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use stentor_core::id::{AppId, IdSource, KeyId};
use stentor_core::ports::clock::Clock;
use stentor_core::ports::store::StoreError;
use stentor_core::time::Timestamp;
use stentor_gateway::mcs::{self, McsAgent, McsRegistrar, McsReply, McsWebCaller};
use stentor_gateway::{Gateway, GatewayKey};
use stentor_storage::conformance::scene::{Scene, at};
use stentor_storage::sqlite::SqliteStore;
use stentor_wire::mcs::McsCheckinReply;
use tokio::runtime::{Builder, Runtime};

/// Separator of requests.
const SEPARATOR: u8 = 0x1e;
const REQUESTS_MAX_COUNT: usize = 8;
const KEY: &str = "key";

static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| Builder::new_current_thread().enable_time().build().expect("a runtime"));

/// One store with one app for all inputs: to open one takes longer than an input. Each input is another program.
static STORE: LazyLock<SqliteStore> = LazyLock::new(|| {
    let store = SqliteStore::temporary().expect("a store");
    RUNTIME.block_on(Scene::new(&store));
    store
});
static PROGRAMS: AtomicU64 = AtomicU64::new(1);
static IDS: LazyLock<Arc<IdSource>> = LazyLock::new(|| Arc::new(IdSource::after(0)));

struct StillClock;

impl Clock for StillClock {
    fn now(&self) -> Timestamp {
        at(0)
    }
}

/// Admits callers with the key of the one app.
struct OneApp(AppId);

#[async_trait]
impl McsRegistrar for OneApp {
    async fn key_of(&self, app: AppId, key: &str) -> Result<Option<KeyId>, StoreError> {
        Ok((app == self.0 && key == KEY).then(|| KeyId::from_raw(1)))
    }

    async fn may_register(&self, app: AppId, _installed_with: Option<KeyId>) -> Result<bool, StoreError> {
        Ok(app == self.0)
    }
}

/// A program with the values that it received: a later request sends them in place of `$token`, `$auth` or `$refresh`.
struct Program {
    gateway: Gateway,
    registrar: OneApp,
    words: Vec<(&'static str, String)>,
}

impl Program {
    fn new(store: &SqliteStore) -> Self {
        let registrar = OneApp(Scene::again(store, 1).app);
        let (ids, key) = (Arc::clone(&IDS), GatewayKey::new([1; 32]));
        let gateway = Gateway::start(Arc::new(store.clone()), Arc::new(StillClock), ids, key);
        let number = PROGRAMS.fetch_add(1, Ordering::Relaxed);
        let agent = McsAgent::of(number).expect("an android id");
        let login = format!("AidLogin {}:{}", agent.android_id(), agent.security_token(gateway.key()));
        Self { gateway, registrar, words: vec![("$login", login)] }
    }

    fn check_in(&self, body: &[u8]) {
        let reply = mcs::check_in(&self.gateway, body);
        if reply.status == 200 {
            let checkin = McsCheckinReply::read(&reply.body).expect("a reply");
            let agent = checkin.android_id.and_then(McsAgent::of).expect("an android id");
            assert!(agent.fits(checkin.security_token.expect("a token"), self.gateway.key()));
        }
    }

    /// Sends the request selected by the first byte, with the rest: a line with the project, one with the header, and the body.
    async fn ask(&mut self, request: &[u8]) {
        let Some((kind, rest)) = request.split_first() else { return };
        let kind = kind.wrapping_sub(b'0') % 7;
        if kind == 0 {
            return self.check_in(rest);
        }
        let filled = |text: String, (word, value): &(&str, String)| text.replace(word, value);
        let text = self.words.iter().fold(String::from_utf8_lossy(rest).into_owned(), filled);
        let mut lines = text.splitn(3, '\n');
        let [project, header, body] = [(); 3].map(|()| lines.next().unwrap_or_default());
        let header = (!header.is_empty()).then_some(header);
        let (gateway, registrar, bytes) = (&self.gateway, &self.registrar, body.as_bytes());
        let caller = McsWebCaller { key: Some(KEY), installation: header };
        let reply = match kind {
            1 => mcs::register(gateway, registrar, header, bytes).await,
            2 => mcs::subscribe(gateway, registrar, bytes).await,
            3 => mcs::install(gateway, registrar, project, header, bytes).await,
            4 => mcs::renew_installation(gateway, registrar, project, header).await,
            5 => mcs::register_web(gateway, registrar, project, caller, bytes).await,
            _ => mcs::unregister_web(gateway, registrar, project, caller, body).await,
        };
        if kind == 6 && reply.status == 200 {
            assert!(gateway.holder(body).await.is_err(), "{body} was ended");
        }
        self.judge(kind, &reply).await;
    }

    async fn judge(&mut self, kind: u8, reply: &McsReply) {
        assert!([200, 400, 401, 404, 429].contains(&reply.status), "{reply:?}");
        let text = std::str::from_utf8(&reply.body).expect("a text is UTF-8");
        if kind == 1 {
            return self.note("$token", text.strip_prefix("token=").map(str::to_owned));
        }
        let decoded: Value = serde_json::from_str(text).expect("what says that it is JSON is JSON");
        let refused = (reply.status != 200).then_some(u64::from(reply.status));
        assert_eq!(decoded["error"]["code"].as_u64(), refused, "{text}");
        let word = |value: &Value| value.as_str().map(str::to_owned);
        let (auth, refresh, token) = match kind {
            2 | 5 => (None, None, word(&decoded["token"])),
            3 => (word(&decoded["authToken"]["token"]), word(&decoded["refreshToken"]), None),
            _ => (word(&decoded["token"]), None, None),
        };
        if let Some(token) = &token {
            let holder = self.gateway.holder(token).await;
            assert!(holder.is_ok_and(|device| device.app == self.registrar.0), "{token} is a device's");
        }
        self.note("$auth", auth);
        self.note("$refresh", refresh);
        self.note("$token", token);
    }

    /// Replaces the stored value of this name by the received one.
    fn note(&mut self, name: &'static str, value: Option<String>) {
        let Some(value) = value else { return };
        self.words.retain(|(known, _)| *known != name);
        self.words.push((name, value));
    }
}

fuzz_target!(|input: &[u8]| {
    // Outside the runtime, in which the first look at it waits.
    let store = &*STORE;
    RUNTIME.block_on(async {
        let mut program = Program::new(store);
        for request in input.split(|byte| *byte == SEPARATOR).take(REQUESTS_MAX_COUNT) {
            program.ask(request).await;
        }
        // Its running tasks would hold their memory to the end of the process.
        program.gateway.close().await;
    });
});
