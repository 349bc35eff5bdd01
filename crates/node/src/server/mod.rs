//! The HTTPS server of a node: what the API server asks a kubelet for.
