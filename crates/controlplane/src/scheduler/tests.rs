//! One rule each, seen from outside: objects in, decisions out.

mod filters;
mod support;
