//! The moves of a plan as commands of a shell.

use std::collections::{BTreeMap, BTreeSet};

use freewheel_study::plan::{PlacePlan, PlaceSource, PlacedFile, PlannedMove, relative};
use freewheel_units::Bytes;

use super::words::size;

const HEAD: &str = include_str!("moves.sh");
const OF_FILES: &str = include_str!("moves_of_files.sh");
const OF_NEW_FILES: &str = include_str!("moves_of_new_files.sh");

/// The script; none where it would have no command.
pub(super) fn commands(plan: &PlacePlan) -> Option<String> {
    let steps = Steps::new(plan);
    if !steps.has_new && !steps.has_moves {
        return None;
    }
    let limit =
        plan.options.copy_rate.map(|rate| format!(" --bwlimit={}", rate.get().div_ceil(1024)));
    let named = if steps.has_new { Named::new(plan) } else { Named::default() };
    let is_disk = if has_paths(plan) {
        r#"mountpoint -q -- "$2" || stop "$1" "$2 is not mounted""#
    } else {
        r#"test -d "$2" || stop "$1" "$2 is no folder""#
    };
    let head = HEAD.replace("@NAMED@", &named.variables).replace("@OPTIONS@", &named.options);
    let head = head.replace("@USAGE@", named.usage).replace("@IS_DISK@", is_disk);
    let mut script = head.replace("@LIMIT@", &limit.unwrap_or_default());
    if steps.has_new {
        script += OF_NEW_FILES;
    }
    if steps.has_moves {
        script += OF_FILES;
    }
    script += &steps.text;
    script += "\ntest \"$is_reached\" = yes || stop \"$first\" \"the plan has no such copy\"\n";
    if steps.has_new {
        script += LEFT_OUT;
    }
    Some(script)
}

/// The end of a script with new files.
const LEFT_OUT: &str =
    "test \"$left_out\" -eq 0 || echo \"new files that are not in $from: $left_out\" >&2\n";

fn has_paths(plan: &PlacePlan) -> bool {
    plan.disks.iter().any(|disk| disk.path.is_some())
}

/// Names that a person fills in, and the options for the same: folders of new files, and of disks if the
/// plan does not know.
#[derive(Default)]
struct Named {
    variables: String,
    options: String,
    usage: &'static str,
}

impl Named {
    fn new(plan: &PlacePlan) -> Self {
        let option = |name: &str, does: &str| {
            let value = format!("if test $# -lt 2; then wrong \"{name} needs a folder\"; fi");
            format!("        {name}) {value}; {does}; shift ;;\n")
        };
        let mut named = Self {
            variables: "\n# Where new files are now: fill it in, or give --from FOLDER.\nfrom=\n"
                .into(),
            options: option("--from", "from=$2"),
            usage: " [--from FOLDER]",
        };
        if !has_paths(plan) {
            let disks = (1..=plan.disks.len()).map(|number| format!("disk_{number}=\n"));
            named.variables += "# Where the disks are: fill that in, or give --to FOLDER for each, in their order.\n";
            named.variables.extend(disks);
            named.variables += "disks=0\n";
            named.options += &option("--to", "disks=$((disks + 1)); eval \"disk_$disks=\\$2\"");
            named.usage = " [--from FOLDER] [--to FOLDER ...]";
        }
        named
    }
}

/// The commands in the order in which each copy has room.
struct Steps<'p> {
    plan: &'p PlacePlan,
    rooms: Rooms<'p>,
    /// Paths of new files so far: answers that differ by query may be one file.
    seen: BTreeSet<String>,
    text: String,
    has_new: bool,
    has_moves: bool,
}

impl<'p> Steps<'p> {
    fn new(plan: &'p PlacePlan) -> Self {
        let rooms = Rooms::new(plan);
        let (seen, text) = (BTreeSet::new(), left_out(plan));
        let mut steps = Self { plan, rooms, seen, text, has_new: false, has_moves: false };
        steps.new_files(0);
        for at in 0..plan.moves.len() {
            steps.one_move(at);
            steps.new_files(at + 1);
        }
        steps
    }

