//! Recipes: which programs of the machine stand for an image.

use super::{Image, ImageError, ImageRoot, ImageUser, MadeFolder, Name};
use crate::shim::ImageFile;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// What of the machine every recipe shows, where it is there: programs, libraries, and what they need to find each other.
const SYSTEM: [&str; 17] = [
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/usr",
    "/nix/store",
    "/etc/alternatives",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/protocols",
    "/etc/services",
    "/etc/ssl",
];
/// Where a recipe's own programs and scripts are in the container.
const OWN_PROGRAMS: &str = "/windlass/bin";
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A file of recipes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipes {
    /// By the image's name, without tag, and without `docker.io/library/`.
    pub images: BTreeMap<String, Recipe>,
}

impl Recipes {
    /// Reads a file of recipes.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn read(text: &str) -> Result<BTreeMap<String, Recipe>, String> {
        serde_saphyr::from_str::<Self>(text).map(|recipes| recipes.images).map_err(|error| error.to_string())
    }
}

/// What stands for an image.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
pub struct Recipe {
    /// Programs that must be there, by name or path.
    pub needs: Vec<String>,
    /// What to do where they are not.
    pub install: Option<String>,
    /// Folders of programs that come first in `PATH`. A `*` stands for a version: the one of the image's tag, or the newest where
    /// the tag names none.
    pub programs: Vec<String>,
    /// What prints the version, which is then that of the image's tag or the image is not there.
    pub version: Vec<String>,
    /// Further paths of the machine to show.
    pub shows: Vec<PathBuf>,
    /// An archive or an unpacked root file system to use instead of the machine's programs.
    pub root: Option<PathBuf>,
    /// Only this program is shown, under all its names, as in the image of that name.
    pub applets: Option<String>,
    /// What is run first.
    pub entrypoint: Vec<String>,
    /// What is run where the container says nothing.
    pub command: Vec<String>,
    /// Its environment.
    pub environment: BTreeMap<String, String>,
    /// Users it has, by name.
    pub users: BTreeMap<String, Account>,
    /// As which of them it runs.
    pub user: Option<String>,
    /// Where it starts.
    pub folder: Option<PathBuf>,
    /// Folders it has.
    pub folders: Vec<Folder>,
    /// Files it has.
    pub files: Vec<TextFile>,
    /// The signal that asks it to end.
    pub stop_signal: Option<String>,
}

/// A user of an image.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Account {
    /// Its number, and that of its group.
    pub number: u32,
    /// Its home.
    pub home: Option<String>,
}

/// A folder of an image.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Folder {
    /// Where.
    pub path: PathBuf,
    /// Who may what, in octal digits.
    pub mode: Option<String>,
    /// Whose it is: one of the recipe's users.
    pub owner: Option<String>,
}

/// A file of an image.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TextFile {
    /// Where; a bare name is a program of its own, found by name.
    pub path: PathBuf,
    /// What is in it.
    pub text: String,
}

/// The recipes that come along.
pub fn built_in() -> &'static BTreeMap<String, Recipe> {
    static RECIPES: OnceLock<BTreeMap<String, Recipe>> = OnceLock::new();
    RECIPES.get_or_init(|| {
        let mut recipes = Recipes::read(include_str!("recipes/recipes.yaml")).expect("a test reads them");
        let entrypoints =
            [("postgres", include_str!("recipes/postgres.sh")), ("redis", include_str!("recipes/redis.sh"))];
        for (name, text) in entrypoints {
            let recipe = recipes.get_mut(name).expect("a test finds it");
            recipe.files.push(TextFile { path: "docker-entrypoint.sh".into(), text: text.into() });
        }
        recipes
    })
}

