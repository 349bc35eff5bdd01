//! The embedded Kubernetes API: registry, request path and HTTP, in one process and without kube-rs.
//!
//! Where to start reading: [`Api`] makes a server and [`ApiService`] answers a request. `service` routes it to its verb
//! (`verbs`), and `flow` holds the steps of a write in their order. From the ground up, where a module uses only those above it:
//!
//! | module | what it is |
//! |---|---|
//! | `status`, `object`, `typed`, `facts` | errors; objects as JSON; Go's types and what is known of the built-in ones |
//! | `x509` | certificates, and requests for them |
//! | `request` | what a request says: identity, path, query, options, media types |
//! | `crd`, `kinds` | what is special about CustomResourceDefinitions and the other built-in kinds: defaults, validation, rules |
//! | `protobuf`, `read`, `table` | what get, list and watch answer, in which form |
//! | `credentials`, `dial` | the certificates and keys of a server; connections to kubelets and pods |
//! | `config_file`, `jwt`, `client` | configuration files, signed tokens, requests to others over HTTPS |
//! | `webhook_client`, `conversion_webhook` | how webhooks are called; those that convert custom resources between versions |
//! | `resource`, `registry` | which resources are served |
//! | `following` | indexes that follow the store |
//! | `authorization` | who may do what: Node, RBAC and webhooks |
//! | `flow_control` | whose requests wait when there are too many |
//! | `faults` | what goes wrong on purpose |
//! | `admission_plugins`, `match_resources` | the names of admission plug-ins; which requests webhooks and policies are about |
//! | `admission_webhooks`, `admission_policies` | the webhooks that are configured, and how they are asked; policies, and what they decide |
//! | `authentication`, `accounts` | tokens, and those of service accounts |
//! | `aggregation` | APIServices, and the extension API servers that they lead to |
//! | `http` | bodies and responses |
//! | `audit` | who asked for what, as a policy says |
//! | `state`, `operation` | what all requests share; one request, and one write, on its way |
//! | `admission` | the admission plug-ins |
//! | `flow` | the steps of a write: authenticate to commit |
//! | `aggregator` | asks extension API servers whether they are available, and what they serve |
//! | `verbs` | get, list, watch, create, update, patch, delete, and subresources with verbs of their own |
//! | `connect`, `metrics`, `openapi`, `discovery` | what is not stored: kubelets' streams, `metrics.k8s.io`, documents |
//! | `service`, `serve`, `bootstrap`, `api` | HTTP in process, over TLS, and the API as a whole |
//!
//! Built-in kinds are data: tables of rows about Go structs, read by one generic path that serves every kind, built-in or
//! custom. All walks go by the fields that an object has, not by the many that its type could have.
//!
//! Clients that mean harm, or are many, are tested against the command as a process, whose memory is measured meanwhile:
//! `crates/cli/tests/command`, `idle_clients.rs`, `slow_clients.rs` and `http2_floods.rs`.

mod accounts;
mod admission;
mod admission_plugins;
mod admission_policies;
mod admission_webhooks;
mod aggregation;
mod aggregator;
mod api;
mod audit;
mod authentication;
mod authorization;
mod bootstrap;
mod client;
mod config_file;
mod connect;
mod conversion_webhook;
mod crd;
pub mod credentials;
mod dial;
mod discovery;
mod facts;
pub mod faults;
mod flow;
mod flow_control;
mod following;
mod http;
mod jwt;
mod kinds;
mod match_resources;
mod metrics;
mod object;
mod openapi;
mod operation;
pub mod protobuf;
pub mod read;
mod registry;
mod request;
pub mod resource;
mod serve;
mod service;
mod state;
pub mod status;
mod table;
mod typed;
mod verbs;
mod webhook_client;
mod x509;

pub use admission::QuotaUsage;
pub use admission_plugins::{AdmissionPlugin, InvalidPlugin};
pub use admission_policies::ExpressionWarning;
pub use api::{Api, Config, ResourceAccess};
pub use audit::{AuditConfig, AuditLog, AuditPolicy, InvalidAuditPolicy};
pub use authentication::{
    AnonymousCondition, AnonymousConfiguration, Authentication, AuthenticationConfiguration,
    InvalidTokenFile, JwtAuthenticator, OidcFlags, RequestHeader, ServiceAccountIssuer, StaticTokens,
};
pub use authorization::{AuthorizationConfiguration, AuthorizationMode, WebhookAuthorizer};
pub use bootstrap::BootstrapObject;
pub use config_file::InvalidConfigFile;
pub use credentials::Credentials;
pub use dial::{Dial, insecure_tls};
pub use discovery::VERSION as KUBERNETES_VERSION;
pub use http::ApiBody;
pub use kinds::service_range::{InvalidRange, ServiceClusterIpRange};
pub use read::Pieces;
pub use request::Identity;
pub use resource::Resource;
pub use serve::{Serving, Subject, TlsIdentity, subject_of};
pub use service::ApiService;
pub use status::Status;
pub use windlass_store as store;
pub use x509::{CertificateRequest, InvalidCertificateRequest, UnknownUsage, certificate_expires};
