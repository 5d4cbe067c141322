//! `freewheel drive scale`.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::{ArgGroup, Args};
use freewheel::drives::{self, DriveScale, FACTOR_MAX, YearlyRates};
use freewheel::measures::Bytes;
use freewheel::{DriveSpec, Error, ErrorKind, Scaling};
use serde::Serialize;

use crate::failure::Failure;
use crate::{file, output};

/// Make a drive file of the same drive with other technology
///
/// Seek times, speed of rotation, linear density and track density each by a factor, or all of them
/// by years of change at the rates of IBM's server disks up to 2003. A factor that is given takes
/// the place of the one that the years make. With other surfaces the drive becomes a larger or smaller
/// one of its family; a capacity is reached by the density of its tracks alone. Skews are chosen anew so
/// that no revolution is lost; electronics stay as they are. The drive file goes to stdout or to a file,
/// what has changed to stderr.
#[derive(Args)]
#[command(group = ArgGroup::new("dimension").required(true).multiple(true).args(
    ["years", "seek", "rpm", "linear_density", "track_density", "capacity", "surfaces"],
))]
#[command(after_help = "\
Examples:
  freewheel drive scale atlas10k --years 5 -o atlas10k+5y.toml
  freewheel drive scale atlas10k --rpm 15000rpm --seek 0.8 --name fast -o fast.toml
  freewheel drive scale ultrastar73lzx --surfaces 2 --name ultrastar73lzx-73gb
  freewheel drive scale exos-x24-24tb --capacity 18TB --name exos-18tb
  freewheel drive scale atlas10k --years 5 --seek 1 --rpm 1 --json")]
pub struct ScaleArgs {
    /// Name of a shipped drive (see `freewheel drive list`), or path of a drive file
    drive: String,
    /// Years of change, all four dimensions at their rates
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = crate::verbs::decimal)]
    years: Option<f64>,
    /// Yearly change of seek times, in place of -8%
    #[arg(long, value_name = "PERCENT", requires = "years", allow_hyphen_values = true)]
    seek_rate: Option<Percent>,
    /// Yearly change of the speed of rotation, in place of 9%
    #[arg(long, value_name = "PERCENT", requires = "years", allow_hyphen_values = true)]
    rpm_rate: Option<Percent>,
    /// Yearly change of linear density, in place of 21%
    #[arg(long, value_name = "PERCENT", requires = "years", allow_hyphen_values = true)]
    linear_density_rate: Option<Percent>,
    /// Yearly change of track density, in place of 24%
    #[arg(long, value_name = "PERCENT", requires = "years", allow_hyphen_values = true)]
    track_density_rate: Option<Percent>,
    /// Seek times, times this
    #[arg(long, value_name = "FACTOR", value_parser = crate::verbs::decimal)]
    seek: Option<f64>,
    /// Speed of rotation, times this, or the speed itself as in 15000rpm
    #[arg(long, value_name = "FACTOR|SPEED")]
    rpm: Option<Speed>,
    /// Blocks on a track, times this
    #[arg(long, value_name = "FACTOR", value_parser = crate::verbs::decimal)]
    linear_density: Option<f64>,
    /// Tracks on the same breadth, times this
    #[arg(long, value_name = "FACTOR", value_parser = crate::verbs::decimal)]
    track_density: Option<f64>,
    /// Capacity to reach, in place of a factor of the tracks on the same breadth
    #[arg(long, value_name = "SIZE", conflicts_with_all = ["track_density", "track_density_rate"])]
    capacity: Option<Bytes>,
    /// Surfaces, times this; a part of a surface ends the data before the innermost cylinders
    #[arg(long, value_name = "FACTOR", value_parser = crate::verbs::decimal)]
    surfaces: Option<f64>,
    /// The drive file to write instead of stdout; what is there already is not written over
    #[arg(short, long, value_name = "F.toml")]
    output: Option<PathBuf>,
    /// Name of the scaled drive, instead of one that tells the years or the factors
    #[arg(long)]
    name: Option<String>,
    /// Print what has changed as one JSON document; the drive file needs -o then
    #[arg(long)]
    json: bool,
}

/// A yearly rate, as a share.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Percent(f64);

/// Speed at which the scaled drive turns.
#[derive(Debug, Clone, Copy)]
enum Speed {
    Factor(f64),
    Rpm(f64),
}

impl FromStr for Percent {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.strip_suffix('%').and_then(|number| number.trim().parse::<f64>().ok());
        match number {
            Some(percent) if percent > -100.0 && percent.is_finite() => Ok(Self(percent / 100.0)),
            _ => Err("write a percentage above -100%, as in 9% or -8%".into()),
        }
    }
}

impl FromStr for Speed {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let (number, speed): (&str, fn(f64) -> Self) = match text.strip_suffix("rpm") {
            Some(number) => (number.trim(), Self::Rpm),
            None => (text, Self::Factor),
        };
        let number: Option<f64> = number.parse().ok().filter(|number| *number > 0.0);
        match number.map(speed) {
            Some(Self::Factor(factor)) if factor > FACTOR_MAX => Err(format!(
                "as a factor that is above {FACTOR_MAX}: for a speed write {factor}rpm"
            )),
            Some(speed) => Ok(speed),
            None => Err("write a factor or a speed, as in 1.5 or 15000rpm".into()),
        }
    }
}

