//! The Kubernetes API of Karpenter: custom resource types, their CRDs, every observable name, status
//! conditions, drift hashes and runtime validation.
