//! Balancers by bytes: the same start, until every disk is about equally full.

use freewheel_units::Blocks;

use crate::rebalance::{BalanceDisk, Balancer, RebalanceSpec};

/// Largest distance of a disk's share of used bytes from the mean: HDFS's balancer leaves it.
const THRESHOLD: f64 = 0.1;
/// Moves that are worked out at most: more would not be believed.
pub const EQUAL_BYTES_MOVES_MAX: u64 = 5000;

/// Moves files from the fullest disk to the emptiest until all are within the threshold, or no file
/// brings any two disks nearer.
pub fn equal_bytes(
    disks: &[BalanceDisk],
    balancer: &mut Balancer<'_>,
    spec: &RebalanceSpec,
) -> Effort {
    let mut effort = Effort::default();
    let mut disks = Disks::new(disks, balancer);
    while effort.moves < EQUAL_BYTES_MOVES_MAX
        && let Some(Chosen { file, from, to }) = disks.next(balancer)
    {
        let blocks = balancer.files()[file].blocks;
        effort.moves += 1;
        effort.blocks += blocks;
        effort.copy_s += balancer.copy_cost(file, from, to, spec).copy_s;
        balancer.relocate(file, to);
        disks.moved(blocks, file, from, to);
    }
    effort
}

/// Moves so far.
#[derive(Debug, Clone, Copy, Default)]
pub struct Effort {
    /// Number of moves.
    pub moves: u64,
    /// Blocks of their files.
    pub blocks: Blocks,
    /// Time of all copies, in seconds.
    pub copy_s: f64,
}

struct Chosen {
    file: usize,
    from: u32,
    to: u32,
}

/// Disks with their files by size.
struct Disks {
    sizes: Vec<f64>,
    used: Vec<f64>,
    /// Used share of all disks together.
    mean: f64,
    files: Vec<Vec<(Blocks, usize)>>,
}

impl Disks {
    fn new(disks: &[BalanceDisk], balancer: &Balancer<'_>) -> Self {
        let sizes: Vec<f64> = disks.iter().map(|disk| disk.blocks.get() as f64).collect();
        let used: Vec<f64> = balancer.used().iter().map(|blocks| blocks.get() as f64).collect();
        let mut files = vec![Vec::new(); sizes.len()];
        for (number, file) in balancer.files().iter().enumerate() {
            if let Some(disk) = file.disk {
                files[disk as usize].push((file.blocks, number));
            }
        }
        files.iter_mut().for_each(|files| files.sort_unstable());
        let mean = used.iter().sum::<f64>() / sizes.iter().sum::<f64>();
        Self { sizes, used, mean, files }
    }

    /// Distance of a disk with some more blocks from the mean.
    fn distance(&self, disk: usize, more: f64) -> f64 {
        (self.used[disk] + more) / self.sizes[disk] - self.mean
    }

    /// The first pair of a full and an empty disk that a file brings nearer to the mean. Each move makes
    /// the sum of squared distances smaller, so moves come to an end.
    fn next(&self, balancer: &Balancer<'_>) -> Option<Chosen> {
        let mut emptiest: Vec<usize> = (0..self.sizes.len()).collect();
        emptiest.sort_by(|&a, &b| self.distance(a, 0.0).total_cmp(&self.distance(b, 0.0)));
        for &from in emptiest.iter().rev() {
            for &to in &emptiest {
                let is_far =
                    self.distance(from, 0.0) > THRESHOLD || self.distance(to, 0.0) < -THRESHOLD;
                let is_downhill = self.distance(from, 0.0) > self.distance(to, 0.0);
                if !(is_far && is_downhill) {
                    break;
                }
                if let Some(file) = self.best_file(balancer, from, to) {
                    return Some(Chosen { file, from: from as u32, to: to as u32 });
                }
            }
        }
        None
    }

    /// The file whose move leaves the smallest sum of squared distances, if that is less than now. The sum
    /// is a parabola in the size of the file, so the file nearest to its vertex is the best.
    fn best_file(&self, balancer: &Balancer<'_>, from: usize, to: usize) -> Option<usize> {
        let sum = |blocks: f64| {
            let (source, target) = (self.distance(from, -blocks), self.distance(to, blocks));
            source * source + target * target
        };
        let weight = |disk: usize| 1.0 / self.sizes[disk];
        let vertex = (weight(from) * self.distance(from, 0.0)
            - weight(to) * self.distance(to, 0.0))
            / (weight(from) * weight(from) + weight(to) * weight(to));
        let files = &self.files[from];
        let above = files.partition_point(|(blocks, _)| (blocks.get() as f64) < vertex);
        let has_room = |at: &usize| balancer.has_room(to as u32, files[*at].0, 0.0);
        let below = (0..above).rev().find(has_room);
        let above = Some(above).filter(|at| *at < files.len()).filter(has_room);
        let nearest = below.into_iter().chain(above);
        let ranked = nearest.map(|at| (sum(files[at].0.get() as f64), files[at].1));
        let (best, file) = ranked.min_by(|a, b| a.0.total_cmp(&b.0))?;
        // Rounding could go round in circles without a hair's breadth.
        (best < sum(0.0) * (1.0 - 1e-9)).then_some(file)
    }

    fn moved(&mut self, blocks: Blocks, file: usize, from: u32, to: u32) {
        let [from, to] = [from, to].map(|disk| disk as usize);
        self.used[from] -= blocks.get() as f64;
        self.used[to] += blocks.get() as f64;
        let place = |files: &[(Blocks, usize)]| files.partition_point(|it| *it < (blocks, file));
        let at = place(&self.files[from]);
        self.files[from].remove(at);
        let at = place(&self.files[to]);
        self.files[to].insert(at, (blocks, file));
    }
}
