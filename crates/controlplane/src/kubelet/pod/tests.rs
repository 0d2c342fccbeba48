//! Decisions of this controller.
