//! The retry of the compare-and-swap that updates and patches run in: read, change, admit, prepare, validate, commit, and
//! again if someone else committed first. Every step runs once per attempt, on the object as it was read in that attempt.

use super::create::store_new;
use super::{
    api_services, authorize, commit, convert, crd_lifecycle, encode, escalation, managed, mutating_admission,
    policy_params, prepare, validate, validating_admission,
};
use crate::authorization::{Attributes, On, ResourceAttributes};
use crate::object::{at, child, text};
use crate::operation::{Operation, Outcome};
use crate::resource::Resource;
use crate::status::{MODIFIED, Status, causes};
use serde_json::{Value, json};
use windlass_schema::apply::keep_times_if_unchanged;
use windlass_schema::field::{FieldError, Path};
use windlass_store::{CommitError, Entry};

/// The number of attempts of a write that others conflict with: far more than contention brings about.
pub(crate) const ATTEMPTS: usize = 1000;

/// 409 for a write that lost every time.
pub(crate) fn contended(resource: &Resource, name: &str) -> Status {
    Status::conflict(resource.named(), name, MODIFIED)
}

/// What a write asks of the object as it is.
#[derive(Default)]
pub(crate) struct Preconditions {
    /// May it create what is not there?
    pub(crate) may_create: bool,
    /// The UID that the object must have; empty for any.
    pub(crate) uid: String,
}

/// What a request makes of an object.
pub(crate) trait Change {
    /// The object that is to be, managed fields included; or, of one that is seen through a view, the view.
    fn make(&mut self, live: Option<&Value>) -> Result<Value, Status>;

    /// Through what it is seen, if not as it is.
    fn view(&self) -> Option<&dyn View> {
        None
    }
}

impl<F: FnMut(Option<&Value>) -> Result<Value, Status>> Change for F {
    fn make(&mut self, live: Option<&Value>) -> Result<Value, Status> {
        self(live)
    }
}

/// An object as a subresource shows it, such as its scale.
pub(crate) trait View: Sync {
    /// What is shown of the object before it is changed.
    fn before(&self, live: &Value) -> Result<Value, Status>;

    /// What is shown of an object that is about to be stored, or was.
    fn shown(&self, object: &Value) -> Result<Value, Status>;

    /// The object with what was made of its view.
    fn write(&self, live: &Value, view: Value) -> Result<Value, Status>;
}

/// Changes the object that `operation` names, managed fields included; again if someone else came first. Returns whether it
/// was created.
pub(crate) async fn guaranteed_update(
    operation: &Operation<'_>,
    preconditions: &Preconditions,
    mut change: impl Change,
) -> Result<(Outcome, bool), Status> {
    let (resource, name) = (&operation.resource, operation.name.as_str());
    let key = operation.key(name);
    for attempt in 0..ATTEMPTS {
        if attempt > 0 {
            operation.in_time()?;
        }
        let Some(entry) = operation.api.store.get(&key) else {
            if !preconditions.may_create {
                return Err(Status::not_found(resource.named(), name));
            }
            if !preconditions.uid.is_empty() {
                return Err(wrong_uid(operation, &preconditions.uid, ""));
            }
            let mut object = managed::converting(operation, || change.make(None)).await?;
            if !operation.options.dry_run {
                // There is nothing yet that it could be a version of.
                child(&mut object, "metadata").remove("resourceVersion");
            }
            may_create(operation).await?;
            match store_new(operation, object).await {
                // Someone else created it first: then it is an update after all.
                Err(status)
                    if status.reason == "AlreadyExists" && operation.api.store.get(&key).is_some() =>
                {
                    continue;
                }
                outcome => return outcome.map(|outcome| (outcome, true)),
            }
        };
        if !preconditions.uid.is_empty() && preconditions.uid != entry.uid() {
            return Err(wrong_uid(operation, &preconditions.uid, entry.uid()));
        }
        let live = convert::from_storage(operation, &entry).await?;
        let mut new = managed::converting(operation, || change.make(Some(&live))).await?;
        match change.view() {
            None => mutating_admission::mutate(operation, &mut new, Some(&live)).await?,
            Some(view) => {
                mutating_admission::mutate_view(operation, &mut new, Some(&view.before(&live)?)).await?;
                new = view.write(&live, new)?;
                mutating_admission::plug_ins(operation, &mut new, Some(&live)).await?;
            }
        }
        escalation::check(operation, &new, Some(&live)).await?;
        check_version(operation, &mut new, &entry)?;
        prepare::update(operation, &mut new, &live);
        validate::update(operation, &new, &live)?;
        policy_params::check(operation, &new, Some(&live)).await?;
        operation.warn(validate::warnings(operation, &new, Some(&live)));
        match change.view() {
            None => validating_admission::validate(operation, &new, Some(&live)).await?,
            Some(view) => {
                let (shown, before) = (view.shown(&new)?, view.shown(&live)?);
                validating_admission::validate_view(operation, (&new, &live), (&shown, &before)).await?;
            }
        }
        if let Some(rules) = resource.rules.filter(|_| operation.subresource.is_empty()) {
            (rules.allocate)(&operation.rule_context(), &mut new, Some(&live))?;
        }
        keep_times_if_unchanged(&live, &mut new);
        if is_finalized(operation, &new, &live) {
            let shown = encode::dry_run(operation, new).await?;
            if operation.options.dry_run {
                return Ok((Outcome::Unstored(shown), false));
            }
            match commit::delete(operation, name, entry.revision()).await {
                Ok(_) => {
                    crd_lifecycle::deleted(operation, name).await;
                    api_services::deleted(operation, name).await;
                    return Ok((Outcome::Unstored(shown), false));
                }
                Err(CommitError::Missing) => return Ok((Outcome::Unstored(shown), false)),
                Err(error @ CommitError::NotStored(_)) => return Err(Status::internal(error)),
                Err(_) => continue,
            }
        }
        if operation.options.dry_run {
            return Ok((Outcome::Unstored(encode::dry_run(operation, new).await?), false));
        }
        let body = encode::update(operation, &entry, &new).await?;
        match commit::update(operation, name, entry.revision(), body).await {
            Ok(stored) => {
                crd_lifecycle::changed(operation, name).await;
                api_services::changed(operation, name).await;
                return Ok((Outcome::Stored(stored), false));
            }
            Err(CommitError::Conflict(_) | CommitError::Missing) => {}
            Err(error) => return Err(Status::internal(error)),
        }
    }
    Err(contended(resource, name))
}