    fn line(&mut self, text: &str) {
        self.text += text;
        self.text.push('\n');
    }

    /// The copies of new files that have their room after this number of moves.
    fn new_files(&mut self, after: usize) {
        let plan = self.plan;
        let due = plan.placed.iter().enumerate().filter(|(_, placed)| is_due(placed, after));
        if due.clone().next().is_some() {
            self.line("");
        }
        for (at, PlacedFile { file, disk, bytes, .. }) in due {
            let number = format!("new-{}", at + 1);
            let (Ok(name), Some(target)) = (new_path(plan, file), target(plan, disk)) else {
                continue;
            };
            self.wait_for_room(&number, after, disk, *bytes);
            if self.seen.insert(name.clone()) {
                self.has_new = true;
                self.line(&format!("new {number} {} {target}", quoted(&name)));
            }
        }
    }

    /// Lines for the originals that have to go first.
    fn wait_for_room(&mut self, number: &str, moves: usize, disk: &str, bytes: Bytes) {
        for PlannedMove { file, from, .. } in self.rooms.needed(moves, disk, bytes) {
            if let Some(disk) = target(self.plan, from) {
                self.line(&format!("gone {number} {disk}/{}", quoted(&relative(file))));
            }
        }
    }

    fn one_move(&mut self, at: usize) {
        let plan = self.plan;
        let (number, PlannedMove { file, from, to, bytes, .. }) = (at + 1, &plan.moves[at]);
        let title = format!("{number}. {file}: {from} to {to}, {}", size(*bytes));
        self.line(&format!("\n# {}", one_line(&title)));
        let [Some(source), Some(target)] = [from, to].map(|name| path(plan, name)) else {
            self.rooms.needed(at, to, *bytes);
            let unknown = [from, to].into_iter().find(|name| path(plan, name).is_none());
            let unknown = unknown.expect("one of the two has no path");
            return self
                .line(&one_line(&format!("# disk {unknown} has no `path` in the snapshot")));
        };
        self.wait_for_room(&number.to_string(), at, to, *bytes);
        self.has_moves = true;
        if plan.moves[at].name_is_taken {
            let [source, file, target] = [&source, &relative(file), &target].map(|it| quoted(it));
            self.line(&format!("taken {number} {source} {file} {target}"));
        }
        self.text += &one_move(number, &source, &target, file);
    }
}

fn is_due(placed: &&PlacedFile, after: usize) -> bool {
    placed.after_moves == after
}

/// The new files that have no command, and why, as comments.
fn left_out(plan: &PlacePlan) -> String {
    let mut reasons: BTreeMap<&str, u64> = BTreeMap::new();
    for PlacedFile { file, disk, .. } in &plan.placed {
        let reason = match new_path(plan, file) {
            Err(reason) => reason,
            Ok(_) if target(plan, disk).is_none() => "their disk has no `path` in the snapshot",
            Ok(_) => continue,
        };
        *reasons.entry(reason).or_default() += 1;
    }
    let lines: String = reasons
        .into_iter()
        .map(|(reason, count)| format!("# New files that are not copied: {count}, as {reason}.\n"))
        .collect();
    if lines.is_empty() { lines } else { format!("\n{lines}") }
}

/// A disk as a word of the shell: its path, or, where no disk has one, what a person fills in.
fn target(plan: &PlacePlan, disk: &str) -> Option<String> {
    let at = plan.disks.iter().position(|known| known.name == disk).expect("a disk of the plan");
    match path(plan, disk) {
        Some(path) => Some(quoted(&path)),
        None if has_paths(plan) => None,
        None => Some(format!("\"$disk_{}\"", at + 1)),
    }
}