impl Recipe {
    /// The image it makes, for this name.
    pub(super) fn image(&self, image: &str, name: &Name, store: &Path) -> Result<Image, ImageError> {
        let broken = |why: String| ImageError::Broken { image: image.to_owned(), why };
        let missing = |there: String| ImageError::Version {
            image: image.to_owned(),
            there,
            hint: self.install.clone().unwrap_or_else(|| "install it".into()),
        };
        let folders = self.program_folders(name.tag()).map_err(missing)?;
        let path = folders.iter().map(|folder| folder.display().to_string()).chain([PATH.to_owned()]);
        let path = std::iter::once(OWN_PROGRAMS.to_owned()).chain(path).collect::<Vec<_>>().join(":");
        for program in self.needs.iter().chain(&self.applets) {
            find(program, &folders).ok_or_else(|| ImageError::Program {
                image: image.to_owned(),
                program: program.clone(),
                hint: self.install.clone().unwrap_or_else(|| "install it".into()),
            })?;
        }
        let version = self.installed_version(&folders).map_err(broken)?;
        if let Some(version) = &version
            && !numbers(version).starts_with(&numbers(name.tag()))
        {
            return Err(missing(version.clone()));
        }
        let mut environment = BTreeMap::from([("PATH".to_owned(), path)]);
        environment.extend(self.environment.clone());
        let mut made = match (&self.root, &self.applets) {
            (Some(root), _) => super::archive::image(root, store).map_err(broken)?,
            (None, Some(program)) => {
                let program = find(program, &folders).expect("it was found above");
                super::layers::applets(&program, store).map_err(|error| broken(error.to_string()))?
            }
            (None, None) => self.of_machine(&folders),
        };
        made.version = version;
        made.id = format!(
            "recipe://{}{}",
            name.familiar(),
            folders.first().map_or_else(String::new, |at| at.display().to_string())
        );
        if !self.entrypoint.is_empty() || !self.command.is_empty() {
            (made.entrypoint, made.command) = (self.entrypoint.clone(), self.command.clone());
        }
        for (key, value) in environment {
            if self.root.is_none() || self.environment.contains_key(&key) {
                made.environment.retain(|(known, _)| *known != key);
                made.environment.push((key, value));
            }
        }
        made.folder = self.folder.clone().or(made.folder);
        made.folders =
            self.folders.iter().map(|folder| self.made(folder)).collect::<Result<_, _>>().map_err(broken)?;
        made.files.extend(self.written(name, store).map_err(|error| broken(error.to_string()))?);
        if let Some(user) = &self.user {
            let account = self.users.get(user).ok_or_else(|| broken(format!("it has no user {user}")))?;
            made.user = Some(ImageUser {
                user: Some(account.number),
                group: Some(account.number),
                name: Some(user.clone()),
            });
        }
        if let Some(signal) = &self.stop_signal {
            made.stop_signal =
                signal_number(signal).ok_or_else(|| broken(format!("{signal} is no signal")))?;
        }
        Ok(made)
    }

    fn of_machine(&self, folders: &[PathBuf]) -> Image {
        let system = SYSTEM.iter().map(PathBuf::from).chain(self.shows.iter().cloned());
        let mut shown: Vec<PathBuf> = system.filter(|path| path.symlink_metadata().is_ok()).collect();
        let extra =
            folders.iter().filter(|folder| !shown.iter().any(|path| folder.starts_with(path))).cloned();
        let extra: Vec<_> = extra.collect();
        shown.extend(extra);
        let (mut users, mut groups) = (String::new(), String::new());
        let root = ("root".to_owned(), Account { number: 0, home: Some("/root".into()) });
        let nobody = ("nobody".to_owned(), Account { number: 65534, home: None });
        for (name, account) in [root].into_iter().chain(self.users.clone()).chain([nobody]) {
            let (number, home) = (account.number, account.home.unwrap_or_else(|| "/".into()));
            users.push_str(&format!("{name}:x:{number}:{number}::{home}:/bin/sh\n"));
            groups.push_str(&format!("{name}:x:{number}:\n"));
        }
        Image { users: Some(users), groups: Some(groups), ..Image::of(ImageRoot::Shown(shown)) }
    }

    fn made(&self, folder: &Folder) -> Result<MadeFolder, String> {
        let mode = folder.mode.as_deref().unwrap_or("755");
        let mode = u32::from_str_radix(mode, 8).map_err(|_| format!("{mode} is no mode of a folder"))?;
        let owner = match &folder.owner {
            Some(name) => self.users.get(name).ok_or_else(|| format!("it has no user {name}"))?.number,
            None => 0,
        };
        Ok(MadeFolder { path: folder.path.clone(), mode, owner })
    }

    /// Keeps the recipe's files where containers are given copies of them. Equal ones are not written again: one may be read just now.
    fn written(&self, name: &Name, store: &Path) -> std::io::Result<Vec<ImageFile>> {
        let folder = store.join("recipes").join(name.familiar().replace('/', "_"));
        let mut files = Vec::new();
        for (number, file) in self.files.iter().enumerate() {
            let from = folder.join(number.to_string());
            if std::fs::read_to_string(&from).ok().as_deref() != Some(&file.text) {
                std::fs::create_dir_all(&folder)?;
                let next = folder.join(format!("{number}.{}", std::process::id()));
                std::fs::write(&next, &file.text)?;
                std::fs::set_permissions(&next, std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
                std::fs::rename(next, &from)?;
            }
            files.push(ImageFile { from, to: Path::new(OWN_PROGRAMS).join(&file.path) });
        }
        Ok(files)
    }

    /// The folders of its programs, or which version is there instead of the tag's.
    fn program_folders(&self, tag: &str) -> Result<Vec<PathBuf>, String> {
        let mut folders = Vec::new();
        for pattern in &self.programs {
            folders.extend(versioned(pattern, tag)?);
        }
        Ok(folders)
    }

    /// The version that its own program prints, if it names one that does; or why it cannot be told.
    fn installed_version(&self, folders: &[PathBuf]) -> Result<Option<String>, String> {
        let Some((program, arguments)) = self.version.split_first() else { return Ok(None) };
        let file = find(program, folders)
            .ok_or_else(|| format!("{program}, which prints its version, is not installed"))?;
        let printed = std::process::Command::new(&file).args(arguments).output();
        let printed = printed.map_err(|error| format!("{} cannot be run: {error}", file.display()))?;
        let printed = String::from_utf8_lossy(&printed.stdout).into_owned();
        let version = printed.split_whitespace().find(|word| !numbers(word).is_empty());
        version
            .map(|version| Some(version.to_owned()))
            .ok_or_else(|| format!("{} printed no version", file.display()))
    }
}

/// The folder that a pattern with a `*` means: of the tag's version, or the newest if the tag names none. Where the tag's is not
/// there, which is the newest that is.
fn versioned(pattern: &str, tag: &str) -> Result<Option<PathBuf>, String> {
    let Some((before, after)) = pattern.split_once('*') else { return Ok(Some(pattern.into())) };
    let Some((folder, start)) = before.rsplit_once('/') else { return Ok(None) };
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(None) };
    let names = entries
        .flatten()
        .filter_map(|entry| Some(entry.file_name().to_str()?.strip_prefix(start)?.to_owned()));
    let there = names.filter(|version| Path::new(&format!("{before}{version}{after}")).is_dir());
    let Some(chosen) = there.max_by_key(|version| newness(version, tag)) else { return Ok(None) };
    if !numbers(tag).is_empty() && !newness(&chosen, tag).0 {
        return Err(chosen);
    }
    Ok(Some(format!("{before}{chosen}{after}").into()))
}

