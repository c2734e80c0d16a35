use super::{tree, with_server_ca};

#[test]
fn the_command_line_is_sound() {
    tree().debug_assert();
}

#[test]
fn every_command_shows_an_example() {
    let mut missing = Vec::new();
    walk(&tree(), "", &mut |path, command| {
        let shown = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        if !command.has_subcommands() && !shown.contains("stentor") {
            missing.push(path.to_owned());
        }
    });
    assert!(missing.is_empty(), "no example in: {missing:?}");
}

fn walk(command: &clap::Command, path: &str, visit: &mut impl FnMut(&str, &clap::Command)) {
    let path = format!("{path} {}", command.get_name());
    visit(&path, command);
    for inner in command.get_subcommands() {
        walk(inner, &path, visit);
    }
}

#[test]
fn every_example_can_be_pasted_into_an_interactive_shell() {
    let mut checked = 0;
    walk(&tree(), "", &mut |path, command| {
        let shown = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        for example in shown.lines().filter(|line| line.starts_with("  ") && line.contains("stentor ")) {
            // Between double quotes an exclamation mark would trigger history expansion.
            let outside_single = example.split('\'').step_by(2).collect::<String>();
            let is_history = outside_single.contains('!')
                || example.split('"').skip(1).step_by(2).any(|text| text.contains('!'));
            assert!(!is_history, "{path}: {example}");
            let read = std::process::Command::new("bash").args(["-n", "-c", example]).output();
            // Without a bash the check is skipped.
            assert!(read.as_ref().map_or(true, |read| read.status.success()), "{path}: {example}: {read:?}");
            checked += 1;
        }
    });
    assert!(checked > 60, "{checked}");
}

#[test]
fn the_authority_of_the_server_is_given_by_ca_unless_the_command_has_its_own() {
    let read = |line: &str| {
        let words = line.split(' ').map(Into::into).collect();
        with_server_ca(words)
            .into_iter()
            .map(|word| word.into_string().expect("text"))
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(read("stentor app list --ca a.pem"), "stentor app list --server-ca a.pem");
    assert_eq!(read("stentor device --ca=a.pem list"), "stentor device --server-ca=a.pem list");
    for same in [
        "stentor app credential set --provider fcm --ca a.pem",
        "stentor discover --ca a.pem",
        "stentor emulate fcm --ca-dir a",
        "stentor app list --server-ca a.pem",
    ] {
        assert_eq!(read(same), same);
    }
    let both = "stentor app credential set --provider fcm --ca a.pem --server-ca b.pem --key-file f";
    tree().try_get_matches_from(both.split(' ')).expect("each has its own value");
}
