//! An app server's view of its connection, in the bytes of the protocol.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::{Map, Value, json};
use stentor_core::device::ProviderKind;
use stentor_core::id::AppId;
use stentor_core::message::Content;
use stentor_gateway::SENDER_RECEIPT_FIELD;
use stentor_gateway::ccs::{CcsAppSession, CcsLoginError, CcsPort, CcsRefusal, CcsServer, serve};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use tokio_util::sync::CancellationToken;

use crate::room::{Room, to};
use crate::upstream::{broker, keep};

const KEY: &str = "sk_right";
const HEAD: &str = "<stream:stream to='any words at all' xmlns='jabber:client' \
    xmlns:stream='http://etherx.jabber.org/streams' version='1.0'>";

/// A service that accepts all messages except those for `nobody`.
struct Accepting {
    app: AppId,
    sent: Arc<Mutex<Vec<Map<String, Value>>>>,
    /// The result of later checks of the key.
    key: Arc<Mutex<Result<(), CcsLoginError>>>,
}

#[async_trait]
impl CcsPort for Accepting {
    async fn log_in(&self, app: AppId, key: &SecretString) -> Result<Arc<dyn CcsAppSession>, CcsLoginError> {
        if app != self.app || key.expose_secret() != KEY {
            return Err(CcsLoginError::Refused);
        }
        Ok(Arc::new(Self { app, sent: Arc::clone(&self.sent), key: Arc::clone(&self.key) }))
    }
}

#[async_trait]
impl CcsAppSession for Accepting {
    fn app(&self) -> AppId {
        self.app
    }

    async fn still_allowed(&self) -> Result<(), CcsLoginError> {
        *self.key.lock().expect("no panic")
    }

    async fn send(&self, fields: Map<String, Value>) -> Result<(), CcsRefusal> {
        match fields["to"].as_str() {
            Some("nobody") => Err(CcsRefusal::new("DEVICE_UNREGISTERED", "it is gone")),
            Some("a stranger") => Err(CcsRefusal::new("SENDER_ID_MISMATCH", "it is another's")),
            _ => {
                self.sent.lock().expect("no panic").push(fields);
                Ok(())
            }
        }
    }
}

/// An app server with hand-written stanzas.
struct AppServer {
    connection: DuplexStream,
    said: String,
}

impl AppServer {
    async fn say(&mut self, text: &str) {
        self.connection.write_all(text.as_bytes()).await.expect("written");
    }

    async fn payload(&mut self, payload: &Value) {
        let text = payload.to_string().replace('&', "&amp;").replace('<', "&lt;");
        let stanza = format!("<message id='s1'><gcm xmlns='google:mobile:data'>{text}</gcm></message>");
        self.say(&stanza).await;
    }

    /// Reads up to the end of some text, and returns the part before it.
    async fn until(&mut self, end: &str) -> String {
        let mut buffer = [0; 1_024];
        loop {
            if let Some((before, rest)) = self.said.split_once(end) {
                let (before, rest) = (before.to_owned(), rest.to_owned());
                self.said = rest;
                return before;
            }
            let read = tokio::time::timeout(Duration::from_secs(10), self.connection.read(&mut buffer)).await;
            let count = read.unwrap_or_else(|_| panic!("no {end:?} in {:?}", self.said)).expect("read");
            assert!(count > 0, "closed before {end:?}: {:?}", self.said);
            self.said.push_str(std::str::from_utf8(&buffer[..count]).expect("text"));
        }
    }

    /// Reads the next payload.
    async fn hear(&mut self) -> Value {
        self.until("<message><gcm xmlns=\"google:mobile:data\">").await;
        let text = self.until("</gcm></message>").await;
        let text = text.replace("&quot;", "\"").replace("&lt;", "<").replace("&amp;", "&");
        serde_json::from_str(&text).expect("JSON")
    }

