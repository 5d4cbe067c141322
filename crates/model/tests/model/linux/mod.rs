//! Linux's schedulers against naive ones, and cases from their documentation computed by hand.

mod bfq;
mod kyber;
mod load;
mod mq_deadline;
mod naive;
mod none;
mod tags;
