//! Patches of all four kinds, and who owns which field.
