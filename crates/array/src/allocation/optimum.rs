//! Distance of an allocation from the best one.

/// Heat of the hottest disk over that of an optimal allocation may be this much for the static greedy rule
/// and files of one extent: 4/3 - 1/(3D) (Graham 1969). Files of several extents on distinct disks may
/// exceed it.
pub fn static_bound(disks: u32) -> f64 {
    4.0 / 3.0 - 1.0 / (3.0 * f64::from(disks))
}

/// Bound of the canonical online rule: 2 - 1/D.
pub fn online_bound(disks: u32) -> f64 {
    2.0 - 1.0 / f64::from(disks)
}

/// Heat of the hottest disk when the extents of `files` lie best: each file's extents on distinct disks.
/// None when a file has more extents than there are disks.
///
/// Extents are tried from the hottest on, on every disk that could still beat the best allocation found.
/// Time grows exponentially with the extents: for some tens of them.
pub fn least_hottest(files: &[Vec<f64>], disks: u32) -> Option<f64> {
    if files.iter().any(|file| file.len() > disks as usize) {
        return None;
    }
    let mut items: Vec<Item> = files
        .iter()
        .enumerate()
        .flat_map(|(file, heats)| -> Vec<Item> {
            heats.iter().map(|&heat| Item { file, heat }).collect()
        })
        .collect();
    items.sort_by(|a, b| b.heat.total_cmp(&a.heat));
    let total: f64 = items.iter().map(|item| item.heat).sum();
    let hottest = items.first().map_or(0.0, |item| item.heat);
    let mut search = Search {
        items,
        disks: vec![Vec::new(); disks as usize],
        heats: vec![0.0; disks as usize],
        floor: hottest.max(total / f64::from(disks)),
        best: f64::INFINITY,
    };
    search.descend(0);
    Some(search.best)
}

#[derive(Debug, Clone, Copy)]
struct Item {
    file: usize,
    heat: f64,
}

struct Search {
    items: Vec<Item>,
    /// Files of each disk.
    disks: Vec<Vec<usize>>,
    heats: Vec<f64>,
    /// No allocation is better than this.
    floor: f64,
    best: f64,
}

impl Search {
    fn descend(&mut self, next: usize) {
        let Some(&item) = self.items.get(next) else {
            self.best = self.heats.iter().copied().fold(0.0, f64::max);
            return;
        };
        for disk in 0..self.heats.len() {
            // Empty disks are alike: one of them is enough.
            let is_repeated =
                self.disks[disk].is_empty() && self.disks[..disk].iter().any(Vec::is_empty);
            let heat = self.heats[disk] + item.heat;
            if is_repeated || heat >= self.best || self.disks[disk].contains(&item.file) {
                continue;
            }
            let before = std::mem::replace(&mut self.heats[disk], heat);
            self.disks[disk].push(item.file);
            self.descend(next + 1);
            self.disks[disk].pop();
            self.heats[disk] = before;
            if self.best <= self.floor {
                return;
            }
        }
    }
}
