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
