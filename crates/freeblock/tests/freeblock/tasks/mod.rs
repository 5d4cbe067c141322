//! The task interface: the promises of each call of the paper's table 1, against a slow registry.

mod arm;
mod memory;
mod oracle;
mod paces;
mod random;
mod table1;
mod uses;
mod writes;