/// The numbers that a version or a tag begins with.
fn numbers(text: &str) -> Vec<u32> {
    text.split(['.', '-']).map_while(|part| part.parse().ok()).collect()
}

/// The tag's own version is above all others; then numbers count, not letters.
fn newness(version: &str, tag: &str) -> (bool, Vec<u32>) {
    let own = numbers(version);
    (!own.is_empty() && numbers(tag).starts_with(&own), own)
}

fn find(program: &str, first: &[PathBuf]) -> Option<PathBuf> {
    let folders = first.iter().cloned().chain(PATH.split(':').map(PathBuf::from));
    folders.map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// The number of a signal by its name or number, as images say it.
pub(super) fn signal_number(signal: &str) -> Option<i32> {
    let name = if signal.starts_with("SIG") { signal.to_owned() } else { format!("SIG{signal}") };
    signal.parse().ok().or_else(|| name.parse::<nix::sys::signal::Signal>().ok().map(|signal| signal as i32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_recipes_that_come_along_can_be_read() {
        let names: Vec<_> = built_in().keys().map(String::as_str).collect();
        assert_eq!(names, ["busybox", "memcached", "nginx", "postgres", "redis"]);
        assert!(built_in()["postgres"].files[0].text.starts_with("#!/bin/sh"));
    }

    #[test]
    fn the_version_of_the_tag_is_taken_and_no_other() {
        let folder = tempfile::tempdir().unwrap();
        for version in ["9.6", "15", "17"] {
            std::fs::create_dir_all(folder.path().join(version).join("bin")).unwrap();
        }
        let pattern = format!("{}/*/bin", folder.path().display());
        let chosen = |tag| {
            versioned(&pattern, tag).unwrap().unwrap().parent().unwrap().file_name().unwrap().to_owned()
        };
        assert_eq!([chosen("15.4-alpine"), chosen("9.6"), chosen("latest")], ["15", "9.6", "17"]);
        assert_eq!(versioned(&pattern, "16"), Err("17".to_owned()));
        assert_eq!(versioned("/no/such/*/bin", "1"), Ok(None));
    }

    #[test]
    fn a_tag_of_another_version_than_the_program_prints_is_not_there() {
        let store = tempfile::tempdir().unwrap();
        let recipe = Recipe {
            version: vec!["echo".to_owned(), "app (App) 15.18 (Debian)".to_owned()],
            ..Recipe::default()
        };
        let image = |tag: &str| {
            let image = format!("app:{tag}");
            recipe.image(&image, &Name::parse(&image).unwrap(), store.path())
        };
        for tag in ["15", "15.18", "latest", "15-alpine"] {
            assert_eq!(image(tag).unwrap().version.as_deref(), Some("15.18"));
        }
        for tag in ["16", "15.4", "1"] {
            let said = image(tag).unwrap_err().to_string();
            assert!(said.contains("15.18 is"), "{said}");
        }
        for (version, why) in
            [(vec!["true"], "printed no version"), (vec!["no-such-program"], "is not installed")]
        {
            let version = version.into_iter().map(str::to_owned).collect();
            let wrong = Recipe { version, ..Recipe::default() };
            let said =
                wrong.image("app:1", &Name::parse("app:1").unwrap(), store.path()).unwrap_err().to_string();
            assert!(said.contains(why), "{said}");
        }
    }

    #[test]
    fn a_file_of_recipes_with_a_word_that_means_nothing_is_refused_and_says_where() {
        let wrong = Recipes::read("images:\n  app:\n    comand: [x]\n").unwrap_err();
        assert!(wrong.contains("comand"), "{wrong}");
        assert_eq!(signal_number("SIGQUIT"), signal_number("3"));
        assert_eq!((signal_number("QUIT"), signal_number("SIGNONE")), (Some(3), None));
    }
}
