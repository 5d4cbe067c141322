//! `freewheel drive import`.

use std::cell::RefCell;
use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use freewheel::drives::{ImportCause, Imported, import_disksim};
use freewheel::files::{did_you_mean, read_text};
use freewheel::measures::Table;
use freewheel::{Error, ErrorKind};
use serde::Serialize;

use crate::failure::Failure;
use crate::{file, output};

/// Make a drive file from DiskSim's parameter files
///
/// Give any of .parv, .diskspecs, .model, .layout and seek files; those that they name are looked
/// for beside them. What a drive file cannot say is listed, never dropped silently.
#[derive(Args)]
#[command(after_help = "\
Example:
  freewheel drive import disk.diskspecs disk.model disk.seek -o disk.toml
  freewheel drive show ./disk.toml")]
pub struct ImportArgs {
    /// DiskSim parameter files
    #[arg(required = true, value_name = "FILES")]
    files: Vec<PathBuf>,
    /// Year of introduction, which the files do not say
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1956..=2199))]
    year: Option<u16>,
    /// The drive file to write
    #[arg(short, long, value_name = "F.toml")]
    output: PathBuf,
    /// Print one JSON document
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Document<'a> {
    file: &'a Path,
    drive: &'a str,
    not_represented: Vec<Left<'a>>,
    notes: &'a [String],
}

/// A parameter that was left out.
#[derive(Serialize)]
struct Left<'a> {
    name: &'a str,
    value: &'a str,
    file: &'a str,
    line: u32,
    why: &'a str,
}

impl ImportArgs {
    pub fn run(self) -> Result<(), Failure> {
        file::ensure_new(&self.output)?;
        let texts = read_all(&self.files)?;
        let named: Vec<(&str, &str)> =
            texts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        let folders = self.folders();
        let unread = RefCell::default();
        let imported = import_disksim(&named, &|name| beside(&folders, name, &unread));
        refuse_unread(&unread.into_inner())?;
        let mut imported = imported.map_err(|error| self.failure(error))?;
        self.date(&mut imported);
        let drive = toml::to_string(&imported.spec)
            .map_err(|error| Failure::failed(format!("the drive: {error}")))?;
        file::write_together(&[(&self.output, &drive)])?;
        if self.json {
            return output::print_document(&self.document(&imported));
        }
        output::print(&self.text(&imported))
    }

    /// Folders of the given files, each once.
    fn folders(&self) -> Vec<&Path> {
        let mut folders: Vec<&Path> = Vec::new();
        for folder in self.files.iter().filter_map(|path| path.parent()) {
            if !folders.contains(&folder) {
                folders.push(folder);
            }
        }
        folders
    }

    /// The year, which is on the command line or not known.
    fn date(&self, imported: &mut Imported) {
        imported.spec.year = self.year;
        if self.year.is_some() {
            imported.spec.sources.insert("year".into(), "assumed: given with --year".into());
        } else {
            imported.notes.push("the files do not say the drive's year; --year gives it".into());
        }
    }

    fn failure(&self, error: Error) -> Failure {
        let help = match error.kind() {
            ErrorKind::DiskSim { cause } => Some(self.help(cause)),
            _ => None,
        };
        match help {
            Some(help) => Failure::from(error).with_help(help),
            None => error.into(),
        }
    }

    /// The way out, by what is wrong.
    fn help(&self, cause: &ImportCause) -> String {
        match cause {
            ImportCause::NoDrive => {
                "give DiskSim's parameter files of a disk: .parv or .diskspecs with \
                                     .model and .seek beside it"
                    .into()
            }
            ImportCause::Missing { names } => self.help_to_find(names),
            ImportCause::Malformed => {
                "mend that place; the manual of DiskSim 4.0 (CMU-PDL-08-101) says \
                                       what each parameter takes"
                    .into()
            }
            ImportCause::UnevenHeads => format!(
                "give the heads of a zone their mean blocks per track in the layout; or take a drive of \
                 that time: {SHIPPED}"
            ),
            ImportCause::Unrepresentable => {
                format!("change the layout so far; or take a drive like this one: {SHIPPED}")
            }
        }
    }

    fn help_to_find(&self, names: &[String]) -> String {
        let folders: Vec<String> = self.folders().into_iter().map(shown).collect();
        let elsewhere = names.iter().find(|name| file::ensure_plain_name(name, "").is_err());
        let why = match elsewhere {
            Some(name) => {
                format!("; `{name}` leads to another folder, where nothing is looked for")
            }
            None => String::new(),
        };
        format!(
            "put what is missing into the folder of the others, or name its path behind {}; looked in: \
             {}{why}",
            self.files.last().map_or(String::new(), |path| path.display().to_string()),
            folders.join(", ")
        )
    }

    fn document<'a>(&'a self, imported: &'a Imported) -> Document<'a> {
        let left = imported.not_represented.iter().map(|parameter| Left {
            name: &parameter.name,
            value: &parameter.value,
            file: &parameter.file,
            line: parameter.line,
            why: &parameter.why,
        });
        Document {
            file: &self.output,
            drive: &imported.spec.name,
            not_represented: left.collect(),
            notes: &imported.notes,
        }
    }

    fn text(&self, imported: &Imported) -> String {
        let mut table = Table::new("llll");
        table.row(["not represented", "value", "where", "why"]);
        for p in &imported.not_represented {
            let place = format!("{}:{}", p.file, p.line);
            table.row([p.name.clone(), p.value.clone(), place, p.why.clone()]);
        }
        let notes: String = imported.notes.iter().map(|note| format!("{note}\n")).collect();
        format!("{notes}\n{table}\ndrive file: {}\n", self.output.display())
    }
}

const SHIPPED: &str = "`freewheel drive list` shows those that ship";

/// A folder as people write it.
fn shown(folder: &Path) -> String {
    if folder.as_os_str().is_empty() { "this folder".into() } else { folder.display().to_string() }
}

/// Each file's name without its folder, as other files call it, and its text; or all that cannot be read.
fn read_all(files: &[PathBuf]) -> Result<Vec<(String, String)>, Failure> {
    let (mut texts, mut unread) = (Vec::new(), Unread::new());
    for path in files {
        match read_text(path) {
            Ok(text) => texts.push((name(path), text)),
            Err(error) => unread.push((path.clone(), error)),
        }
    }
    refuse_unread(&unread).map(|()| texts)
}

fn name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The text of a file that another names, in the first of the folders that has it.
fn beside(folders: &[&Path], name: &str, unread: &RefCell<Unread>) -> Option<String> {
    // A document names files beside it and none elsewhere, as ../x or /etc/x.
    file::ensure_plain_name(name, "").ok()?;
    // A pipe would be waited for.
    let path = folders.iter().map(|folder| folder.join(name)).find(|path| path.is_file())?;
    read_text(&path).map_err(|error| unread.borrow_mut().push((path, error))).ok()
}

/// Files that cannot be read, and why.
type Unread = Vec<(PathBuf, io::Error)>;

fn refuse_unread(unread: &Unread) -> Result<(), Failure> {
    let Some((first, error)) = unread.first() else { return Ok(()) };
    if error.kind() == io::ErrorKind::InvalidData {
        return Err(failed(unread).with_help("save it as a text in UTF-8, comments too"));
    }
    let help = format!("give the paths of parameter files of DiskSim{}", did_you_mean(first));
    Err(failed(unread).with_help(help))
}

fn failed(unread: &Unread) -> Failure {
    let all: Vec<String> =
        unread.iter().map(|(path, error)| format!("{}: {error}", path.display())).collect();
    Failure::failed(all.join("; "))
}
