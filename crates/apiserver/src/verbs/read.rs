//! GET: an object, a list or a watch.

use super::scale;
use crate::flow::convert::{self, Converter};
use crate::http::Answer;
use crate::http::ApiBody;
use crate::kinds;
use crate::operation::Call;
use crate::read::{
    self, EntryConverter, Filter, ListOptions, MetadataOnly, Scope, Shape, View, WatchControl,
};
use crate::read::{METADATA_ONLY, Message};
use crate::request::media::Media;
use crate::request::media::accept::{Form, Negotiated};
use crate::resource::Resource;
use crate::status::Status;
use crate::table::{Include, Table};
use std::sync::Arc;
use windlass_schema::json;
use windlass_schema::meta::NameRule;
use windlass_schema::selector::{Fields, Labels};
use windlass_store::{Entry, Key};

/// How a resource's objects are shown.
pub(crate) fn view(resource: &Resource) -> View {
    let view = View::stored(&resource.api_version(), &resource.kind, &resource.list_kind, resource.custom);
    // What is selected in this version comes in this version.
    let as_it_is = !resource.custom || resource.pristine || resource.selects_converted();
    if resource.shape.is_none() && as_it_is {
        return view.with_blank(resource.blank());
    }
    let name = format!("{} {}", resource.api_version(), resource.stamp);
    let resource = Arc::new(resource.clone());
    view.transformed(
        &name,
        Arc::new(move |entry: &Entry| json::write(&convert::stored(&resource, entry.value())).into()),
    )
}

/// The same in the form and the encoding that were asked for, if they suit what is answered.
fn shaped(call: &Call<'_>, view: View, list: bool) -> Result<View, Status> {
    let view = match shape(call, list)? {
        Some(shape) => view.shaped(shape),
        None => view,
    };
    Ok(if call.negotiated.media == Media::Protobuf { view.in_protobuf(message(call)) } else { view })
}

/// A resource's objects as a request sees them that wants nothing special of them but an encoding.
pub(crate) fn encoded(call: &Call<'_>) -> (View, Media) {
    match call.negotiated {
        Negotiated { media: Media::Protobuf, form: Form::Plain, .. } => {
            (view(&call.resource).in_protobuf(message(call)), Media::Protobuf)
        }
        _ => (view(&call.resource), Media::Json),
    }
}

fn message(call: &Call<'_>) -> Message {
    let resource = &call.resource;
    match call.negotiated.form {
        Form::Metadata(api_version) | Form::MetadataList(api_version) => Message {
            definition: METADATA_ONLY.to_owned(),
            api_version: api_version.to_owned(),
            kind: "PartialObjectMetadata".to_owned(),
            list_kind: "PartialObjectMetadataList".to_owned(),
        },
        Form::Plain | Form::Table(_) | Form::Discovery => Message {
            definition: resource.definition.clone(),
            api_version: resource.api_version(),
            kind: resource.kind.clone(),
            list_kind: resource.list_kind.clone(),
        },
    }
}

/// The encoding that [`shaped`] gives.
fn media(call: &Call<'_>) -> Media {
    if call.negotiated.media == Media::Protobuf { Media::Protobuf } else { Media::Json }
}

/// The form that was asked for, unless it is the plain one.
///
/// # Errors
/// 406 for a list's form of an object and the other way round; 400 for a table's options that are none.
pub(crate) fn shape(call: &Call<'_>, list: bool) -> Result<Option<Arc<dyn Shape>>, Status> {
    let resource = match call.target.subresource.as_deref() {
        Some("scale") => &*scale::SCALE,
        _ => &call.resource,
    };
    let go_type = |suffix: &str| match resource.custom {
        true => format!("*unstructured.Unstructured{suffix}"),
        false => format!("*{}.{}{suffix}", kinds::package(&resource.group), resource.kind),
    };
    match (call.negotiated.form, list) {
        (Form::Plain | Form::Discovery, _) => Ok(None),
        (Form::Table(api_version), _) => {
            let include = match call.query.get("includeObject").unwrap_or_default() {
                "" | "Metadata" => Include::Metadata,
                "Object" => Include::Object,
                "None" => Include::Nothing,
                other => {
                    return Err(Status::bad_request(format!(
                        "Unable to convert to Table as requested: includeObject: Invalid value: {other:?}: must be \
                         'Metadata', 'Object', 'None', or empty"
                    )));
                }
            };
            let clock = &call.api.clock;
            Ok(Some(Arc::new(match resource.custom {
                true => Table::custom(resource.columns.clone(), api_version, include, clock),
                false => Table::built_in((&resource.group, &resource.plural), api_version, include, clock),
            })))
        }
        (Form::Metadata(api_version), false) | (Form::MetadataList(api_version), true) => {
            Ok(Some(Arc::new(MetadataOnly { api_version })))
        }
        (Form::Metadata(_), true) => Err(Status::not_transformable(format!(
            "you requested PartialObjectMetadata, but the requested object is a list ({})",
            go_type("List")
        ))),
        (Form::MetadataList(_), false) if resource.custom => Err(Status::plain("content is not a list")),
        (Form::MetadataList(_), false) => Err(Status::not_transformable(format!(
            "you requested PartialObjectMetadataList, but the requested object is not a list ({})",
            go_type("")
        ))),
    }
}

