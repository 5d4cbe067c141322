//! `freewheel drive import`.

use std::path::{Path, PathBuf};

use clap::Args;
use freewheel::drives::{Imported, import_disksim};
use freewheel::files::read_text;
use serde::Serialize;

use crate::failure::{Failure, with_near_file};
use crate::table::Table;
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
        let texts: Result<Vec<(String, String)>, Failure> =
            self.files.iter().map(|path| read(path)).collect();
        let texts = texts?;
        let named: Vec<(&str, &str)> =
            texts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        let folders: Vec<&Path> = self.files.iter().filter_map(|path| path.parent()).collect();
        let beside = |name: &str| {
            // A document names files beside it and none elsewhere, as ../x or /etc/x.
            file::ensure_plain_name(name, "").ok()?;
            let mut paths = folders.iter().map(|folder| folder.join(name));
            // A pipe would be waited for.
            paths.find_map(|path| std::fs::read_to_string(path.is_file().then_some(path)?).ok())
        };
        let imported = import_disksim(&named, &beside)?;
        let drive = toml::to_string(&imported.spec)
            .map_err(|error| Failure::failed(format!("the drive: {error}")))?;
        file::write_together(&[(&self.output, &drive)])?;
        if self.json {
            return output::print_document(&self.document(&imported));
        }
        output::print(&self.text(&imported))
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

/// The file's name without its folder, as other files call it, and its text.
fn read(path: &Path) -> Result<(String, String), Failure> {
    let text = read_text(path).map_err(|error| {
        let help = with_near_file("give the path of a parameter file of DiskSim", path);
        Failure::failed(format!("{}: {error}", path.display())).with_help(help)
    })?;
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok((name, text))
}
