//! Bad answers of an API server about one kind: each of them must cost nothing.

use embedded::faults::{Fault, Rule};

/// Every way in which an API server can answer badly, by name.
pub const TROUBLES: [(&str, Fault); 7] = [
    ("404", Fault::NotServed),
    ("403", Fault::Forbidden),
    ("500", Fault::InternalError),
    ("503", Fault::Unavailable),
    ("an empty list", Fault::Empty),
    ("a broken connection", Fault::Cut),
    ("a hung connection", Fault::Hang),
];

/// All requests about a resource suffer a fault.
pub fn trouble(resource: &str, fault: Fault) -> Vec<Rule> {
    vec![Rule::on("", resource, 1.0, fault)]
}
