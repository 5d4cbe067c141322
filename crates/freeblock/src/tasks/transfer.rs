//! Blocks that the head has moved, and whose they are.

use freewheel_units::{Lbn, Op, SimTime};

use super::Tasks;
use super::grid::{BlockRun, runs_in};
use super::layer::Shape;
use crate::scheduler::Delivery;

impl Tasks {
    /// The head has moved these blocks, which serves the layers that `serves` says.
    pub(super) fn transferred(
        &mut self,
        start: Lbn,
        blocks: u32,
        serves: impl Fn(&Shape) -> bool,
        at: SimTime,
    ) {
        let layers = &self.layers;
        self.scheduler.moved(start, blocks, |number, _| serves(&layers[number].shape), at);
        let deliveries: Vec<Delivery> = self.scheduler.deliveries().collect();
        for Delivery { delivered, at } in deliveries {
            let run = (delivered.first, delivered.first + delivered.blocks);
            self.hand_out(delivered.layer, run, at);
        }
    }

    /// Blocks of a layer have been moved: everybody who wants them gets them.
    fn hand_out(&mut self, layer: usize, run: BlockRun, at: SimTime) {
        for member in 0..self.layers[layer].members.len() {
            let id = self.layers[layer].members[member];
            let Some(part) = self.tasks[&id].part_on(layer) else { continue };
            if self.tasks[&id].spec.op == Op::Write {
                self.ended.push(self.part(id, part).grid.bounds(run));
            }
            match &mut self.part_mut(id, part).own {
                None => self.deliver(id, part, run, false, at),
                Some(own) => {
                    let wanted = runs_in(own, run);
                    own.remove(run.0, run.1);
                    wanted.into_iter().for_each(|run| self.deliver(id, part, run, false, at));
                }
            }
        }
    }
}