    async fn log_in(&mut self, name: &str) {
        self.say(HEAD).await;
        self.until("<mechanism>PLAIN</mechanism>").await;
        let plain = STANDARD.encode(format!("\0{name}\0{KEY}"));
        let auth = format!("<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>{plain}</auth>");
        self.say(&auth).await;
        self.until("<success xmlns='urn:ietf:params:xml:ns:xmpp-sasl'/>").await;
        self.say(HEAD).await;
        self.until("</stream:features>").await;
        self.say("<iq type='set' id='b'><bind xmlns='urn:ietf:params:xml:ns:xmpp-bind'><resource>r</resource></bind></iq>")
            .await;
        self.until("/r</jid></bind></iq>").await;
    }
}

struct Stage {
    room: Room,
    server: CcsServer,
    sent: Arc<Mutex<Vec<Map<String, Value>>>>,
    key: Arc<Mutex<Result<(), CcsLoginError>>>,
    stopping: CancellationToken,
}

impl Stage {
    async fn new() -> Self {
        let room = Room::new().await;
        let sent = Arc::<Mutex<Vec<_>>>::default();
        let key = Arc::new(Mutex::new(Ok(())));
        let port = Arc::new(Accepting { app: room.app, sent: Arc::clone(&sent), key: Arc::clone(&key) });
        let server = CcsServer::new(room.gateway.clone(), broker(&room), port);
        Self { room, server, sent, key, stopping: CancellationToken::new() }
    }

    fn connect(&self) -> AppServer {
        let (ours, theirs) = tokio::io::duplex(1_024);
        let (stopping, admitted) = (self.stopping.clone(), CancellationToken::new());
        tokio::spawn(serve(self.server.clone(), theirs, stopping, admitted));
        AppServer { connection: ours, said: String::new() }
    }

    fn number(&self) -> String {
        self.room.app.raw().to_string()
    }
}

#[tokio::test]
async fn what_an_app_server_sends_is_acknowledged_once_it_is_accepted_and_refused_by_its_code() {
    let stage = Stage::new().await;
    let mut server = stage.connect();
    server.log_in(&format!("{}@gcm.googleapis.com", stage.number())).await;
    server.payload(&json!({"to": "t", "message_id": "m-1", "data": {"k": "<&>"}})).await;
    assert_eq!(server.hear().await, json!({"from": "t", "message_id": "m-1", "message_type": "ack"}));
    assert_eq!(stage.sent.lock().expect("no panic")[0]["data"], json!({"k": "<&>"}));
    for (to, error) in [("nobody", "DEVICE_UNREGISTERED"), ("a stranger", "BAD_REGISTRATION")] {
        server.payload(&json!({"to": to, "message_id": "m-2"})).await;
        let nack = server.hear().await;
        assert_eq!((&nack["message_type"], &nack["error"]), (&json!("nack"), &json!(error)));
    }
    server.payload(&json!({"to": "t"})).await;
    server.until("<message id='s1' type='error'>").await;
    server.until("Missing Required Field: message_id</text></error></message>").await;
}

#[tokio::test]
async fn the_newer_generation_knows_a_word_of_its_own_for_a_strangers_device() {
    let stage = Stage::new().await;
    let mut server = stage.connect();
    server.log_in(&format!("{}@fcm.googleapis.com", stage.number())).await;
    server.payload(&json!({"to": "a stranger", "message_id": "m"})).await;
    assert_eq!(server.hear().await["error"], "SENDER_ID_MISMATCH");
}

#[tokio::test]
async fn what_a_device_sends_comes_again_on_the_next_connection_until_it_is_acknowledged() {
    let stage = Stage::new().await;
    let (phone, credentials) = stage.room.device().await;
    let token = credentials.token.expose();
    keep(&stage.room, phone, "up-1").await;
    for again in [Value::Null, json!(true)] {
        let mut server = stage.connect();
        server.log_in(&stage.number()).await;
        let heard = server.hear().await;
        assert_eq!((&heard["message_id"], &heard["from"]), (&json!("up-1"), &json!(token)));
        assert_eq!(heard["again"], again, "a repeat says that it is one");
    }
    let mut server = stage.connect();
    server.log_in(&stage.room.app.to_string()).await;
    server.hear().await;
    server.payload(&json!({"to": token, "message_id": "up-1", "message_type": "ack"})).await;
    server.payload(&json!({"to": token, "message_id": "up-1", "message_type": "ack"})).await;
    assert_eq!(server.hear().await["error"], "BAD_ACK", "it was acknowledged before");
    keep(&stage.room, phone, "up-2").await;
    assert_eq!(server.hear().await["message_id"], "up-2");
}

