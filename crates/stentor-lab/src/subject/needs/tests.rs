use super::*;

#[test]
fn versions_are_found_in_what_programs_say() {
    let found = |said: &str| version_in(said).unwrap_or_default();
    assert_eq!(found("openjdk version \"17.0.15\" 2025-04-15"), "17.0.15");
    assert_eq!(found("openjdk version \"21\" 2023-09-19"), "21");
    assert_eq!(found("\u{1b}[1mApache Maven 3.8.7\u{1b}[m"), "3.8.7");
    assert_eq!(found("PHP 8.2.36 (cli) (built: Nov 18 2026)"), "8.2.36");
    assert_eq!(found("no number..."), "");
    assert!(
        numbers("3.10") > numbers("3.9")
            && numbers("17") < numbers("17.0.1")
            && numbers("1.8.0") < numbers("17")
    );
}

#[test]
fn what_is_missing_is_told_with_what_brings_it() {
    let mut probes = Probes::default();
    let said =
        [("java", Some("openjdk version \"11.0.2\"")), ("php -m", None), ("mvn", Some("Apache Maven 3.8.7"))];
    probes.said = said.map(|(name, said)| (name.to_owned(), said.map(str::to_owned))).into();
    let mut missing_text = |need: &str| probes.missing(need).map(|missing| missing.to_string());
    assert_eq!(
        missing_text("java>=17").as_deref(),
        Some("java>=17, found 11.0.2 (Debian: openjdk-17-jre-headless)")
    );
    assert_eq!(missing_text("java>=11"), None);
    assert_eq!(missing_text("mvn>=3.6 to build"), None);
    assert_eq!(missing_text("php-soap").as_deref(), Some("php-soap (Debian: php8.2-soap)"));
    assert_eq!(missing_text("no-such-program-anywhere").as_deref(), Some("no-such-program-anywhere"));
}

#[test]
fn an_extension_is_there_when_php_lists_it() {
    let said = Some("[PHP Modules]\nsoap\nSimpleXML\n".to_owned());
    let mut probes = Probes { said: [("php -m".to_owned(), said)].into() };
    assert_eq!(probes.missing("php-simplexml"), None);
    assert!(probes.missing("php-xmlrpc").is_some());
}

#[test]
fn a_requirement_names_its_debian_package_if_there_is_one() {
    for (need, package) in [
        ("java>=17", Some("openjdk-17-jre-headless")),
        ("mvn>=3.6 to build", Some("maven")),
        ("php-soap", Some("php8.2-soap")),
        ("zend", None),
        ("no-such-program", None),
    ] {
        assert_eq!(debian_package(need).as_deref(), package, "{need}");
    }
}
