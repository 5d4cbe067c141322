//! The task interface: what each call of the paper's table 1 promises, held to a slow registry.
#![allow(missing_docs)]

mod arm;
mod memory;
mod oracle;
mod paces;
mod random;
mod table1;
mod uses;
mod writes;
