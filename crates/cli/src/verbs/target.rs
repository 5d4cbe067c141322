//! Drives as they are named on a command line.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use freewheel::drives;
use freewheel::serving::Uri;

use crate::verbs::emulated::{EMULATED, Emulated};

/// A drive that can be asked for blocks.
#[derive(Debug, Clone, PartialEq)]
pub enum Target {
    /// One that exists in arithmetic only.
    Emulated(Box<Emulated>),
    Export(Box<Uri>),
    /// A block device, or a file.
    Device(PathBuf),
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(rest) = text.strip_prefix(EMULATED) {
            return Ok(Self::Emulated(Box::new(rest.parse()?)));
        }
        if text.contains("://") {
            let uri = text.parse::<Uri>().map_err(|error| error.to_string())?;
            return Ok(Self::Export(uri.into()));
        }
        let path = PathBuf::from(text);
        if drives::names().contains(&text) && !path.exists() {
            return Err(format!(
                "there is no such file; the drive of that name is {EMULATED}{text}"
            ));
        }
        Ok(Self::Device(path))
    }
}

impl Target {
    /// True if it runs in real time.
    pub fn is_real(&self) -> bool {
        !matches!(self, Self::Emulated(_))
    }
}

/// Message about a device that is opened beside others that write to it.
pub fn shared(path: &Path, others: &[String]) -> String {
    let others = if others.is_empty() { "no other use is known" } else { &others.join(", ") };
    format!(
        "{} is shared ({others}): another program may write to it meanwhile, caches differ, and tasks \
         and backups may be wrong",
        path.display()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn target_with_colon_slashes_is_export() {
        let target: Target = "nbd+unix:///?socket=/tmp/x".parse().unwrap();
        assert!(matches!(target, Target::Export(_)) && target.is_real());
        let target: Target = "/dev/sdb".parse().unwrap();
        assert_eq!(target, Target::Device("/dev/sdb".into()));
    }

    #[test]
    fn target_of_no_drive_is_refused() {
        let error = |text: &str| text.parse::<Target>().unwrap_err();
        assert!(error("http://localhost").contains("nbd"));
        assert!(error("atlas10k").contains("emulated:atlas10k"));
        assert!(error("emulated:atlas10k?depth=2").contains("seek_jitter"));
    }
}