/// Who updates or applies what is not there creates it, and needs the right to.
async fn may_create(operation: &Operation<'_>) -> Result<(), Status> {
    let on = ResourceAttributes {
        group: &operation.resource.group,
        version: &operation.resource.version,
        resource: &operation.resource.plural,
        subresource: &operation.subresource,
        namespace: &operation.namespace,
        name: &operation.name,
        ..ResourceAttributes::default()
    };
    let asked = Attributes { identity: operation.identity, verb: "create", on: On::Resource(on) };
    authorize::permitted(&operation.api.authorizer, &asked).await
}

/// The version that the writer saw must be the one that is there; some kinds need none.
fn check_version(operation: &Operation<'_>, new: &mut Value, entry: &Entry) -> Result<(), Status> {
    let (resource, name) = (&operation.resource, operation.name.as_str());
    let given = text(new, &["metadata", "resourceVersion"]);
    let version: u64 = match given {
        "" => 0,
        text => text
            .parse()
            .map_err(|_| Status::plain(format!("strconv.ParseUint: parsing {text:?}: invalid syntax")))?,
    };
    if version == 0 {
        if !resource.rules.is_some_and(|rules| rules.unconditional_update) {
            let path = Path::new("metadata").child("resourceVersion");
            let error = FieldError::invalid(&path, 0, "must be specified for an update");
            return Err(Status::invalid(resource.named(), name, causes(&[error])));
        }
        child(new, "metadata").insert("resourceVersion".to_owned(), json!(entry.revision().to_string()));
    } else if version != entry.revision().0 {
        return Err(Status::conflict(resource.named(), name, MODIFIED));
    }
    Ok(())
}

fn wrong_uid(operation: &Operation<'_>, wanted: &str, found: &str) -> Status {
    wrong_precondition(operation, "UID", wanted, found)
}

/// 409 for a write that asked for another object, or another version of it: `what` is `UID` or `ResourceVersion`.
pub(crate) fn wrong_precondition(operation: &Operation<'_>, what: &str, wanted: &str, found: &str) -> Status {
    let (resource, name) = (&operation.resource, operation.name.as_str());
    let kept = kept_at(resource);
    let place = match operation.namespace.as_str() {
        "" => name.to_owned(),
        namespace => format!("{namespace}/{name}"),
    };
    // A dry run does not get as far as the storage.
    let root = if operation.options.dry_run { "" } else { "/registry" };
    let why = format!(
        "StorageError: invalid object, Code: 4, Key: {root}/{kept}/{place}, ResourceVersion: 0, \
         AdditionalErrorMsg: Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {found}"
    );
    Status::conflict(resource.named(), name, &why)
}

/// Where the reference keeps the objects of a resource: some names are older than the API.
fn kept_at(resource: &Resource) -> String {
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "services") => "services/specs".to_owned(),
        ("", "endpoints") => "services/endpoints".to_owned(),
        ("", "replicationcontrollers") => "controllers".to_owned(),
        ("", "nodes") => "minions".to_owned(),
        ("networking.k8s.io", "ingresses") => "ingress".to_owned(),
        (group @ ("apiextensions.k8s.io" | "apiregistration.k8s.io"), plural) => format!("{group}/{plural}"),
        (group, plural) if resource.custom => format!("{group}/{plural}"),
        (_, plural) => plural.to_owned(),
    }
}

/// Does this update take away the last thing that kept a deleted object?
fn is_finalized(operation: &Operation<'_>, new: &Value, old: &Value) -> bool {
    let finalizers =
        |pointer: &str| new.pointer(pointer).and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    let namespace = operation.resource.group.is_empty() && operation.resource.plural == "namespaces";
    let grace = at(old, &["metadata", "deletionGracePeriodSeconds"]).and_then(Value::as_i64).unwrap_or(0);
    let held = finalizers("/metadata/finalizers") || (namespace && finalizers("/spec/finalizers"));
    let deleted = !text(old, &["metadata", "deletionTimestamp"]).is_empty();
    deleted && !held && grace == 0
}
