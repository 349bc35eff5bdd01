//! Model and agent take the same steps: the story is told here with the model, and in the tests of the command with real servers; what
//! each instance's agent does is in `tests/story.txt` for both.

use super::campaign_test::Database;
use windlass_testing::TestCluster;

/// What the agents of `NAME-0`, `NAME-1`, ... do.
const STORY: &str = include_str!("../../../tests/story.txt");

#[tokio::test]
async fn the_model_takes_the_steps_that_an_agent_takes() -> anyhow::Result<()> {
    let cluster = TestCluster::start();
    cluster.install(crate::crds()).await?;
    let _operator = cluster.run(|manager| crate::operator(manager, "sampledb-operator:test"));
    let database = Database::create(cluster).await?;
    database.switch_over_to("db-1").await?;
    database.is_ready("3/3").await?;
    let mut lines: Vec<String> = Vec::new();
    for instance in ["db-0", "db-1", "db-2"] {
        let steps = database.instances.steps.lock();
        let own = steps.iter().filter(|(name, _)| name == instance);
        let mut own: Vec<String> = own.map(|(_, step)| step.clone()).collect();
        // Whether a replica is connected by the time that its agent looks again is a matter of time.
        let mut before = String::new();
        own.retain(|step| {
            let follows = step.strip_prefix("Follow(").and_then(|step| step.strip_suffix(')'));
            let again = follows.is_some_and(|whom| before == format!("Start {{ follow: {whom} }}"));
            before.clone_from(step);
            !again
        });
        lines.extend(own.iter().map(|step| format!("{instance} {step}")));
    }
    database.instances.end();
    let told: Vec<&str> = STORY.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(lines, told, "{lines:#?}");
    Ok(())
}
