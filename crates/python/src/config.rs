//! Experiments.

use std::path::PathBuf;

use freewheel::experiments::ConfigError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::fault::{Fault, KEYS};
use crate::toml_values::{toml_table, toml_value};
use crate::values::{argument, choice, not_a};

/// A simulation: everything that determines its result, except the bytes of a trace.
///
/// Its keys are those of `schema()`, and of the TOML that `freewheel sim` reads.
#[pyclass(frozen, eq, module = "freewheel")]
#[derive(Clone, PartialEq)]
pub struct SimConfig {
    inner: freewheel::SimConfig,
}

/// Where an experiment comes from, without the interpreter.
pub enum ConfigSource {
    Path(PathBuf),
    /// A text of TOML.
    Text(String),
    /// Keys of Python, as a text of TOML that nobody has seen.
    Keys(String),
}

impl ConfigSource {
    /// The source of what `simulate` takes.
    pub fn of(config: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(config) = config.cast::<SimConfig>() {
            return toml_text(&config.get().inner).map(Self::Keys);
        }
        if let Ok(keys) = config.cast::<PyDict>() {
            return Ok(Self::Keys(toml_table(keys)?.to_string()));
        }
        if let Some(text) = text_of_toml(config)? {
            return Ok(Self::Text(text));
        }
        let path = config.extract().map_err(|_| {
            let says = format!("an experiment of the type {} is not known", config.get_type());
            let help = "give a path, a text of TOML, a dict or a SimConfig";
            argument(says, help).raise(config.py())
        })?;
        Ok(Self::Path(path))
    }

    /// The experiment with these overrides.
    pub fn config(&self, overrides: &[String]) -> Result<freewheel::SimConfig, ConfigError> {
        match self {
            Self::Path(path) => freewheel::SimConfig::load(path, overrides),
            Self::Text(text) => freewheel::SimConfig::parse(text, "the experiment", overrides),
            Self::Keys(text) => freewheel::SimConfig::parse(text, KEYS, overrides),
        }
    }
}

impl SimConfig {
    /// An experiment out of what `simulate` takes, with overrides.
    pub fn of(
        config: &Bound<'_, PyAny>,
        overrides: Option<Overrides>,
    ) -> PyResult<freewheel::SimConfig> {
        parse(config.py(), &ConfigSource::of(config)?, &overrides.unwrap_or_default().0)
    }
}

/// A text that is TOML and no path: it has a key with a value.
fn text_of_toml(config: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    let Ok(text) = config.cast::<PyString>() else { return Ok(None) };
    let text = text.to_str()?;
    Ok((text.contains('\n') || text.contains('=')).then(|| text.to_owned()))
}

fn parse(
    py: Python<'_>,
    source: &ConfigSource,
    overrides: &[String],
) -> PyResult<freewheel::SimConfig> {
    source.config(overrides).map_err(|error| Fault::experiment(error).raise(py))
}

fn toml_text(config: &freewheel::SimConfig) -> PyResult<String> {
    toml::to_string(config).map_err(|error| Fault::toml(error).raise_here())
}

/// Overrides in the words of `--set`, out of a dict. None as a value removes a key.
#[derive(Default)]
pub struct Overrides(pub Vec<String>);

impl<'py> FromPyObject<'_, 'py> for Overrides {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let help = "write overrides={\"workload.outstanding\": 4}";
        let all = given.cast::<PyDict>().map_err(|_| not_a(&given, "a dict", help))?;
        let mut texts = Vec::new();
        for (key, value) in all.iter() {
            let name: String = key.extract().map_err(|_| not_a(&key, "a key of texts", help))?;
            texts.push(format!("{name}={}", override_value(&value)?));
        }
        Ok(Self(texts))
    }
}

/// A value in the words of `--set`; empty for None.
pub fn override_value(value: &Bound<'_, PyAny>) -> PyResult<String> {
    Ok(match toml_value(value)? {
        Some(toml::Value::String(text)) => text,
        Some(value) => value.to_string(),
        None => String::new(),
    })
}

#[pymethods]
impl SimConfig {
    /// Makes an experiment of its keys.
    #[new]
    #[pyo3(signature = (**keys))]
    fn new(py: Python<'_>, keys: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let table = keys.map(toml_table).transpose()?.unwrap_or_default();
        Ok(Self { inner: parse(py, &ConfigSource::Keys(table.to_string()), &[])? })
    }

    /// Reads an experiment from a file of TOML. Paths in it count from its folder.
    #[staticmethod]
    #[pyo3(signature = (path, *, overrides=None))]
    fn load(py: Python<'_>, path: PathBuf, overrides: Option<Overrides>) -> PyResult<Self> {
        let loaded = freewheel::SimConfig::load(&path, &overrides.unwrap_or_default().0);
        let inner = loaded.map_err(|error| Fault::experiment(error).raise(py))?;
        Ok(Self { inner })
    }

    /// Reads an experiment from a text of TOML.
    #[staticmethod]
    #[pyo3(signature = (text, *, overrides=None))]
    fn parse(py: Python<'_>, text: &str, overrides: Option<Overrides>) -> PyResult<Self> {
        let source = ConfigSource::Text(text.to_owned());
        Ok(Self { inner: parse(py, &source, &overrides.unwrap_or_default().0)? })
    }

    /// The same experiment with other values, as `{"workload.outstanding": 20}`. None removes a key.
    fn replace(&self, py: Python<'_>, overrides: Overrides) -> PyResult<Self> {
        let source = ConfigSource::Keys(toml_text(&self.inner)?);
        Ok(Self { inner: parse(py, &source, &overrides.0)? })
    }

    /// The experiment as TOML, for `freewheel sim`.
    fn to_toml(&self) -> PyResult<String> {
        toml_text(&self.inner)
    }

    /// The experiment as a dict, with every default.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let json = serde_json::to_string(&self.inner);
        let json = json.map_err(|error| Fault::json(error).raise(py))?;
        py.import("json")?.call_method1("loads", (json,))
    }

    fn __repr__(&self) -> PyResult<String> {
        let text = toml_text(&self.inner)?;
        Ok(format!("SimConfig.parse('''\n{text}''')"))
    }
}

impl From<freewheel::SimConfig> for SimConfig {
    fn from(inner: freewheel::SimConfig) -> Self {
        Self { inner }
    }
}

/// The JSON Schema of an experiment, or of a drive file, as a dict.
#[pyfunction]
#[pyo3(signature = (of="experiment"))]
pub fn schema<'py>(py: Python<'py>, of: &str) -> PyResult<Bound<'py, PyAny>> {
    let kinds = [
        ("experiment", schemars::schema_for!(freewheel::SimConfig)),
        ("drive", schemars::schema_for!(freewheel::DriveSpec)),
    ];
    let known = [("experiment", 0), ("drive", 1)];
    let (_, schema) = &kinds[choice("of", of, &known)?];
    let text = serde_json::to_string(schema).map_err(|error| Fault::json(error).raise(py))?;
    py.import("json")?.call_method1("loads", (text,))
}
