use super::tree;

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
            // Between double quotes it would be taken for a word of the history.
            let outside_single = example.split('\'').step_by(2).collect::<String>();
            let is_history = outside_single.contains('!')
                || example.split('"').skip(1).step_by(2).any(|text| text.contains('!'));
            assert!(!is_history, "{path}: {example}");
            let read = std::process::Command::new("bash").args(["-n", "-c", example]).output();
            // Without a bash there is nothing to ask.
            assert!(read.as_ref().map_or(true, |read| read.status.success()), "{path}: {example}: {read:?}");
            checked += 1;
        }
    });
    assert!(checked > 60, "{checked}");
}
