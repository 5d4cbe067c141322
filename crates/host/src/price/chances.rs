//! Chances that reads in a trail are hits.

/// Places in a trail that are counted apart.
pub(super) const PLACES: usize = 4;

/// Classes of age, by the commands since that read: up to eight each its own, then four in each doubling.
/// A buffer gives up its oldest segment, so chances fall at once where the number of reads exceeds its
/// segments.
pub(super) const AGES: usize = 40;

/// Reads that an average remembers.
const MEMORY: f64 = 1024.0;

/// Prior probability of a hit, and the number of reads that it weighs as much as. Assumed: even odds.
const PRIOR: f64 = 0.5;
const PRIOR_READS: f64 = 2.0;

/// Reads in a trail, and how many of them were hits.
#[derive(Debug, Clone, Copy, Default)]
struct Share {
    reads: f64,
    hits: f64,
}

impl Share {
    fn add(&mut self, is_hit: bool) {
        if self.reads >= MEMORY {
            self.reads /= 2.0;
            self.hits /= 2.0;
        }
        self.reads += 1.0;
        self.hits += f64::from(u8::from(is_hit));
    }

    fn chance(&self, prior: f64) -> f64 {
        (self.hits + prior * PRIOR_READS) / (self.reads + PRIOR_READS)
    }
}

/// Chances by place in the trail and by age.
#[derive(Debug, Clone)]
pub(super) struct HitChances {
    /// Without free work in the gap before the read, and with.
    shares: [[[Share; AGES]; PLACES]; 2],
    /// Shares over all ages.
    places: [[Share; PLACES]; 2],
    /// The chances that follow.
    chances: [[[f64; AGES]; PLACES]; 2],
}

impl Default for HitChances {
    fn default() -> Self {
        Self {
            shares: [[[Share::default(); AGES]; PLACES]; 2],
            places: [[Share::default(); PLACES]; 2],
            chances: [[[PRIOR; AGES]; PLACES]; 2],
        }
    }
}

impl HitChances {
    /// The chance of a read at a place in a trail of this age.
    pub fn of(&self, place: usize, age: usize) -> f64 {
        self.chances[0][place][age]
    }

    /// Chance of a hit of a read behind free work.
    pub fn behind_free(&self, (place, age): (usize, usize)) -> f64 {
        self.chances[1][place][age]
    }

    /// Learns from a read at a place in a trail of this age.
    pub fn learn(&mut self, (place, age): (usize, usize), is_behind_free: bool, is_hit: bool) {
        let of = usize::from(is_behind_free);
        let shares = &mut self.shares[of][place];
        shares[age].add(is_hit);
        self.places[of][place].add(is_hit);
        // An age that knows little itself believes what the next younger one shows, and the youngest what
        // all ages show.
        let mut younger = self.places[of][place].chance(PRIOR);
        for (chance, share) in self.chances[of][place].iter_mut().zip(shares) {
            *chance = share.chance(younger);
            younger = *chance;
        }
    }
}
