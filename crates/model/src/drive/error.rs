//! Reason why a spec is not a drive.

use thiserror::Error;

/// Reason why a spec is not a drive. `key` is the key in the drive file.
#[derive(Debug, Clone, PartialEq, Error)]
#[error("`{key}` is {value}, but {rule}")]
#[allow(missing_docs)]
pub struct BuildDriveError {
    /// Key in the drive file.
    pub key: String,
    pub value: String,
    pub rule: String,
}

pub(crate) fn invalid(
    key: impl Into<String>,
    value: impl std::fmt::Display,
    rule: impl Into<String>,
) -> BuildDriveError {
    BuildDriveError { key: key.into(), value: value.to_string(), rule: rule.into() }
}
