//! The rules that decisions are made of: requirements, resources, tolerations, and the catalogue's answers.
//!
//! Tables of the rules are written out; beyond them, [`naive`] says the rules once more by trying values, and
//! random inputs must get the same answers from both.

mod compatible;
mod compiled;
mod matches;
mod naive;
mod properties;
mod resources;
mod shapes;
mod universe;
mod written;
