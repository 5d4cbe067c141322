//! Drives: those that ship, drive files, and scaled ones.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use freewheel::drives::{self, DriveIdentity, YearlyRates};
use freewheel::files::{PendingFile, read_text};
use freewheel::{DriveSheet, DriveSpec, Scaling};
use pyo3::prelude::*;
use pyo3::types::{IntoPyDict, PyList, PyTuple};
use serde::Serialize;

use crate::fault::Fault;
use crate::report::{Parts, Report};
use crate::values::{Size, argument, path_text};

/// A drive: one that ships, one of a drive file, or a scaled one.
#[pyclass(frozen, module = "freewheel")]
pub struct Drive {
    model: Arc<Model>,
    /// Its name or path, or a file in the folder of this process, once one is needed.
    file: OnceLock<String>,
}

struct Model {
    spec: DriveSpec,
    drive: freewheel::Drive,
}

/// Name or path of a drive out of what functions take: a text, a path or a `Drive`.
pub fn reference(drive: &Bound<'_, PyAny>) -> PyResult<String> {
    match drive.cast::<Drive>() {
        Ok(drive) => drive.get().reference(drive.py()),
        Err(_) => path_text(
            drive,
            "a drive",
            "give the name of one that ships, the path of a drive file, or a Drive",
        ),
    }
}

/// Several drives, or one alone; none where none is given.
pub fn references(given: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<String>> {
    let Some(given) = given else { return Ok(Vec::new()) };
    let is_several = given.is_instance_of::<PyList>() || given.is_instance_of::<PyTuple>();
    if is_several {
        given.try_iter()?.map(|drive| reference(&drive?)).collect()
    } else {
        reference(given).map(|one| vec![one])
    }
}

impl Drive {
    fn new(spec: DriveSpec, drive: freewheel::Drive, file: Option<String>) -> Self {
        let file = file.map_or_else(OnceLock::new, OnceLock::from);
        Self { model: Arc::new(Model { spec, drive }), file }
    }

    /// A drive out of its file's values.
    pub fn of_spec(spec: DriveSpec) -> Result<Self, Fault> {
        let drive = drives::build(&spec, &spec.name)?;
        Ok(Self::new(spec, drive, None))
    }

    /// The values of its file.
    pub fn spec(&self) -> &DriveSpec {
        &self.model.spec
    }

    /// Its name or path. A drive without a file gets one, which is there until the process ends.
    pub fn reference(&self, py: Python<'_>) -> PyResult<String> {
        if let Some(file) = self.file.get() {
            return Ok(file.clone());
        }
        let name = format!("{}.toml", self.model.spec.name);
        let path: String =
            py.import("freewheel._scratch")?.call_method1("file", (name,))?.extract()?;
        write(path.as_ref(), &self.to_toml()?).map_err(|fault| fault.raise(py))?;
        Ok(self.file.get_or_init(|| path).clone())
    }

    fn identity(&self) -> DriveIdentity {
        DriveIdentity::new(&self.model.spec, &self.model.drive)
    }
}

fn write(path: &Path, text: &str) -> Result<(), Fault> {
    let write = || -> std::io::Result<()> {
        let mut file = PendingFile::create(path)?;
        std::io::Write::write_all(&mut file, text.as_bytes())?;
        file.keep()
    };
    write().map_err(|error| Fault::File(format!("{}: {error}", path.display())))
}

/// Everything that `freewheel drive show --json` has.
#[derive(Serialize)]
struct Document<'a> {
    drive: DriveIdentity,
    #[serde(flatten)]
    sheet: &'a DriveSheet,
}

#[pymethods]
impl Drive {
    /// Takes the drive of this name, or of the drive file at this path.
    #[staticmethod]
    fn load(py: Python<'_>, name_or_path: &Bound<'_, PyAny>) -> PyResult<Self> {
        let name = reference(name_or_path)?;
        let (spec, drive) = drives::load(&name).map_err(|error| Fault::from(error).raise(py))?;
        Ok(Self::new(spec, drive, Some(name)))
    }

    /// Reads a drive out of DiskSim's parameter files.
    ///
    /// Files that they name are looked for beside them.
    #[staticmethod]
    #[pyo3(signature = (*files))]
    fn import_disksim(py: Python<'_>, files: Vec<PathBuf>) -> PyResult<Self> {
        if files.is_empty() {
            let says = "import_disksim() was given no file".to_owned();
            return Err(argument(says, "give DiskSim's parameter files of a disk").raise(py));
        }
        let texts = files
            .iter()
            .map(|path| {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                Ok((
                    name,
                    read_text(path).map_err(|error| {
                        let says = format!("{}: {error}", path.display());
                        let is_missing = error.kind() == std::io::ErrorKind::NotFound;
                        let fault = if is_missing { Fault::Missing } else { Fault::File };
                        fault(says).raise(py)
                    })?,
                ))
            })
            .collect::<PyResult<Vec<_>>>()?;
        let named: Vec<(&str, &str)> =
            texts.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
        let imported = drives::import_disksim(&named, &|name| {
            let mut folders = files.iter().filter_map(|path| path.parent());
            folders.find_map(|folder| read_text(&folder.join(name)).ok())
        });
        let imported = imported.map_err(|error| Fault::from(error).raise(py))?;
        Self::of_spec(imported.spec).map_err(|fault| fault.raise(py))
    }

