//! A Kubernetes cluster inside a test.
