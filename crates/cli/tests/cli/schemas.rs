//! The published schemas are those of the code. `make schemas` writes them anew.

use super::run::{repository, stdout};

fn assert_published(name: &str, printed: &str) {
    let path = repository().join("schemas").join(name);
    let published = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(published == printed, "{} is not up to date: run `make schemas`", path.display());
}

#[test]
fn schema_of_experiment_is_published() {
    assert_published("sim.schema.json", &stdout(&["sim", "--schema"]));
}

#[test]
fn schema_of_drive_is_published() {
    assert_published("drive.schema.json", &stdout(&["drive", "schema"]));
}

#[test]
fn schema_of_control_interface_is_published() {
    assert_published("control.openapi.json", &stdout(&["tasks", "--openapi"]));
}

#[test]
fn schema_of_snapshot_is_published() {
    assert_published("snapshot.schema.json", &stdout(&["plan", "place", "--schema"]));
}