    /// The same drive with other technology: factors, or years of change at historical rates.
    #[pyo3(signature = (*, years=None, seek=None, rpm=None, linear_density=None, track_density=None, surfaces=None, capacity=None, name=None))]
    #[expect(clippy::too_many_arguments, reason = "they are keywords")]
    fn scale(
        &self,
        py: Python<'_>,
        years: Option<f64>,
        seek: Option<f64>,
        rpm: Option<f64>,
        linear_density: Option<f64>,
        track_density: Option<f64>,
        surfaces: Option<f64>,
        capacity: Option<Size>,
        name: Option<String>,
    ) -> PyResult<Self> {
        let factors = [years, seek, rpm, linear_density, track_density, surfaces];
        if factors.iter().all(Option::is_none) && capacity.is_none() {
            let says = "scale() was given nothing that changes the drive".to_owned();
            return Err(argument(says, "give years=5, or a factor as rpm=1.5").raise(py));
        }
        let by_years = years.map(|years| Scaling::by_years(years, &YearlyRates::HISTORICAL));
        let by_years = by_years.unwrap_or_default();
        let scaling = Scaling {
            seek: seek.unwrap_or(by_years.seek),
            rpm: rpm.unwrap_or(by_years.rpm),
            linear_density: linear_density.unwrap_or(by_years.linear_density),
            track_density: track_density.unwrap_or(by_years.track_density),
            surfaces: surfaces.unwrap_or(by_years.surfaces),
        };
        let spec = &self.model.spec;
        let capacity = capacity.map(|size| size.get("capacity")).transpose()?;
        let scaled = || -> Result<Self, Fault> {
            let scaling = match capacity {
                Some(capacity) => scaling.to_capacity(spec, capacity)?,
                None => scaling,
            };
            let mut scaled = scaling.apply(spec)?;
            scaled.name = name.unwrap_or(scaled.name);
            Self::of_spec(scaled)
        };
        scaled().map_err(|fault| fault.raise(py))
    }

    /// Holds the drive against a trace that was measured on the real one.
    #[pyo3(signature = (trace, *, delays=None))]
    fn validate<'py>(
        slf: &Bound<'py, Self>,
        trace: &Bound<'py, PyAny>,
        delays: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let keywords = [("delays", delays)].into_py_dict(slf.py())?;
        let module = slf.py().import("freewheel._freewheel")?;
        module.call_method("validate", (slf, trace), Some(&keywords))
    }

    /// The data sheet: advertised and modelled values, zones, seek curve, and the source of each value.
    fn sheet(&self) -> Report {
        let [of_json, of_html, of_text] = [(), (), ()].map(|()| Arc::clone(&self.model));
        Report::new(Parts {
            json: Box::new(move || {
                let drive = DriveIdentity::new(&of_json.spec, &of_json.drive);
                let document = Document { drive, sheet: &sheet_of(&of_json) };
                freewheel_cli::json_document(&document).map_err(Fault::json)
            }),
            html: Some(Box::new(move || Ok(sheet_of(&of_html).html()))),
            text: Box::new(move || {
                let drive = DriveIdentity::new(&of_text.spec, &of_text.drive);
                Ok(format!(
                    "{}: {}, {} bytes, {:.0} rpm, {} surfaces",
                    drive.name,
                    drive.model,
                    drive.capacity_bytes,
                    drive.rotation_rpm,
                    drive.surfaces
                ))
            }),
            frame: None,
        })
    }

    /// The drive file.
    fn to_toml(&self) -> PyResult<String> {
        let text = toml::to_string(&self.model.spec);
        text.map_err(|error| Fault::toml(error).raise_here())
    }

    /// Writes the drive file. It appears when it is complete.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        write(&path, &self.to_toml()?).map_err(|fault| fault.raise(py))
    }

    /// Name in its file.
    #[getter]
    fn name(&self) -> String {
        self.identity().name
    }

    /// The maker's name of the model.
    #[getter]
    fn model(&self) -> String {
        self.identity().model
    }

    /// Year in which it was sold first, where its file says it.
    #[getter]
    fn year(&self) -> Option<u16> {
        self.identity().year
    }

    /// Capacity of all actuators together.
    #[getter]
    fn capacity_bytes(&self) -> u64 {
        self.identity().capacity_bytes
    }

    /// Blocks of 512 bytes.
    #[getter]
    fn blocks(&self) -> u64 {
        self.identity().blocks
    }

    /// Turns a minute.
    #[getter]
    fn rotation_rpm(&self) -> f64 {
        self.identity().rotation_rpm
    }

    /// Surfaces with data.
    #[getter]
    fn surfaces(&self) -> u32 {
        self.identity().surfaces
    }

    /// Cylinders.
    #[getter]
    fn cylinders(&self) -> u32 {
        self.identity().cylinders
    }

    fn __repr__(&self) -> String {
        let DriveIdentity { name, model, capacity_bytes, .. } = self.identity();
        format!("<Drive {name}: {model}, {capacity_bytes} bytes>")
    }
}

fn sheet_of(model: &Model) -> DriveSheet {
    DriveSheet::new(&model.spec, &model.drive)
}

/// Names of the shipped drives, sorted.
#[pyfunction]
#[pyo3(name = "drives")]
pub fn drive_names() -> Vec<&'static str> {
    drives::names()
}