#[tokio::test]
async fn a_hundred_are_handed_over_and_the_next_one_waits_for_an_acknowledgement() {
    let stage = Stage::new().await;
    let (phone, other) = (stage.room.device().await, stage.room.device().await);
    for number in 0..101 {
        let device = if number < 51 { phone.0 } else { other.0 };
        keep(&stage.room, device, &format!("up-{number}")).await;
    }
    let mut server = stage.connect();
    server.log_in(&stage.number()).await;
    for number in 0..100 {
        assert_eq!(server.hear().await["message_id"], format!("up-{number}"));
    }
    server.say("<iq type='get' id='p'><ping xmlns='urn:xmpp:ping'/></iq>").await;
    let between = server.until("<iq type='result' id='p'></iq>").await;
    assert!(!between.contains("up-100"), "{between}");
    let token = phone.1.token.expose();
    server.payload(&json!({"to": token, "message_id": "up-7", "message_type": "ack"})).await;
    assert_eq!(server.hear().await["message_id"], "up-100");
}

#[tokio::test]
async fn a_wrong_key_is_refused_and_the_third_time_the_stream_ends() {
    let stage = Stage::new().await;
    let mut server = stage.connect();
    server.say(HEAD).await;
    server.until("</stream:features>").await;
    for _ in 0..3 {
        let plain = STANDARD.encode(format!("\0{}\0sk_wrong", stage.number()));
        server
            .say(&format!("<auth xmlns='urn:ietf:params:xml:ns:xmpp-sasl' mechanism='PLAIN'>{plain}</auth>"))
            .await;
        server.until("<not-authorized/></failure>").await;
    }
    server.until("</stream:error></stream:stream>").await;
}

#[tokio::test]
async fn a_server_that_stops_says_so_and_takes_no_more() {
    let stage = Stage::new().await;
    let mut server = stage.connect();
    server.log_in(&stage.number()).await;
    stage.stopping.cancel();
    let control = server.hear().await;
    assert_eq!(control, json!({"message_type": "control", "control_type": "CONNECTION_DRAINING"}));
    server.payload(&json!({"to": "t", "message_id": "m"})).await;
    assert_eq!(server.hear().await["error"], "CONNECTION_DRAINING");
    server.say("</stream:stream>").await;
    server.until("</stream:stream>").await;
}

#[tokio::test]
async fn a_client_whose_key_is_removed_is_handed_nothing_more() {
    for (answer, condition) in
        [(CcsLoginError::Refused, "not-authorized"), (CcsLoginError::Unavailable, "internal-server-error")]
    {
        let stage = Stage::new().await;
        let (phone, _) = stage.room.device().await;
        let mut server = stage.connect();
        server.log_in(&stage.number()).await;
        *stage.key.lock().expect("no panic") = Err(answer);
        keep(&stage.room, phone, "up-1").await;
        let before = server.until(&format!("<stream:error><{condition} ")).await;
        assert!(!before.contains("up-1"), "{before}");
        *stage.key.lock().expect("no panic") = Ok(());
        let mut server = stage.connect();
        server.log_in(&stage.number()).await;
        assert_eq!(server.hear().await["message_id"], "up-1", "it waits for whoever may have it");
    }
}

#[tokio::test]
async fn a_client_that_pings_is_let_go_once_its_key_is_removed_and_not_before_that_is_certain() {
    let stage = Stage::new().await;
    let mut server = stage.connect();
    server.log_in(&stage.number()).await;
    let ping = "<iq type='get' id='p'><ping xmlns='urn:xmpp:ping'/></iq>";
    *stage.key.lock().expect("no panic") = Err(CcsLoginError::Unavailable);
    server.say(ping).await;
    server.until("<iq type='result' id='p'></iq>").await;
    *stage.key.lock().expect("no panic") = Err(CcsLoginError::Refused);
    server.say(ping).await;
    let before = server.until("<stream:error><not-authorized ").await;
    assert!(!before.contains("result"), "{before}");
}

