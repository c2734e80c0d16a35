//! Trials of the server's own faces by exchanges with the real server, for the feature tables of cai-2009.

mod names;
mod tools;
mod transport;

use super::list_page::{ListKind, ListPage, PageReader};
use super::own_data::OwnData;
use super::replay::{FaceCall, FieldValue};
use super::served::{ROOT_KEY, anywhere, root, serve_socket};
use anyhow::Context;
use reqwest::Client;
use serde_json::Value;
use std::net::SocketAddr;
use stentor_lab::probes::{
    FeatureProbe, PaperProtocol, ProbeAnswer, ProbeKind, ProbeResult, ProbeWord, list,
};
use stentor_lab::subject::reference::{Op, own_data};
use stentor_stage::text::cell;
use stentor_wire::xml::dom;
use stentor_wire::{Content, DocumentLimits, wsdl};

/// Topics of the server, each a struct of a text and a number.
const TOPICS: u64 = 20;
/// Levels of a document that is too deep.
const LEVELS: usize = 10_000;
/// The largest body that may hold many names, as the configuration has it (`api.large_body_max_bytes`).
const BODY_MAX_BYTES: usize = 1_048_576;
/// Letters of the payload for the count of overhead.
const PAYLOAD: usize = 64;
/// An element of WS-Security in a header that must be understood.
const SECURITY: &str = r#"<soap:Header><w:Security xmlns:w="http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-secext-1.0.xsd" soap:mustUnderstand="1"/></soap:Header><soap:Body>"#;
/// Reason for which a trial is not made.
const OF_THE_FORMAT: &str =
    "decided by the bytes of the format or by a server with other settings; not tried on this server";

/// Starts a server in this process, makes every trial on its SOAP, XML-RPC and REST faces, and returns the results.
pub(crate) async fn probe() -> anyhow::Result<Vec<ProbeResult>> {
    let directory = tempfile::Builder::new().prefix("stentor-lab-").tempdir()?;
    let server = serve_socket(directory.path(), anywhere()).await?;
    let (address, socket) = (server.api, server.socket.context("the server has no raw socket")?);
    let levels = [("type", "Object".to_owned()), ("items", TOPICS.to_string())];
    let own = OwnData::of(Op::Array, &levels.map(|(name, level)| (name.to_owned(), level)).into(), 1)?;
    own.put(root(address)?).await?;
    let app = cell(&root(address)?.get("/v1/apps").await?["apps"][0]["id"]);
    let mut results = Vec::new();
    for probe in list().into_iter().filter(|probe| probe.kind == ProbeKind::Measured) {
        for protocol in PaperProtocol::ALL {
            let (app, own) = (app.clone(), own.clone());
            let (base, http) = (format!("http://{address}"), Client::new());
            let face = FaceUnderTrial { protocol, base, socket, app, own, http };
            results.push(face.ask(&probe).await);
        }
    }
    Ok(results)
}

struct FaceUnderTrial {
    protocol: PaperProtocol,
    base: String,
    socket: SocketAddr,
    app: String,
    own: OwnData,
    http: Client,
}

/// A reply of any status.
struct TrialReply {
    status: u16,
    body: Vec<u8>,
}

