//! DELETE: an object, or many.

use super::deleted;
use super::read::{encoded, scope};
use crate::flow::delete::{Deletion, delete_one};
use crate::flow::delete_options::DeleteOptions;
use crate::http::Answer;
use crate::operation::Call;
use crate::read::ListOptions;
use crate::request::write_options::WriteOptions;
use crate::status::Status;
use futures::FutureExt;
use futures::future::try_join_all;
use windlass_store::Key;

/// Deletions of one request that wait for the disk at once.
const AT_ONCE: usize = 64;

pub(crate) async fn delete(call: &Call<'_>) -> Result<Answer, Status> {
    let options = DeleteOptions::read(&call.query, &call.content_type, &call.body)?;
    let operation = call.operation(write_options(&options));
    let name = operation.name.clone();
    match delete_one(&operation, &name, &options).await? {
        Deletion::Pending(outcome) => {
            let code = if options.cascades { 202 } else { 200 };
            super::answer(&outcome, call, code).await
        }
        Deletion::Done { shown: Some(shown), .. } => Ok(Answer::json(200, &shown)),
        Deletion::Done { uid, shown: None } => Ok(Answer::json(200, &deleted(&call.resource, &name, &uid))),
    }
}

/// Deletes what the selectors accept, and answers with what that was.
pub(crate) async fn delete_collection(call: &Call<'_>) -> Result<Answer, Status> {
    let options = DeleteOptions::read(&call.query, &call.content_type, &call.body)?;
    let list = ListOptions::parse(call.query.pairs())?;
    let scope = scope(call, &list)?;
    let page = crate::read::page(&call.api.store, &scope, &list).await?;
    // Each waits until it is durable: together they wait once.
    for some in page.items.chunks(AT_ONCE) {
        let mut deletions = Vec::with_capacity(some.len());
        for item in some {
            deletions.push(delete_listed(call, item.key().clone(), options.clone()).boxed());
        }
        try_join_all(deletions).await?;
    }
    let (view, media) = encoded(call);
    let list = view.list(&crate::read::metadata(&scope, &page, &view), &page.items);
    Ok(Answer::pieces(200, list, media))
}

/// Deletes one of many; one that is gone by now is deleted.
async fn delete_listed(call: &Call<'_>, key: Key, options: DeleteOptions) -> Result<(), Status> {
    let mut operation = call.operation(write_options(&options));
    operation.namespace = key.namespace.to_string();
    match delete_one(&operation, &key.name, &options).await {
        Err(status) if status.reason == "NotFound" => Ok(()),
        done => done.map(drop),
    }
}

fn write_options(options: &DeleteOptions) -> WriteOptions {
    WriteOptions { manager: String::new(), ..WriteOptions::of_server(options.dry_run) }
}
