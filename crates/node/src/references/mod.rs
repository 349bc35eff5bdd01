//! What a pod's spec refers to, resolved: ConfigMaps and Secrets, service account tokens, the downward API and `$(NAME)`.
//! Volumes and the environment of containers are made of it.

pub(crate) mod downward_api;
pub(crate) mod ephemeral_containers;
pub(crate) mod expand;
pub(crate) mod objects;
pub(crate) mod service_account_token;
pub(crate) mod watch;
