//! Quantities, resource vectors, durations, cron and percentages with exactly the semantics Kubernetes and
//! Karpenter give them. Pure: no clock, no I/O, no Kubernetes types.
