//! The moves of a plan as commands of a shell.

use std::collections::BTreeSet;
use std::fmt::Write;

use freewheel_study::plan::{PlacePlan, PlaceSource, PlacedFile, PlannedDisk, PlannedMove};

use super::words::size;

const HEAD: &str = include_str!("moves.sh");
const OF_FILES: &str = include_str!("moves_of_files.sh");
const OF_NEW_FILES: &str = include_str!("moves_of_new_files.sh");

/// The script; none where it would have no command.
pub(super) fn commands(plan: &PlacePlan) -> Option<String> {
    let (new, moves) = (new_files(plan), moves(plan));
    if new.is_none() && moves.is_none() {
        return None;
    }
    let limit =
        plan.options.copy_rate.map(|rate| format!(" --bwlimit={}", rate.get().div_ceil(1024)));
    let (named, options) = match new {
        Some(_) => named(plan),
        None => Default::default(),
    };
    let is_disk = match has_paths(plan) {
        true => r#"mountpoint -q -- "$2" || stop "$1" "$2 is not mounted""#,
        false => r#"test -d "$2" || stop "$1" "$2 is no folder""#,
    };
    let head = HEAD.replace("@NAMED@", &named).replace("@OPTIONS@", &options);
    let head = head.replace("@LIMIT@", &limit.unwrap_or_default()).replace("@IS_DISK@", is_disk);
    let parts = [(OF_NEW_FILES, new), (OF_FILES, moves)];
    let parts =
        parts.into_iter().filter_map(|(functions, lines)| Some(functions.to_owned() + &lines?));
    Some(head + &parts.collect::<String>())
}

fn has_paths(plan: &PlacePlan) -> bool {
    plan.disks.iter().any(|disk| disk.path.is_some())
}

/// What a person fills in, and the options for the same: where new files are, and where disks are if the plan
/// does not know.
fn named(plan: &PlacePlan) -> (String, String) {
    let mut named =
        "\n# Where new files are now: fill it in, or give --from FOLDER.\nfrom=\n".to_owned();
    let mut options = "        --from) from=$2; shift ;;\n".to_owned();
    if !has_paths(plan) {
        named +=
            "# Where the disks are: fill that in, or give --to FOLDER for each, in their order.\n";
        for number in 1..=plan.disks.len() {
            writeln!(named, "disk_{number}=").expect("a text takes everything");
        }
        named += "disks=0\n";
        options += "        --to) disks=$((disks + 1)); eval \"disk_$disks=\\$2\"; shift ;;\n";
    }
    (named, options)
}

/// The copies of new files; none where no file has a path.
fn new_files(plan: &PlacePlan) -> Option<String> {
    let mut seen = BTreeSet::new();
    let mut text = String::new();
    for (number, PlacedFile { file, disk }) in (1..).zip(&plan.placed) {
        let Some(name) = new_path(plan, file) else { continue };
        let at =
            plan.disks.iter().position(|known| known.name == *disk).expect("a disk of the plan");
        let target = match path(plan, disk) {
            Some(path) => quoted(&path),
            None if has_paths(plan) => continue,
            None => format!("\"$disk_{}\"", at + 1),
        };
        // Answers that differ by query may be one file.
        if seen.insert(name.clone()) {
            writeln!(text, "new new-{number} {} {target}", quoted(&name))
                .expect("a text takes everything");
        }
    }
    let end =
        "test \"$left_out\" -eq 0 || echo \"new files that are not in $from: $left_out\" >&2\n";
    (!text.is_empty()).then(|| format!("\n{text}{end}"))
}

/// The path of a new file below the folder in which it is now; none for a name that is no path, or leads out
/// of that folder. Clients choose what stands in a log.
fn new_path(plan: &PlacePlan, file: &str) -> Option<String> {
    if !matches!(plan.options.source, PlaceSource::WebLog { .. }) {
        return Some(relative(file));
    }
    let (site, path) = match file.starts_with('/') {
        true => ("", file),
        false => file.split_once(' ').filter(|(_, path)| path.starts_with('/'))?,
    };
    let path = decoded(path.split(['?', '#']).next().unwrap_or_default())?;
    let leads_out = |text: &str| text.split('/').any(|part| part == "..");
    let site = without_port(site);
    let name = relative(&format!("{site}/{path}"));
    let is_folder = path.ends_with('/');
    (!leads_out(&path) && !leads_out(site) && !is_folder && !path.contains('\0')).then_some(name)
}

fn without_port(site: &str) -> &str {
    let port =
        site.rsplit_once(':').filter(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
    port.map_or(site, |(host, _)| host)
}

/// A path in which `%41` stands for `A`; none where that gives no text.
fn decoded(path: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = path.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let code = after.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let code = code.filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
        match code.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(byte) if first == b'%' => {
                bytes.push(byte);
                rest = &after[2..];
            }
            _ => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).ok()
}

/// The moves; none where no command can be given.
fn moves(plan: &PlacePlan) -> Option<String> {
    let mut text = String::new();
    let mut rooms = Rooms::new(plan);
    let mut has_command = false;
    for (at, wanted) in plan.moves.iter().enumerate() {
        let (number, PlannedMove { file, from, to, bytes, .. }) = (at + 1, wanted);
        let title = one_line(&format!("{number}. {file}: {from} to {to}, {}", size(*bytes)));
        writeln!(text, "\n# {title}").expect("a text takes everything");
        let [source, target] = [from, to].map(|name| path(plan, name));
        has_command |= source.is_some() && target.is_some();
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
    has_command.then_some(text)
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
    let [source, file, target] = [source, &file, target].map(quoted);
    format!("move {number} {source} {file} {target}\n# {removal}\n")
}

/// A path below a disk, with single slashes between its parts alone.
fn relative(file: &str) -> String {
    let parts = file.split('/').filter(|part| !part.is_empty() && *part != ".");
    parts.collect::<Vec<_>>().join("/")
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

    #[test]
    fn a_path_has_no_empty_parts_and_codes_are_the_bytes_they_stand_for() {
        assert_eq!(relative("//a/./b//c d/"), "a/b/c d");
        assert_eq!(decoded("/a%20b%c3%A4%2"), Some("/a bä%2".to_owned()));
        assert_eq!(decoded("/%ff"), None);
        assert_eq!(
            [without_port("a.b:80"), without_port("a.b"), without_port("[::1]:8")],
            ["a.b", "a.b", "[::1]"]
        );
    }
}
