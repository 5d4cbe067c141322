use super::run::stdout;

const VERBS: &[&[&str]] = &[
    &[],
    &["study"],
    &["cache"],
    &["sim"],
    &["reproduce"],
    &["emulate"],
    &["serve"],
    &["scan"],
    &["scrub"],
    &["backup"],
    &["refresh"],
    &["restore"],
    &["tasks"],
    &["abort"],
    &["promote"],
    &["extract"],
    &["drive"],
    &["drive", "list"],
    &["drive", "show"],
    &["drive", "import"],
    &["drive", "scale"],
    &["drive", "validate"],
    &["drive", "schema"],
    &["trace"],
    &["trace", "formats"],
    &["trace", "info"],
    &["trace", "convert"],
    &["trace", "characterize"],
];

#[test]
fn help_of_every_verb_has_example() {
    for verb in VERBS {
        let help = stdout(&[verb, &["--help"][..]].concat());
        let first = help.lines().next().unwrap();
        assert!(first.len() > 10 && !first.starts_with("Usage"), "{verb:?}: {first}");
        let words = format!("\n  freewheel {}", verb.join(" "));
        assert!(help.contains("Example") && help.contains(words.trim_end()), "{verb:?}: {help}");
    }
}

#[test]
fn help_of_sim_lists_policies() {
    let help = stdout(&["sim", "--help"]);
    use freewheel::experiments::{LINUX_SCHEDULERS, POLICIES};
    for row in POLICIES.iter().chain(LINUX_SCHEDULERS) {
        assert!(help.contains(row.name) && help.contains(row.summary), "{}", row.name);
    }
}

#[test]
fn help_of_cache_lists_policies() {
    let help = stdout(&["cache", "--help"]);
    let list = help.lines().find(|line| line.starts_with("Policies: ")).unwrap();
    let names: Vec<&str> = freewheel::caches::CACHE_POLICIES.iter().map(|row| row.name).collect();
    assert_eq!(list, format!("Policies: {}.", names.join(", ")));
}
