//! Lives of pods, with real programs.

use super::ground::{Ground, Test, status};
use futures::FutureExt;
use serde_json::json;

pub(crate) const ALL: &[(&str, Test)] =
    &[("a_pod_ends_by_its_exit_code_and_its_log_is_kept", |ground| exit_code(ground).boxed())];

async fn exit_code(ground: &Ground) -> anyhow::Result<()> {
    let pod = ground
        .run("ends", json!({"restartPolicy": "Never", "containers": [
            {"name": "main", "image": "busybox", "command": ["sh", "-c", "echo hello from $(hostname); exit 3"]},
        ]}))
        .await?;
    let ended = ground.until_phase("ends", "Failed").await?;
    let terminated = status(&ended, "main").state.and_then(|state| state.terminated).unwrap_or_default();
    assert_eq!((terminated.exit_code, terminated.reason.as_deref()), (3, Some("Error")));
    assert_eq!(ground.log(&pod, "main", 0)?, "hello from ends\n");
    ground.delete("ends").await?;
    ground.until_gone("ends").await
}