#[derive(Serialize)]
struct Document<'a> {
    file: Option<&'a Path>,
    scaling: Scaling,
    original: DriveScale,
    scaled: DriveScale,
}

impl ScaleArgs {
    pub fn run(self) -> Result<(), Failure> {
        self.output.as_deref().map_or(Ok(()), file::ensure_new)?;
        let (spec, drive) = drives::load(&self.drive)?;
        let scaling = self.scaling(&spec).map_err(|error| self.explain(error))?;
        let mut scaled = scaling.apply(&spec).map_err(|error| self.explain(error.into()))?;
        if let Some(name) = self.new_name(&spec) {
            scaled.name = name;
        }
        let document = Document {
            file: self.output.as_deref(),
            scaling,
            original: DriveScale::new(&spec, &drive),
            scaled: DriveScale::new(&scaled, &drives::build(&scaled, &scaled.name)?),
        };
        let toml = toml::to_string(&scaled)
            .map_err(|error| Failure::failed(format!("the drive: {error}")))?;
        match &self.output {
            Some(path) => file::write_together(&[(path, &toml)])?,
            None if !self.json => output::print(&toml)?,
            None => {}
        }
        if self.json {
            return output::print_document(&document);
        }
        output::aside(&text(&document));
        Ok(())
    }

    fn scaling(&self, spec: &DriveSpec) -> Result<Scaling, Error> {
        let historical = YearlyRates::HISTORICAL;
        let rates = YearlyRates {
            seek: rate_or(self.seek_rate, historical.seek),
            rpm: rate_or(self.rpm_rate, historical.rpm),
            linear_density: rate_or(self.linear_density_rate, historical.linear_density),
            track_density: rate_or(self.track_density_rate, historical.track_density),
        };
        let years = self.years.map(|years| Scaling::by_years(years, &rates)).unwrap_or_default();
        let rpm = self.rpm.map(|speed| match speed {
            Speed::Factor(factor) => factor,
            Speed::Rpm(rpm) => rpm * spec.rotation_period.as_secs_f64() / 60.0,
        });
        let scaling = Scaling {
            seek: self.seek.unwrap_or(years.seek),
            rpm: rpm.unwrap_or(years.rpm),
            linear_density: self.linear_density.unwrap_or(years.linear_density),
            track_density: self.track_density.unwrap_or(years.track_density),
            surfaces: self.surfaces.unwrap_or(years.surfaces),
        };
        match self.capacity {
            Some(capacity) => Ok(scaling.to_capacity(spec, capacity)?),
            None => Ok(scaling),
        }
    }

    /// The way out is in the option that the factor comes from.
    fn explain(&self, error: Error) -> Failure {
        let ErrorKind::ScaleFactor { name } = error.kind() else { return error.into() };
        let option = match name.replace('_', "-") {
            density if density == "track-density" && self.capacity.is_some() => "capacity".into(),
            option => option,
        };
        let own = match &*option {
            "seek" => self.seek.is_some(),
            "rpm" => self.rpm.is_some(),
            "linear-density" => self.linear_density.is_some(),
            "surfaces" => self.surfaces.is_some(),
            "capacity" => true,
            _ => self.track_density.is_some(),
        };
        let help = if own {
            format!("give --{option} a value that makes a factor of 0.01 to 100")
        } else {
            format!("take fewer --years, or give the factor itself with --{option}")
        };
        Failure::wrong_use(error).with_help(help)
    }

    /// The name given; or that of the years, when they say it all.
    fn new_name(&self, spec: &DriveSpec) -> Option<String> {
        let factors = [self.seek, self.linear_density, self.track_density, self.surfaces];
        let rates =
            [self.seek_rate, self.rpm_rate, self.linear_density_rate, self.track_density_rate];
        let only_years = self.rpm.is_none()
            && self.capacity.is_none()
            && factors.iter().all(Option::is_none)
            && rates.iter().all(Option::is_none);
        let by_years = self.years.filter(|_| only_years);
        self.name.clone().or_else(|| by_years.map(|years| format!("{}{years:+}y", spec.name)))
    }
}

fn rate_or(given: Option<Percent>, historical: f64) -> f64 {
    given.map_or(historical, |rate| rate.0)
}

fn text(document: &Document) -> String {
    let table = document.original.beside(&document.scaled);
    let file = document.file.map(|path| format!("\ndrive file: {}\n", path.display()));
    table + &file.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rate_is_signed_percentage() {
        assert_eq!("-8%".parse(), Ok(Percent(-0.08)));
        assert_eq!("12.5 %".parse(), Ok(Percent(0.125)));
        for wrong in ["8", "%", "-100%", "inf%"] {
            assert!(wrong.parse::<Percent>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn speed_is_factor_or_rpm() {
        assert!(matches!("1.5".parse(), Ok(Speed::Factor(1.5))));
        assert!(matches!("15000rpm".parse(), Ok(Speed::Rpm(15000.0))));
        let error = "15000".parse::<Speed>().unwrap_err();
        assert!(error.ends_with("for a speed write 15000rpm"), "{error}");
        for wrong in ["fast", "rpm", "-1", "0rpm", "100.5"] {
            assert!(wrong.parse::<Speed>().is_err(), "{wrong}");
        }
    }
}
