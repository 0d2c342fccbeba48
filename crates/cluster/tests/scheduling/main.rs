//! What pods, pools and nodes written as Kubernetes objects lead to: conversion and solver together.
//!
//! The numbers above the tests are those of the rows in `docs/behaviours.md`.

mod daemon_sets;
mod existing_nodes;
mod limits;
mod machines;
mod node_constraints;
mod objects;
mod outcome;
mod packing;
mod pod_resources;
mod relaxation;
mod table;
mod world;
