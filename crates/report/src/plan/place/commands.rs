//! The moves of a plan as commands of a shell.

use std::fmt::Write;

use freewheel_study::plan::{PlacePlan, PlannedDisk, PlannedMove};

use super::words::size;

const HEAD: &str = r#"#!/bin/sh
# The moves of a plan in their order, by rsync. Read it before you run it.
# It deletes nothing. After a copy, check it, and remove the original with the line below the move.
# Clients may use a file while it is copied. Then stop what writes to it, run `sh moves.sh again N`, and
# remove the original before anything writes again.
# It stops at a disk that is not mounted, at a name that is there already, and where an original has
# to go first. `sh moves.sh N` begins with move N.
set -eu
again=no
if test "${1:-}" = again; then
    again=yes
    shift
fi
first=${1:-1}
stop() {
    echo "moves.sh: move $1: $2" >&2
    exit 1
}
# gone NUMBER FILE: the move needs the room of a file that has been copied elsewhere.
gone() {
    if test "$1" -lt "$first"; then return 0; fi
    if test -e "$2" || test -L "$2"; then
        stop "$1" "needs the room of $2: check its copy, remove it, and run: sh moves.sh $1"
    fi
}
# move NUMBER DISK FILE DISK
move() {
    if test "$1" -lt "$first"; then return 0; fi
    for disk in "$2" "$4"; do
        mountpoint -q -- "$disk" || stop "$1" "$disk is not mounted"
    done
    # /./ tells rsync which folders to make on the target.
    if test "$again" = yes; then
        rsync -aHAXR --delete@LIMIT@ -- "$2/./$3" "$4/"
        echo "move $1 copied again"
        exit 0
    fi
    if test -e "$4/$3" || test -L "$4/$3"; then
        stop "$1" "$4/$3 is there. If it is this copy and complete, run: sh moves.sh $(($1 + 1))"
    fi
    rsync -aHAXR@LIMIT@ -- "$2/./$3" "$4/"
    echo "move $1 copied; to compare: rsync -nacHAXR -i -- '$2/./$3' '$4/'"
}
"#;

pub(super) fn commands(plan: &PlacePlan) -> String {
    let limit =
        plan.options.copy_rate.map(|rate| format!(" --bwlimit={}", rate.get().div_ceil(1024)));
    let mut text = HEAD.replace("@LIMIT@", &limit.unwrap_or_default());
    let mut rooms = Rooms::new(plan);
    for (at, wanted) in plan.moves.iter().enumerate() {
        let (number, PlannedMove { file, from, to, bytes, .. }) = (at + 1, wanted);
        let title = one_line(&format!("{number}. {file}: {from} to {to}, {}", size(*bytes)));
        writeln!(text, "\n# {title}").expect("a text takes everything");
        let [source, target] = [from, to].map(|name| path(plan, name));
        text += &match (source, target) {
            (Some(source), Some(target)) => {
                let first: String =
                    rooms.needed(at).map(|(disk, file)| gone(number, disk, file)).collect();
                let twin = match wanted.name_is_taken {
                    true => taken(number, &target, file),
                    false => String::new(),
                };
                first + &twin + &one_move(number, &source, &target, file)
            }
            (None, _) => format!("# disk {from} has no `path` in the snapshot\n"),
            (_, None) => format!("# disk {to} has no `path` in the snapshot\n"),
        };
    }
    text
}

/// Room on each disk while originals stay where they are until somebody removes them.
struct Rooms<'p> {
    plan: &'p PlacePlan,
    /// Bytes that may be copied to each disk.
    left: Vec<f64>,
    /// Whether each move's original has to be gone by now.
    is_gone: Vec<bool>,
}

impl<'p> Rooms<'p> {
    fn new(plan: &'p PlacePlan) -> Self {
        let left = |disk: &PlannedDisk| {
            let size = disk.size.get() as f64;
            size - plan.options.free_share * size - disk.used.get() as f64
        };
        let left = plan.disks.iter().map(left).collect();
        Self { plan, left, is_gone: vec![false; plan.moves.len()] }
    }

    /// The originals, with their disks' paths, that have to be gone before a move finds room.
    fn needed(&mut self, at: usize) -> impl Iterator<Item = (String, &'p str)> + use<'p> {
        let plan = self.plan;
        let PlannedMove { to, bytes, .. } = &plan.moves[at];
        let disk = plan.disks.iter().position(|disk| disk.name == *to).expect("a disk of the plan");
        let mut needed = Vec::new();
        for (earlier, moved) in plan.moves[..at].iter().enumerate() {
            if self.left[disk] >= bytes.get() as f64 {
                break;
            }
            if moved.from == *to && !std::mem::replace(&mut self.is_gone[earlier], true) {
                self.left[disk] += moved.bytes.get() as f64;
                needed.push(moved);
            }
        }
        self.left[disk] -= bytes.get() as f64;
        needed.into_iter().filter_map(|moved| Some((path(plan, &moved.from)?, &*moved.file)))
    }
}

fn gone(number: usize, disk: String, file: &str) -> String {
    format!("gone {number} {}\n", quoted(&format!("{disk}/{}", relative(file))))
}

/// Another file has the name on the target.
fn taken(number: usize, target: &str, file: &str) -> String {
    let says = format!("{target} has another {}: rename one of them", relative(file));
    format!("if test {number} -ge \"$first\"; then stop {number} {}; fi\n", quoted(&says))
}

/// The copy, and the removal as a comment.
fn one_move(number: usize, source: &str, target: &str, file: &str) -> String {
    let file = relative(file);
    let removal = format!("rm -r -- {}", quoted(&format!("{source}/{file}")));
    // A name with an end of line would leave the comment.
    let removal = if removal.contains('\n') { "(remove the original)" } else { &removal };
    let [source, file, target] = [source, file, target].map(quoted);
    format!("move {number} {source} {file} {target}\n# {removal}\n")
}

fn relative(file: &str) -> &str {
    file.trim_start_matches('/')
}

fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

/// Where a disk is mounted, without a slash at its end; the root alone keeps its own.
fn path(plan: &PlacePlan, name: &str) -> Option<String> {
    let disk = plan.disks.iter().find(|disk| disk.name == name)?;
    let path = disk.path.as_deref()?.display().to_string();
    let trimmed = path.trim_end_matches('/');
    Some(if trimmed.is_empty() { path.clone() } else { trimmed.to_owned() })
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
        let lines = one_move(3, "/mnt/a", "/mnt/b", "/it's here/x y");
        assert_eq!(
            lines,
            "move 3 '/mnt/a' 'it'\\''s here/x y' '/mnt/b'\n# rm -r -- '/mnt/a/it'\\''s here/x y'\n"
        );
        let lines = one_move(1, "/mnt/a", "/mnt/b", "x\nrm -rf /");
        assert!(lines.ends_with("\n# (remove the original)\n"), "{lines}");
    }
}