/// The path of a new file below the folder in which it is now. Err with the reason for a name that is no
/// path, or leads out of that folder. Clients choose what stands in a log.
fn new_path(plan: &PlacePlan, file: &str) -> Result<String, &'static str> {
    if !matches!(plan.options.source, PlaceSource::WebLog { .. }) {
        return Ok(relative(file));
    }
    let (site, path) =
        if file.starts_with('/') { ("", file) } else { file.split_once(' ').unwrap_or(("", file)) };
    if !path.starts_with('/') {
        return Err("their names are no paths of the server, but whole addresses or numbers");
    }
    let path = decoded(path.split(['?', '#']).next().unwrap_or_default());
    let path = path.filter(|path| !path.contains('\0')).ok_or("their names are no text")?;
    if leads_out(&path) || leads_out(site) {
        return Err("`..` leads out of the folder");
    }
    if path.ends_with('/') {
        Err("a server chooses the page of a folder, as `/`")
    } else {
        Ok(relative(&format!("{site}/{path}")))
    }
}

fn leads_out(text: &str) -> bool {
    text.split('/').any(|part| part == "..")
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

/// Room on each disk while originals stay where they are until somebody removes them.
struct Rooms<'p> {
    plan: &'p PlacePlan,
    /// Bytes that may be copied to each disk.
    left: Vec<f64>,
    /// True if each move's original has to be gone by now.
    is_gone: Vec<bool>,
}

impl<'p> Rooms<'p> {
    fn new(plan: &'p PlacePlan) -> Self {
        let left = plan
            .disks
            .iter()
            .map(|disk| {
                let size = disk.size.get() as f64;
                size - plan.options.free_share * size - disk.used.get() as f64
            })
            .collect();
        Self { plan, left, is_gone: vec![false; plan.moves.len()] }
    }

    /// Takes room on a disk after this number of moves, and says whose originals have to be gone before that.
    fn needed(&mut self, moves: usize, to: &str, bytes: Bytes) -> Vec<&'p PlannedMove> {
        let plan = self.plan;
        let disk = plan.disks.iter().position(|disk| disk.name == to).expect("a disk of the plan");
        let mut needed = Vec::new();
        for (earlier, moved) in plan.moves[..moves].iter().enumerate() {
            if self.left[disk] >= room(bytes) {
                break;
            }
            if moved.from == to && !std::mem::replace(&mut self.is_gone[earlier], true) {
                self.left[disk] += room(moved.bytes);
                needed.push(moved);
            }
        }
        self.left[disk] -= room(bytes);
        needed
    }
}

/// Bytes of a disk that a file takes.
fn room(file: Bytes) -> f64 {
    file.blocks_rounded_up().bytes().get() as f64
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

fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

/// Mount point of a disk, without a slash at its end; the root alone keeps its own. rsync would cut a path
/// at the first `/./`, and takes `a:b` for a folder of another machine.
fn path(plan: &PlacePlan, name: &str) -> Option<String> {
    let disk = plan.disks.iter().find(|disk| disk.name == name)?;
    Some(root(&disk.path.as_deref()?.display().to_string()))
}

fn root(path: &str) -> String {
    let below = relative(path);
    match (path.starts_with('/'), below.is_empty()) {
        (true, _) => format!("/{below}"),
        (false, true) => ".".into(),
        (false, false) => format!("./{below}"),
    }
}

/// One word for a shell, with any content.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_quote_names_and_comments() {
        let lines = one_move(3, "/mnt/a", "/mnt/b", "/it's here/x y");
        assert_eq!(
            lines,
            "move 3 '/mnt/a' 'it'\\''s here/x y' '/mnt/b'\n# rm -r -- '/mnt/a/it'\\''s here/x y'\n"
        );
        let lines = one_move(1, "/mnt/a", "/mnt/b", "x\nrm -rf /");
        assert!(lines.ends_with("\n# (remove the original)\n"), "{lines}");
    }

    #[test]
    fn commands_normalise_paths_and_decode_codes() {
        assert_eq!(relative("//a/./b//c d/"), "a/b/c d");
        assert_eq!(decoded("/a%20b%c3%A4%2"), Some("/a bä%2".to_owned()));
        assert_eq!(decoded("/%ff"), None);
        let roots = ["/srv/./a//b/", "/", "//", "a:b", "./a/", "."].map(root);
        assert_eq!(roots, ["/srv/a/b", "/", "/", "./a:b", "./a", "."]);
    }
}
