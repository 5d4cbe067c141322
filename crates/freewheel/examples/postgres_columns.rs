//! Statistics of the first columns of a PostgreSQL table, from the blocks of its file in any order:
//!
//! ```text
//! freewheel scan --files /var/lib/postgresql/.../16384 --exec 'postgres_columns 3'
//! ```
//! Reads the stream of `freewheel scan` from its standard input. The table's first columns, by the number
//! in the argument, are `int4 not null`, as `aid`, `bid` and `abalance` of pgbench's accounts. Of a page
//! that two records share only the omission is counted.

use std::io::{self, Read};

use freewheel::control::{Record, Records};

const PAGE: usize = 8192;
/// Files begin at blocks of the file system.
const STEP: usize = 4096;
/// Size and layout version in the header of a page.
const SIZE_AND_VERSION: u16 = PAGE as u16 | 4;

#[derive(Debug, Default, Clone, PartialEq)]
struct Column {
    rows: u64,
    least: Option<i32>,
    most: Option<i32>,
    sum: i64,
}

impl Column {
    fn add(&mut self, value: i32) {
        self.rows += 1;
        self.least = Some(self.least.map_or(value, |least| least.min(value)));
        self.most = Some(self.most.map_or(value, |most| most.max(value)));
        self.sum += i64::from(value);
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let columns = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1);
    let mut table = vec![Column::default(); columns];
    let (mut records, mut piece, mut pages, mut cut) = (Records::default(), [0; 65_536], 0, 0);
    'stream: loop {
        while let Some(record) = records.next_record()? {
            match record {
                Record::Data { data, .. } => {
                    let (whole, partly) = read_pages(&data, &mut table);
                    (pages, cut) = (pages + whole, cut + partly);
                }
                Record::Unreadable { first_block, blocks } => {
                    eprintln!(
                        "blocks {first_block} to {} cannot be read",
                        first_block + blocks - 1
                    );
                }
                Record::End(state) => {
                    println!(
                        "{pages} pages, {cut} cut by the end of a record; the scan is {state:?}"
                    );
                    break 'stream;
                }
            }
        }
        match io::stdin().read(&mut piece)? {
            0 => return Err("the stream was cut off".into()),
            bytes => records.push(&piece[..bytes]),
        }
    }
    for (number, column) in table.iter().enumerate() {
        let Column { rows, least, most, sum } = column;
        let mean = *sum as f64 / (*rows).max(1) as f64;
        println!("column {}: {rows} rows, {least:?} to {most:?}, mean {mean:.1}", number + 1);
    }
    Ok(())
}

/// Adds the rows of all whole pages: how many, and how many begin and do not end in the data.
fn read_pages(data: &[u8], table: &mut [Column]) -> (u64, u64) {
    let (mut at, mut pages, mut cut) = (0, 0, 0);
    while at + 24 <= data.len() {
        if !is_page(&data[at..]) {
            at += STEP;
            continue;
        }
        match data.get(at..at + PAGE) {
            Some(page) => {
                read_rows(page, table);
                pages += 1;
            }
            None => cut += 1,
        }
        at += PAGE;
    }
    (pages, cut)
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn is_page(header: &[u8]) -> bool {
    let [lower, upper, special] = [12, 14, 16].map(|at| usize::from(u16_at(header, at)));
    u16_at(header, 18) == SIZE_AND_VERSION
        && (24..=upper).contains(&lower)
        && upper <= special
        && special <= PAGE
}

/// Rows by the line pointers: 15 bits of offset, 2 of state, 15 of length.
fn read_rows(page: &[u8], table: &mut [Column]) {
    let lower = usize::from(u16_at(page, 12));
    for pointer in page[24..lower].chunks_exact(4) {
        let pointer = u32::from_le_bytes([pointer[0], pointer[1], pointer[2], pointer[3]]);
        let (offset, state, length) =
            ((pointer & 0x7fff) as usize, pointer >> 15 & 3, (pointer >> 17) as usize);
        let Some(row) = page.get(offset..offset + length).filter(|_| state == 1) else { continue };
        let Some(&values) = row.get(22) else { continue };
        for (number, column) in table.iter_mut().enumerate() {
            let at = usize::from(values) + 4 * number;
            if let Some(value) = row.get(at..at + 4) {
                column.add(i32::from_le_bytes([value[0], value[1], value[2], value[3]]));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A page with two rows of two columns, one of them dead.
    fn page(rows: &[(i32, i32, u32)]) -> Vec<u8> {
        let mut page = vec![0; PAGE];
        let (mut lower, mut upper) = (24, PAGE);
        for (first, second, state) in rows {
            upper -= 32;
            page[upper + 22] = 24;
            page[upper + 24..upper + 28].copy_from_slice(&first.to_le_bytes());
            page[upper + 28..upper + 32].copy_from_slice(&second.to_le_bytes());
            let pointer = upper as u32 | state << 15 | 32 << 17;
            page[lower..lower + 4].copy_from_slice(&pointer.to_le_bytes());
            lower += 4;
        }
        for (at, value) in [(12, lower as u16), (14, upper as u16), (16, PAGE as u16)] {
            page[at..at + 2].copy_from_slice(&value.to_le_bytes());
        }
        page[18..20].copy_from_slice(&SIZE_AND_VERSION.to_le_bytes());
        page
    }

    #[test]
    fn live_rows_are_counted_on_whole_pages() {
        let mut data = vec![7; STEP];
        data.extend(page(&[(5, -1, 1), (900, 900, 3)]));
        data.extend(page(&[(-3, 4, 1)]));
        data.extend(&page(&[(1, 1, 1)])[..STEP]);
        let mut table = vec![Column::default(); 2];
        assert_eq!(read_pages(&data, &mut table), (2, 1));
        let [first, second] = [(-3, 5, 2), (-1, 4, 3)].map(|(least, most, sum)| Column {
            rows: 2,
            least: Some(least),
            most: Some(most),
            sum,
        });
        assert_eq!(table, [first, second]);
    }
}