pub(crate) async fn get(call: &Call<'_>) -> Result<Answer, Status> {
    let resource = &call.resource;
    let name = call.target.name.as_deref().unwrap_or_default();
    let key = Key::new(resource.storage_key(), call.target.namespace.as_deref().unwrap_or_default(), name);
    let version = call.query.get("resourceVersion").unwrap_or_default();
    let scope = Scope::new(key.resource.clone(), None)
        .with_ceiling(call.ceiling)
        .without_cache(resource.rules.is_some_and(|rules| rules.uncached))
        .with_converter(converter(call, false));
    match read::get(&call.api.store, &key, version, &scope).await? {
        Some(entry) => {
            let body = shaped(call, view(resource), false)?.object(&entry);
            Ok(Answer { media: media(call), ..Answer::new(200, body) })
        }
        None => Err(Status::not_found(resource.named(), name)),
    }
}

pub(crate) async fn list_or_watch(call: &Call<'_>) -> Result<Answer, Status> {
    let options = ListOptions::parse(call.query.pairs())?;
    let scope = scope(call, &options)?;
    let view = shaped(call, view(&call.resource), !options.watch)?;
    if !options.watch {
        let body = read::list(&call.api.store, &scope, &options, &view).await?;
        return Ok(Answer::pieces(200, body, media(call)));
    }
    let control = call.control.clone().unwrap_or_default();
    let control = WatchControl { ended: call.resource.ended.clone(), ..control };
    let body = read::watch(&call.api.store, scope, &options, Arc::new(view), control).await?;
    let body = ApiBody::watch(body, call.ended.clone());
    Ok(Answer { name: String::new(), code: 200, body, media: media(call) })
}

/// Which objects the path and the selectors of a request are about.
pub(crate) fn scope(call: &Call<'_>, options: &ListOptions) -> Result<Scope, Status> {
    let resource = &call.resource;
    let labels =
        Labels::parse(&options.label_selector).map_err(|error| Status::bad_request(error.to_string()))?;
    let fields =
        Fields::parse(&options.field_selector).map_err(|error| Status::bad_request(error.to_string()))?;
    let fields = fields.renamed(|asked| resource.kept_as(asked))?;
    let narrow = narrowed(call, options, &fields);
    let filter: Option<Filter> = (!labels.is_empty() || !fields.is_empty()).then(|| {
        let filter: Filter = Arc::new(move |entry: &Entry| {
            labels.matches(|name| entry.label(name)) && fields.matches(|name| entry.field(name))
        });
        filter
    });
    let scope = Scope::new(resource.storage_key(), narrow.0.as_deref()).with_name(narrow.1.as_deref());
    let uncached = resource.rules.is_some_and(|rules| rules.uncached);
    let converter = converter(call, options.watch);
    Ok(scope.with_filter(filter).with_ceiling(call.ceiling).without_cache(uncached).with_converter(converter))
}

/// Who brings stored objects into the version of a request, if somebody must.
fn converter(call: &Call<'_>, watches: bool) -> Option<Arc<dyn EntryConverter>> {
    if !call.resource.selects_converted() {
        return None;
    }
    let deadline = (!watches).then_some(call.deadline);
    let converter = Converter::new(call.api, &call.resource, deadline);
    Some(Arc::new(match watches {
        true => converter.until(call.resource.ended.clone()),
        false => converter,
    }))
}

/// The namespace and the name that a request can only be about, by its path or its field selector. A page that goes on
/// is read as it was begun.
fn narrowed(call: &Call<'_>, options: &ListOptions, fields: &Fields) -> (Option<String>, Option<String>) {
    let path = call.target.namespace.clone();
    if !options.continue_token.is_empty() {
        return (path, None);
    }
    let exact = |field: &str, rule: NameRule| {
        fields
            .exact(field)
            .filter(|value| !value.is_empty() && rule.check(value).is_empty())
            .map(str::to_owned)
    };
    let namespaced = call.resource.namespaced;
    let namespace = path.or_else(|| exact("metadata.namespace", NameRule::Label).filter(|_| namespaced));
    let name = exact("metadata.name", NameRule::PathSegment).filter(|_| !namespaced || namespace.is_some());
    (namespace, name)
}