#[tokio::test]
async fn what_clients_ask_beside_is_answered() {
    let stage = Stage::new().await;
    let mut server = stage.connect();
    server.log_in(&stage.number()).await;
    for query in
        ["jabber:iq:roster", "http://jabber.org/protocol/disco#info", "urn:ietf:params:xml:ns:xmpp-session"]
    {
        server.say(&format!("<iq type='get' id='q'><query xmlns='{query}'/></iq>")).await;
        server.until("<iq type='result' id='q'>").await;
    }
    server.say("<iq type='get' id='p' to='gcm.googleapis.com'><ping xmlns='urn:xmpp:ping'/></iq>").await;
    server.until("<iq type='result' id='p' from='gcm.googleapis.com'></iq>").await;
    server.say("<presence/><iq type='get' id='u'><query xmlns='unknown'/></iq>").await;
    server.until("<iq type='error' id='u'>").await;
}

/// Sends a device a message with a request for a receipt, and lets the device confirm it.
async fn confirmed(stage: &Stage, phone: stentor_gateway::DeviceIdentity, name: &str) {
    let session = stage.room.open(phone, 10);
    assert!(crate::room::now(&session).await.is_empty());
    let own = Map::from_iter([(SENDER_RECEIPT_FIELD.to_owned(), name.into())]);
    let content = Content { overrides: [(ProviderKind::Gateway, own)].into(), ..Content::default() };
    let sent = stage.room.send_content(to(&[phone.device]), &content).await;
    assert_eq!(crate::room::given(&session).await, [sent]);
    session.confirm(&[sent]);
    session.confirm(&[sent]);
    stage.room.gateway.flush().await;
    assert_eq!(stage.room.delivered(sent).await, 1);
}

#[tokio::test]
async fn a_receipt_comes_again_on_the_next_connection_until_it_is_acknowledged() {
    let stage = Stage::new().await;
    let (phone, credentials) = stage.room.device().await;
    confirmed(&stage, phone, "m-1").await;
    let mut expected = json!({
        "category": stage.room.app, "from": "gcm.googleapis.com", "message_id": "dr2:m-1", "message_type": "receipt",
        "data": {
            "message_status": "MESSAGE_SENT_TO_DEVICE", "original_message_id": "m-1",
            "device_registration_id": credentials.token.expose(),
        },
    });
    for _ in 0..2 {
        let mut server = stage.connect();
        server.log_in(&stage.number()).await;
        assert_eq!(server.hear().await, expected);
        expected["again"] = json!(true);
    }
    let mut server = stage.connect();
    server.log_in(&stage.number()).await;
    server.hear().await;
    server
        .payload(&json!({"to": "gcm.googleapis.com", "message_id": "dr2:m-1", "message_type": "ack"}))
        .await;
    confirmed(&stage, phone, "m-2").await;
    assert_eq!(server.hear().await["message_id"], "dr2:m-2", "as soon as the device has confirmed it");
    drop(server);
    let mut server = stage.connect();
    server.log_in(&format!("{}@fcm.googleapis.com", stage.number())).await;
    let heard = server.hear().await;
    assert_eq!((&heard["message_id"], &heard["from"]), (&json!("dr2:m-2"), &json!("fcm.googleapis.com")));
}

#[tokio::test]
async fn a_receipt_is_no_message_of_the_device_for_streams_and_webhooks() {
    let stage = Stage::new().await;
    let (phone, _) = stage.room.device().await;
    confirmed(&stage, phone, "m-1").await;
    keep(&stage.room, phone, "dr2:m-1").await;
    let mut stream = broker(&stage.room).consume(stage.room.app, 9);
    let said = stream.next().await.expect("read");
    assert_eq!(said.iter().map(|said| said.key.as_str()).collect::<Vec<_>>(), ["dr2:m-1"]);
}
