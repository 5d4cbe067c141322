//! `freewheel trace characterize`.

use clap::Args;
use freewheel::measures::Text;
use freewheel::traces::Character;

use super::LookArgs;
use crate::failure::Failure;
use crate::{output, reading};

/// Say how the load of a trace behaves: rate, bursts, sizes, locality, queueing, flushes
#[derive(Args)]
#[command(after_help = "\
Example:
  freewheel trace characterize pgbench.csv.zst")]
pub struct CharacterizeArgs {
    #[command(flatten)]
    look: LookArgs,
}

impl CharacterizeArgs {
    pub fn run(self) -> Result<(), Failure> {
        let character = reading::watched(&mut self.look.open()?, Character::scan)?;
        if self.look.json {
            return output::print_document(&character);
        }
        let heading = format!("{} ({})", self.look.name(), character.info.format);
        output::print(&format!("{heading}\n\n{}", character.text()))
    }
}
