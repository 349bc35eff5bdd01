//! The node's network: a process that owns its namespaces, and what it is asked.