type TrialVerdict = anyhow::Result<(ProbeAnswer, &'static str, String)>;

fn word(word: ProbeWord, evidence: impl Into<String>) -> TrialVerdict {
    Ok((ProbeAnswer::Word(word), "", evidence.into()))
}

fn is(so: bool, evidence: impl Into<String>) -> TrialVerdict {
    word(if so { ProbeWord::Yes } else { ProbeWord::No }, evidence)
}

impl TrialReply {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    fn is_refusal(&self) -> bool {
        let text = self.text();
        self.status >= 400 || text.contains(":Fault>") || text.contains("<fault>")
    }

    fn summary(&self) -> String {
        let text: String = self.text().chars().filter(|letter| !letter.is_control()).collect();
        let start = text.find("<faultstring>").or_else(|| text.find("<name>faultString</name>")).unwrap_or(0);
        format!("{} {}", self.status, text.chars().skip(start).take(110).collect::<String>())
    }
}

impl FaceUnderTrial {
    async fn ask(&self, probe: &FeatureProbe) -> ProbeResult {
        let verdict = match probe.id.as_str() {
            "structs" => self.structs().await,
            "named" => self.named().await,
            "customized" => self.customized().await,
            "strict" => self.strict().await,
            "multicall" => self.multicall().await,
            "transport" => self.transport().await,
            "contract" => self.contract().await,
            "tools" => self.tools().await,
            "overhead" => self.overhead(),
            "laughs" => self.entity("<!DOCTYPE x [<!ENTITY a \"ha\"><!ENTITY e \"&a;&a;&a;&a;\">]>").await,
            "external" => self.entity("<!DOCTYPE x [<!ENTITY e SYSTEM \"file:///etc/passwd\">]>").await,
            "depth" => self.depth().await,
            "size" => self.size().await,
            "message-served" => self.message_served().await,
            _ => word(ProbeWord::NotProbed, OF_THE_FORMAT),
        };
        let broken = |error: anyhow::Error| (ProbeAnswer::Word(ProbeWord::NotRun), "", format!("{error:#}"));
        let (answer, unit, evidence) = verdict.unwrap_or_else(broken);
        ProbeResult {
            id: probe.id.clone(),
            feature: probe.feature.clone(),
            subject: self.protocol.label().to_owned(),
            does: probe.does.clone(),
            kind: probe.kind,
            answer,
            unit: unit.to_owned(),
            evidence,
        }
    }

    const fn reader(&self) -> PageReader {
        match self.protocol {
            PaperProtocol::Soap => PageReader::Dom,
            PaperProtocol::XmlRpc => PageReader::XmlRpc,
            PaperProtocol::Rest => PageReader::Json,
        }
    }

    /// The document of a call; REST has none for a read.
    fn document(&self, call: &FaceCall) -> String {
        match self.protocol {
            PaperProtocol::Soap => call.envelope(),
            PaperProtocol::XmlRpc => call.method_call(),
            PaperProtocol::Rest => String::new(),
        }
    }

    async fn get(&self, path: &str) -> anyhow::Result<TrialReply> {
        self.send(self.http.get(format!("{}{path}", self.base))).await
    }

    async fn post(&self, body: String) -> anyhow::Result<TrialReply> {
        let (path, kind) = match self.protocol {
            PaperProtocol::Soap => ("/soap", "text/xml"),
            PaperProtocol::XmlRpc => ("/rpc", "text/xml"),
            PaperProtocol::Rest => ("/v1/devices", "application/json"),
        };
        self.send(self.http.post(format!("{}{path}", self.base)).header("Content-Type", kind).body(body))
            .await
    }

    async fn send(&self, request: reqwest::RequestBuilder) -> anyhow::Result<TrialReply> {
        let reply = request.bearer_auth(ROOT_KEY).header("X-Stentor-App", &self.app).send().await?;
        Ok(TrialReply { status: reply.status().as_u16(), body: reply.bytes().await?.to_vec() })
    }

    async fn call(&self, call: &FaceCall) -> anyhow::Result<TrialReply> {
        match self.protocol {
            PaperProtocol::Rest => self.get(&call.path).await,
            _ => self.post(self.document(call)).await,
        }
    }

    /// Returns true if a valid request is answered with all topics.
    async fn is_alive(&self) -> anyhow::Result<bool> {
        let reply = self.call(&self.own.call(TOPICS, None)).await?;
        let Some(Content::Objects(wanted)) = own_data("Object", TOPICS, 1) else { return Ok(false) };
        Ok(ListPage::read(self.reader(), ListKind::Topics, &reply.body)?.topics == wanted)
    }

    async fn structs(&self) -> TrialVerdict {
        let is_so = self.is_alive().await?;
        is(is_so, format!("topics.list: {TOPICS} structs of a text and a number, every entry compared"))
    }

    /// Sends a text in place of the limit of a page.
    async fn strict(&self) -> TrialVerdict {
        let mut call = self.own.call(TOPICS, None);
        call.path = "/v1/topics?limit=many".to_owned();
        call.fields = vec![(2, "limit", FieldValue::Text("many".to_owned()))];
        let (reply, is_typed) = (self.call(&call).await?, self.has_types().await?);
        let typed =
            if is_typed { "its description gives the field a type" } else { "no description types it" };
        is(reply.is_refusal() && is_typed, format!("a text as limit gets {}; {typed}", reply.summary()))
    }

    async fn has_types(&self) -> anyhow::Result<bool> {
        Ok(match self.protocol {
            PaperProtocol::Soap => {
                self.get("/soap?wsdl").await?.text().contains("name=\"limit\" type=\"xsd:")
            }
            // The document itself contains types.
            PaperProtocol::XmlRpc => true,
            PaperProtocol::Rest => self.get("/openapi.json").await?.text().contains("\"integer\""),
        })
    }

    async fn multicall(&self) -> TrialVerdict {
        let call = self.own.call(TOPICS, None);
        match self.protocol {
            PaperProtocol::Soap => {
                let once = self.document(&call);
                let (head, rest) = once.split_once("<soap:Body>").context("no body")?;
                let (element, _) = rest.split_once("</soap:Body>").context("no body")?;
                let twice = format!("{head}<soap:Body>{element}{element}</soap:Body></soap:Envelope>");
                let reply = self.post(twice).await?;
                let count = reply.text().matches("<ListTopicsResponse").count();
                is(count == 2, format!("two operations in one body get {count} replies"))
            }
            PaperProtocol::XmlRpc => {
                let one = "<value><struct><member><name>methodName</name><value>topics.list</value></member><member>\
                    <name>params</name><value><array><data><value><struct></struct></value></data></array></value></member>\
                    </struct></value>";
                let two = format!(
                    "<methodCall><methodName>system.multicall</methodName><params><param><value><array><data>{one}{one}</data>\
                     </array></value></param></params></methodCall>"
                );
                let reply = self.post(two).await?;
                let count = reply.text().matches("<name>topics</name>").count();
                is(count == 2, format!("system.multicall with 2 calls gives {count} results"))
            }
            PaperProtocol::Rest => {
                let one = r#"{"platform":"android","token":"twice"}"#;
                let reply = self.post(format!("{one}{one}")).await?;
                is(!reply.is_refusal(), format!("two documents in one body get {}", reply.summary()))
            }
        }
    }

    async fn contract(&self) -> TrialVerdict {
        let (count, what) = match self.protocol {
            PaperProtocol::Soap => {
                let reply = self.get("/soap?wsdl").await?;
                let service = wsdl::read(&reply.body, &DocumentLimits::default());
                let by_text = reply.text().matches("<soap11:operation").count();
                (service.map_or(by_text, |service| service.operations.len()), "WSDL at /soap?wsdl describes")
            }
            PaperProtocol::XmlRpc => {
                let list = "<methodCall><methodName>system.listMethods</methodName><params/></methodCall>";
                (
                    self.post(list.to_owned()).await?.text().matches("<string>").count(),
                    "system.listMethods names",
                )
            }
            PaperProtocol::Rest => {
                let document: Value = serde_json::from_slice(&self.get("/openapi.json").await?.body)?;
                (
                    document["paths"].as_object().map_or(0, serde_json::Map::len),
                    "OpenAPI at /openapi.json has paths:",
                )
            }
        };
        is(count > 10, format!("{what} {count}"))
    }

    /// Counts the bytes of a request without its name of 64 letters.
    fn overhead(&self) -> TrialVerdict {
        let name = "x".repeat(PAYLOAD);
        let call = FaceCall {
            operation: "topics.show",
            element: "ShowTopic",
            method: "/stentor.v1.Topics/ShowTopic",
            verb: "GET",
            path: format!("/v1/topics/{name}"),
            path_fields: 1,
            fields: vec![(1, "topic", FieldValue::Text(name))],
        };
        let (bytes, what) = match self.protocol {
            PaperProtocol::Rest => (call.path.len(), "its path"),
            _ => (self.document(&call).len(), "its body"),
        };
        let evidence = format!("topics.show with a name of {PAYLOAD} letters: {what} has {bytes} bytes");
        Ok((ProbeAnswer::Number((bytes - PAYLOAD) as f64), "bytes", evidence))
    }

    async fn entity(&self, definition: &str) -> TrialVerdict {
        if self.protocol == PaperProtocol::Rest {
            return word(ProbeWord::NotProbed, "the format has no entities");
        }
        let honest = self.document(&self.own.call(TOPICS, Some("placeholder")));
        let body = honest.trim_start_matches("<?xml version=\"1.0\"?>").replace("placeholder", "&e;");
        self.harm(format!("{definition}{body}")).await
    }

    async fn depth(&self) -> TrialVerdict {
        let nested = |open: &str, close: &str| open.repeat(LEVELS) + &close.repeat(LEVELS);
        let honest = self.document(&self.own.call(TOPICS, Some("placeholder")));
        let arrays = || nested("<array><data><value>", "</value></data></array>");
        self.harm(match self.protocol {
            PaperProtocol::Soap => honest.replace("placeholder", &nested("<a>", "</a>")),
            PaperProtocol::XmlRpc => honest.replace("<string>placeholder</string>", &arrays()),
            PaperProtocol::Rest => nested("[", "]"),
        })
        .await
    }

    /// Sends the largest accepted body, and one with a byte more.
    async fn size(&self) -> TrialVerdict {
        let honest = match self.protocol {
            PaperProtocol::Rest => r#"{"platform":"android","provider":"null","token":"large"}"#.to_owned(),
            _ => self.document(&self.own.call(TOPICS, None)),
        };
        let padded = |bytes: usize| honest.clone() + &" ".repeat(bytes - honest.len());
        let taken = self.post(padded(BODY_MAX_BYTES)).await?;
        if taken.is_refusal() {
            return is(false, format!("{BODY_MAX_BYTES} bytes get {}", taken.summary()));
        }
        self.harm(padded(BODY_MAX_BYTES + 1)).await
    }

    /// Sends a document that must be refused; a valid request must be answered afterwards.
    async fn harm(&self, body: String) -> TrialVerdict {
        let reply = self.post(body).await?;
        let is_alive = self.is_alive().await?;
        let after = if is_alive { "is answered" } else { "is not answered" };
        is(
            reply.is_refusal() && is_alive,
            format!("it gets {}; an honest request afterwards {after}", reply.summary()),
        )
    }

    async fn message_served(&self) -> TrialVerdict {
        if self.protocol != PaperProtocol::Soap {
            return word(
                ProbeWord::Untestable,
                "the format has no header in which a message could be secured",
            );
        }
        let reply =
            self.post(self.document(&self.own.call(TOPICS, None)).replace("<soap:Body>", SECURITY)).await?;
        dom::parse(&reply.body, &DocumentLimits::default())?;
        is(
            !reply.is_refusal(),
            format!("a header of WS-Security that must be understood gets {}", reply.summary()),
        )
    }
}
