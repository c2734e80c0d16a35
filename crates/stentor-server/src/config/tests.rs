use std::io::Write;

use super::*;

fn file(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    file.write_all(text.as_bytes()).expect("written");
    file
}

fn load(
    path: Option<&Path>,
    variables: impl IntoIterator<Item = (String, String)>,
) -> Result<Config, ConfigError> {
    load_with(path, variables, &FormatChecks::NONE)
}

fn variables(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

#[test]
fn the_embedded_file_tells_the_defaults_of_every_part() {
    let config = Config::embedded().expect("readable");
    assert_eq!(config.pipeline, PipelineConfig::default());
    assert_eq!(config.api.listen.to_string(), "127.0.0.1:8686");
    assert!(config.api.root_key().is_none() && config.api.tls_files().is_none());
}

#[test]
fn the_file_wins_over_the_default_and_the_environment_over_the_file() {
    let given = file("[api]\nbody_max_bytes = 10\nimports_max_count = 2\n");
    let env =
        variables(&[("STENTOR__API__IMPORTS_MAX_COUNT", "3"), ("STENTOR__DATA_DIR", "/x"), ("PATH", "/bin")]);
    let config = load(Some(given.path()), env).expect("readable");
    assert_eq!((config.api.body_max_bytes, config.api.imports_max_count), (10, 3));
    assert_eq!(config.data_dir, PathBuf::from("/x"));
}

#[test]
fn an_unknown_setting_is_refused_with_the_nearest_one() {
    let given = file("[api]\nlistn = \"0.0.0.0:1\"\n[pipeline]\nconsumer_max = 3\n");
    let error = load(Some(given.path()), []).expect_err("refused").to_string();
    assert!(error.contains("`api.listn`; did you mean `api.listen`?"), "{error}");
    assert!(error.contains("did you mean `pipeline.consumers_max`?"), "{error}");
}

#[test]
fn an_unknown_variable_is_refused_with_the_nearest_setting() {
    let error = load(None, variables(&[("STENTOR__API__LISTN", "x")])).expect_err("refused");
    assert!(error.to_string().contains("STENTOR__API__LISTN"), "{error}");
    assert!(error.to_string().contains("did you mean `api.listen`?"), "{error}");
}

#[test]
fn a_secret_is_read_from_the_file_that_a_variable_names() {
    let key = format!("sk_{}", "k".repeat(43));
    let secret = file(&format!("{key}\n"));
    let path = secret.path().display().to_string();
    let config = load(None, variables(&[("STENTOR__API__ROOT_KEY_FILE", &path)])).expect("readable");
    assert_eq!(config.api.root_key().expect("set").expose_secret(), key);
    assert!(!format!("{config:?}").contains(&key), "Debug must not show it");
}

#[test]
fn a_secret_file_that_is_missing_is_said_so() {
    let error = load(None, variables(&[("STENTOR__API__ROOT_KEY_FILE", "/nowhere/at/all")]));
    assert!(error.expect_err("refused").to_string().contains("/nowhere/at/all"));
}

#[test]
fn a_value_of_the_wrong_type_names_the_setting_and_its_layer() {
    let error = load(None, variables(&[("STENTOR__API__BODY_MAX_BYTES", "plenty")])).expect_err("refused");
    let error = error.to_string();
    assert!(
        error.contains("api.body_max_bytes") && error.contains("STENTOR__API__BODY_MAX_BYTES"),
        "{error}"
    );
}

#[test]
fn settings_that_contradict_each_other_are_refused() {
    let given = file("[api]\ntls_cert_file = \"cert.pem\"\n[pipeline]\nconsumers_max = 0\n");
    let error = load(Some(given.path()), []).expect_err("refused").to_string();
    assert!(error.contains("api.tls_cert_file") && error.contains("pipeline.consumers_max"), "{error}");
}

#[test]
fn a_file_that_is_not_toml_is_refused_with_its_name() {
    let given = file("[api\n");
    let error = load(Some(given.path()), []).expect_err("refused").to_string();
    assert!(error.contains("is not TOML"), "{error}");
}

#[test]
fn explain_tells_each_value_and_where_it_comes_from_but_no_secret() {
    let given = file("[log]\nlevel = \"debug\"\n");
    let key = format!("sk_{}", "k".repeat(43));
    let env = variables(&[("STENTOR__API__ROOT_KEY", &key), ("STENTOR__API__BODY_MAX_BYTES", "99")]);
    let all = explain::explain_with(Some(given.path()), env).expect("readable");
    let of = |key: &str| all.iter().find(|one| one.key == key).expect("listed");
    assert_eq!(of("log.level").value, "\"debug\"");
    assert_eq!(of("log.level").origin, given.path().display().to_string());
    assert_eq!(
        (of("api.body_max_bytes").value.as_str(), of("api.body_max_bytes").origin.as_str()),
        ("99", "STENTOR__API__BODY_MAX_BYTES")
    );
    assert_eq!(
        (of("api.root_key").value.as_str(), of("api.listen").origin.as_str()),
        ("[redacted]", "default")
    );
}

#[test]
fn a_queue_says_where_it_is_and_postgres_goes_with_the_store() {
    let problem = |text: &str| match load(Some(file(text).path()), []) {
        Ok(_) => String::new(),
        Err(error) => error.to_string(),
    };
    let nats = "[queue]\nengine = \"nats\"\n";
    assert_eq!(problem(&format!("{nats}url = \"nats://a.example\"\n")), "");
    assert!(problem(nats).contains("queue.url: must be the addresses"), "{}", problem(nats));
    for (text, part) in [
        ("[queue]\nurl = \"nats://a.example\"\n", "queue.url: requires"),
        ("[queue]\nengine = \"postgres\"\n", "queue.engine: postgres requires"),
        ("[queue]\nstream = \"a.b\"\n", "queue.stream: must be a word"),
        ("[queue]\nreplicas_count = 0\n", "queue.replicas_count"),
    ] {
        let message = problem(text);
        assert!(message.contains(part) && !message.contains("secret"), "{text}: {message}");
    }
}

#[test]
fn one_line_chooses_an_engine_and_says_where_it_is() {
    let address = "postgres://stentor:secret@db.example/stentor";
    let given = file(&format!("store = \"{address}\"\nqueue = \"nats://a.example\"\n[api]\ndocs = false\n"));
    let config = load(Some(given.path()), []).expect("readable");
    assert_eq!((config.store.engine, config.store.url.expose_secret()), (Engine::Postgres, address));
    assert_eq!(
        (config.queue.engine, config.queue.url.expose_secret()),
        (QueueEngine::Nats, "nats://a.example")
    );
    assert!(!config.api.docs);
    let all = explain::explain_with(Some(given.path()), []).expect("readable");
    let url = all.iter().find(|one| one.key == "store.url").expect("listed");
    assert_eq!((url.value.as_str(), url.origin.as_str()), ("[redacted]", &*given.path().to_string_lossy()));
}

#[test]
fn a_variable_or_the_file_that_it_names_chooses_an_engine_too() {
    let address = file("postgresql://db.example/stentor\n");
    let path = address.path().to_str().expect("a path");
    let given = file("store = \"memory\"\nqueue = \"nats://a.example\"\n");
    let env = variables(&[("STENTOR__STORE_FILE", path), ("STENTOR__QUEUE", "postgres")]);
    let config = load(Some(given.path()), env).expect("readable");
    assert_eq!(config.store.engine, Engine::Postgres);
    assert_eq!(config.store.url.expose_secret(), "postgresql://db.example/stentor");
    assert_eq!((config.queue.engine, config.queue.url.expose_secret()), (QueueEngine::Postgres, ""));
}

#[test]
fn an_address_of_an_unknown_engine_is_refused_without_what_is_secret_in_it() {
    for text in ["store = \"mysql://root:secret@a\"\n", "queue = \"kafka://root:secret@a\"\n", "store = 7\n"]
    {
        let error = load(Some(file(text).path()), []).expect_err("refused").to_string();
        let section = text.split(' ').next().expect("a name");
        assert!(error.contains(section) && !error.contains("secret"), "{text}: {error}");
    }
}

#[test]
fn an_address_for_others_is_one_that_a_path_may_be_put_behind() {
    let load = |url: &str| load(None, variables(&[("STENTOR__GATEWAY__PUBLIC_URL", url)]));
    assert_eq!(load("").expect("readable").gateway.public_url(), None);
    for url in ["https://push.example.org", "http://10.0.0.1:8686/", "https://[2001:db8::1]/push"] {
        assert_eq!(load(url).expect("readable").gateway.public_url(), Some(url));
    }
    let long = format!("https://{}", "a".repeat(300));
    for url in [
        "push.example.org",
        "wss://push.example.org",
        "https://",
        "https://a@b",
        "https://a/?b",
        "https://a/#b",
        &long,
    ] {
        let error = load(url).expect_err(url).to_string();
        assert!(error.contains("gateway.public_url"), "{url}: {error}");
    }
}

#[test]
fn a_log_level_that_is_none_is_refused_with_those_that_are() {
    for good in ["info", "WARN", "info,stentor_server=debug", "off", "error, stentor_gateway=trace"] {
        let given = file(&format!("[log]\nlevel = \"{good}\"\n"));
        assert!(load(Some(given.path()), []).is_ok(), "{good}");
    }
    for bad in ["verbose", "", "info,stentor_server", "stentor_server=loud"] {
        let given = file(&format!("[log]\nlevel = \"{bad}\"\n"));
        let error = load(Some(given.path()), []).expect_err(bad).to_string();
        assert!(error.contains("log.level") && error.contains("debug"), "{bad}: {error}");
    }
}

#[test]
fn every_setting_is_explained_in_words_with_its_default() {
    let all = explain::explain_with(None, []).expect("readable");
    let level = all.iter().find(|one| one.key == "log.level").expect("listed");
    assert_eq!(level.default, "\"info\"");
    assert!(level.about.contains("per module"), "{}", level.about);
    let silent: Vec<_> = all.iter().filter(|one| one.about.is_empty()).map(|one| &one.key).collect();
    assert!(silent.is_empty(), "without a word of explanation: {silent:?}");
}

const OIDC: &str = "[console.oidc]\nissuer = \"https://id.example.org\"\nclient_id = \"stentor\"\n\
    redirect_url = \"https://push.example.org/console/callback\"\n";

#[test]
fn the_login_of_persons_is_off_until_an_issuer_is_named() {
    assert_eq!(Config::embedded().expect("readable").console.oidc.number(), None);
    let config = load(Some(file(OIDC).path()), []).expect("readable");
    assert!(config.console.oidc.number().is_some());
    let more = format!("{OIDC}roles = [\"cn=push,dc=x=*:viewer\"]\n");
    let other = load(Some(file(&more).path()), []).expect("readable").console.oidc;
    assert_ne!(other.number(), config.console.oidc.number(), "sessions end when roles mean something else");
    assert_eq!(other.mapped_roles().expect("roles")[0].value, "cn=push,dc=x");
}

#[test]
fn settings_of_the_login_that_show_secrets_on_the_line_or_name_no_role_are_refused() {
    for (setting, wrong) in [
        ("issuer", "\"http://id.example.org\""),
        ("issuer", "\"id.example.org\""),
        ("issuer", "\"https://user:password@id.example.org\""),
        ("client_id", "\"\""),
        ("redirect_url", "\"https://push.example.org/console\""),
        ("redirect_url", "\"http://push.example.org/console/callback\""),
        ("scopes", "[\"profile\"]"),
        ("name_claim", "\"\""),
        ("roles_claim", "\"\""),
        ("roles", "[\"staff\"]"),
        ("roles", "[\"staff=*:root\"]"),
        ("roles", "[\"staff=app_x:viewer\"]"),
        ("clock_leeway_seconds", "601"),
        ("issuer_networks", "[\"everything\"]"),
    ] {
        let kept: Vec<_> = OIDC.lines().filter(|line| !line.starts_with(&format!("{setting} ="))).collect();
        let text = format!("{}\n{setting} = {wrong}\n", kept.join("\n"));
        let error = load(Some(file(&text).path()), []).expect_err(&text).to_string();
        assert!(error.contains(&format!("console.oidc.{setting}")), "{error}");
    }
    let both = format!("{OIDC}client_secret = \"a secret\"\nclient_secret_file = \"/x\"\n");
    let error = load(Some(file(&both).path()), []).expect_err("refused").to_string();
    assert!(error.contains("console.oidc.client_secret") && !error.contains("a secret"), "{error}");
}

#[test]
fn the_secret_of_the_login_is_never_explained() {
    let given = file(&format!("{OIDC}client_secret = \"a secret\"\n"));
    let all = explain_with(Some(given.path()), []).expect("readable");
    let one = all.iter().find(|one| one.key == "console.oidc.client_secret").expect("listed");
    assert_eq!(one.value, "[redacted]");
}
