use super::*;

/// 2030-01-01, within the validity of the generated certificates.
const NOW: Timestamp = Timestamp::from_millis(1_893_456_000_000);

/// A folder with the two files.
struct Files(tempfile::TempDir);

/// A pair of the years given, as PEM.
fn pair(from: i32, until: i32) -> (String, String) {
    let mut params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
    params.not_before = rcgen::date_time_ymd(from, 1, 1);
    params.not_after = rcgen::date_time_ymd(until, 1, 1);
    let key = rcgen::KeyPair::generate().expect("a key");
    let cert = params.self_signed(&key).expect("a certificate");
    (cert.pem(), key.serialize_pem())
}

impl Files {
    fn with(pair: &(String, String)) -> Self {
        let files = Self(tempfile::tempdir().expect("a folder"));
        files.write(pair);
        files
    }

    fn write(&self, (cert, key): &(String, String)) {
        self.write_cert(cert);
        self.write_key(key);
    }

    fn write_cert(&self, text: &str) {
        std::fs::write(self.0.path().join("cert.pem"), text).expect("written");
    }

    fn write_key(&self, text: &str) {
        std::fs::write(self.0.path().join("key.pem"), text).expect("written");
    }

    fn read(&self) -> Result<Certificate, String> {
        Certificate::read(&self.0.path().join("cert.pem"), &self.0.path().join("key.pem"))
    }
}

fn years_left(certificate: &Certificate) -> u64 {
    (certificate.seconds_left(NOW) / (365.25 * 86_400.0)).round() as u64
}

fn is_refused(look: &CertificateReload) -> bool {
    matches!(look, CertificateReload::Refused(_))
}

#[test]
fn a_renewal_is_taken_over_when_both_files_are_there() {
    let files = Files::with(&pair(2020, 2031));
    let certificate = files.read().expect("a pair");
    assert_eq!((certificate.look(NOW), years_left(&certificate)), (CertificateReload::Same, 1));
    let new = pair(2029, 2040);
    files.write_cert(&new.0);
    assert!(is_refused(&certificate.look(NOW)), "the key is still the former's");
    assert_eq!(years_left(&certificate), 1);
    files.write_key(&new.1);
    assert_eq!((certificate.look(NOW), years_left(&certificate)), (CertificateReload::Replaced, 10));
    assert_eq!((certificate.look(NOW), certificate.replaced()), (CertificateReload::Same, 1));
}

#[test]
fn a_folder_that_is_swapped_by_its_link_is_noticed() {
    let folder = tempfile::tempdir().expect("a folder");
    let generations = [pair(2020, 2031), pair(2020, 2032)];
    for (name, (cert, key)) in ["one", "two"].iter().zip(&generations) {
        let inside = folder.path().join(name);
        std::fs::create_dir(&inside).expect("made");
        std::fs::write(inside.join("cert.pem"), cert).expect("written");
        std::fs::write(inside.join("key.pem"), key).expect("written");
    }
    let link = |to: &str| {
        std::os::unix::fs::symlink(to, folder.path().join("draft")).expect("linked");
        std::fs::rename(folder.path().join("draft"), folder.path().join("live")).expect("renamed");
    };
    link("one");
    let live = folder.path().join("live");
    let certificate = Certificate::read(&live.join("cert.pem"), &live.join("key.pem")).expect("a pair");
    link("two");
    assert_eq!((certificate.look(NOW), years_left(&certificate)), (CertificateReload::Replaced, 2));
}

#[test]
fn what_cannot_be_used_is_refused_once_and_the_former_stays() {
    let good = pair(2020, 2031);
    let files = Files::with(&good);
    let certificate = files.read().expect("a pair");
    let other = pair(2020, 2031);
    let bad: [(&str, &str); 5] = [
        ("", &good.1),
        ("nonsense", &good.1),
        (&good.0, ""),
        (&good.0, &other.1),
        (&other.0[..200], &other.1),
    ];
    for (number, (cert, key)) in bad.into_iter().enumerate() {
        files.write_cert(cert);
        files.write_key(key);
        assert!(is_refused(&certificate.look(NOW)), "number {number}");
        assert!(is_refused(&certificate.look(NOW)), "number {number} again");
        assert_eq!((years_left(&certificate), certificate.refusals()), (1, number as u64 + 1));
    }
    std::fs::remove_file(files.0.path().join("cert.pem")).expect("removed");
    let CertificateReload::Refused(why) = certificate.look(NOW) else { panic!("a file is missing") };
    assert!(why.contains("cert.pem"), "{why}");
    files.write(&good);
    assert_eq!((certificate.look(NOW), certificate.replaced()), (CertificateReload::Same, 0));
}

#[test]
fn a_pair_that_is_not_valid_now_waits_until_it_is() {
    let files = Files::with(&pair(2020, 2031));
    let certificate = files.read().expect("a pair");
    files.write(&pair(2021, 2029));
    assert!(is_refused(&certificate.look(NOW)), "it has ended");
    files.write(&pair(2031, 2040));
    assert!(is_refused(&certificate.look(NOW)), "it begins later");
    let later = NOW.plus(Duration::from_secs(366 * 86_400));
    assert_eq!(certificate.look(later), CertificateReload::Replaced, "the same files, a year later");
}

#[test]
fn a_pair_that_cannot_be_used_is_told_with_its_file_at_the_start() {
    let (good, other) = (pair(2020, 2031), pair(2020, 2031));
    let files = Files::with(&(good.0.clone(), other.1));
    assert!(files.read().expect_err("refused").contains("cert.pem"));
    files.write_key("nonsense");
    assert!(files.read().expect_err("refused").contains("key.pem"));
}

#[test]
fn a_finder_is_told_a_name_where_the_certificate_has_none_of_the_addresses() {
    let name_beside = |names: &[&str], address: &str| {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let made = rcgen::generate_simple_self_signed(names).expect("a certificate");
        super::name_beside(made.cert.der(), address.parse().expect("an address"))
    };
    let named = Some("push.example.org".to_owned());
    assert_eq!(name_beside(&["push.example.org", "b.example"], "10.0.0.7"), named, "the first one");
    assert_eq!(name_beside(&["*.example.org", "push.example.org"], "10.0.0.7"), named, "of one host");
    assert_eq!(name_beside(&["push.example.org", "10.0.0.8"], "10.0.0.7"), named);
    assert_eq!(name_beside(&["push.example.org", "10.0.0.7"], "10.0.0.7"), None);
    assert_eq!(name_beside(&["push.example.org", "::1"], "::1"), None);
    assert_eq!(name_beside(&["*.example.org"], "10.0.0.7"), None);
}

#[test]
fn a_certificate_stands_for_its_names_and_a_star_for_one_label() {
    let mut params =
        rcgen::CertificateParams::new(vec!["push.example".to_owned(), "*.devices.example".to_owned()])
            .expect("names");
    params.subject_alt_names.push(rcgen::SanType::IpAddress([192, 0, 2, 7].into()));
    let key = rcgen::KeyPair::generate().expect("a key");
    let cert = params.self_signed(&key).expect("a certificate");
    let certificate = Files::with(&(cert.pem(), key.serialize_pem())).read().expect("a pair");
    for (host, is_its) in [
        ("push.example", true),
        ("PUSH.example", true),
        ("a.devices.example", true),
        ("192.0.2.7", true),
        ("devices.example", false),
        ("a.b.devices.example", false),
        ("push.example.net", false),
        ("192.0.2.8", false),
        ("", false),
    ] {
        assert_eq!(certificate.is_for(host), is_its, "{host}");
    }
}
