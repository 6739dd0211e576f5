//! Pods, and the pod templates inside workloads.
