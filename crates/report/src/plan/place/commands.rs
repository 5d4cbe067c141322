//! The moves of a plan as commands of a shell.

use std::fmt::Write;
use std::path::Path;

use freewheel_study::plan::{PlacePlan, PlannedMove};

use super::words::size;

pub(super) fn commands(plan: &PlacePlan) -> String {
    let mut text = String::from(
        "#!/bin/sh\n# The moves of a plan in their order. It copies, and deletes nothing. It stops if a disk is not mounted, or has a file of the same name.\n# Read it before you run it. After a copy, check it, and remove the original with the line below it.\nset -eu\n",
    );
    let limit =
        plan.options.copy_rate.map(|rate| format!(" --bwlimit={}", rate.get().div_ceil(1024)));
    let limit = limit.unwrap_or_default();
    for (number, wanted) in plan.moves.iter().enumerate() {
        let PlannedMove { file, from, to, bytes, .. } = wanted;
        let title = one_line(&format!("{}. {file}: {from} to {to}, {}", number + 1, size(*bytes)));
        writeln!(text, "\n# {title}").expect("a text takes everything");
        let [source, target] = [from, to].map(|name| path(plan, name));
        let lines = match (source, target) {
            (Some(source), Some(target)) => both(&source, &target, file, &limit),
            (None, _) => format!("# disk {from} has no `path` in the snapshot\n"),
            (_, None) => format!("# disk {to} has no `path` in the snapshot\n"),
        };
        text += &lines;
    }
    text
}

/// The copy, and the removal as a comment. `/./` tells rsync which folders to make on the target.
fn both(source: &str, target: &str, file: &str, limit: &str) -> String {
    let file = file.trim_start_matches('/');
    let [from, to, original] =
        [format!("{source}/./{file}"), format!("{target}/"), format!("{source}/{file}")];
    let there = quoted(&format!("{target}/{file}"));
    // Nothing goes into an empty mount point, or into a file of the same name.
    let guard = format!("mountpoint -q -- {} && test ! -e {there}\n", quoted(target));
    let removal = format!("rm -r -- {}", quoted(&original));
    // A name with an end of line would leave the comment.
    let removal = if removal.contains('\n') { "(remove the original)" } else { &removal };
    format!("{guard}rsync -aHAXR{limit} -- {} {}\n# {removal}\n", quoted(&from), quoted(&to))
}

fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

fn path(plan: &PlacePlan, name: &str) -> Option<String> {
    let disk = plan.disks.iter().find(|disk| disk.name == name)?;
    let path: &Path = disk.path.as_deref()?;
    Some(path.display().to_string().trim_end_matches('/').to_owned())
}

/// One word for a shell, whatever is in it.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_one_word_and_no_comment_ends_early() {
        let lines = both("/mnt/a", "/mnt/b", "it's here/x y", " --bwlimit=9");
        assert_eq!(
            lines,
            "mountpoint -q -- '/mnt/b' && test ! -e '/mnt/b/it'\\''s here/x y'\nrsync -aHAXR --bwlimit=9 -- '/mnt/a/./it'\\''s here/x y' '/mnt/b/'\n# rm -r -- '/mnt/a/it'\\''s here/x y'\n"
        );
        let lines = both("/mnt/a", "/mnt/b", "x\nrm -rf /", "");
        assert!(lines.ends_with("\n# (remove the original)\n"), "{lines}");
    }
}
