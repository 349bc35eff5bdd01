//! Keeps credentials in a folder that only this user may read: all of them, or none.

use super::{CredentialsError, FrontProxy, Parts, issue};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

const CA_CERTIFICATE: &str = "ca.crt";
const CA_KEY: &str = "ca.key";
const SERVER_CERTIFICATE: &str = "server.crt";
const SERVER_KEY: &str = "server.key";
const ADMIN_CERTIFICATE: &str = "admin.crt";
const ADMIN_KEY: &str = "admin.key";
const ADMIN_TOKEN: &str = "admin.token";
const ACCOUNTS_KEY: &str = "service-accounts.key";

/// The folder of the front proxy, inside of that of the rest.
const FRONT_PROXY: &str = "front-proxy";
const PROXY_CA_CERTIFICATE: &str = "ca.crt";
const PROXY_CERTIFICATE: &str = "client.crt";
const PROXY_KEY: &str = "client.key";

/// What the folder holds; none if there is no such folder.
pub(super) fn read(folder: &Path) -> Result<Option<Parts>, CredentialsError> {
    if !folder.try_exists().map_err(failed("look for", folder))? {
        return Ok(None);
    }
    tighten(folder, 0o700)?;
    let text = |name| read_private(folder, name);
    Ok(Some(Parts {
        ca_certificate: text(CA_CERTIFICATE)?,
        ca_key: text(CA_KEY)?,
        server_certificate: text(SERVER_CERTIFICATE)?,
        server_key: text(SERVER_KEY)?,
        admin_certificate: text(ADMIN_CERTIFICATE)?,
        admin_key: text(ADMIN_KEY)?,
        admin_token: text(ADMIN_TOKEN)?.trim().to_owned(),
        accounts_key: text(ACCOUNTS_KEY)?,
    }))
}

/// The front proxy of the folder, which is made if it has none.
pub(super) fn front_proxy(folder: &Path) -> Result<FrontProxy, CredentialsError> {
    let place = folder.join(FRONT_PROXY);
    if !place.try_exists().map_err(failed("look for", &place))? {
        let made = issue::front_proxy()?;
        let files = [
            (PROXY_CA_CERTIFICATE, &made.ca_certificate),
            (PROXY_CERTIFICATE, &made.certificate),
            (PROXY_KEY, &made.key),
        ];
        write_whole(&place, &files)?;
        return Ok(made);
    }
    tighten(&place, 0o700)?;
    Ok(FrontProxy {
        ca_certificate: read_private(&place, PROXY_CA_CERTIFICATE)?,
        certificate: read_private(&place, PROXY_CERTIFICATE)?,
        key: read_private(&place, PROXY_KEY)?,
    })
}

fn read_private(folder: &Path, name: &str) -> Result<String, CredentialsError> {
    let path = folder.join(name);
    tighten(&path, 0o600)?;
    fs::read_to_string(&path).map_err(failed("read", &path))
}

/// Takes from others what they may do with a file of ours, and says so: who had read it meanwhile still knows it.
fn tighten(path: &Path, wanted: u32) -> Result<(), CredentialsError> {
    let mode = fs::metadata(path).map_err(failed("read", path))?.permissions().mode() & 0o777;
    if mode & 0o077 == 0 {
        return Ok(());
    }
    fs::set_permissions(path, fs::Permissions::from_mode(wanted))
        .map_err(failed("keep others out of", path))?;
    tracing::warn!(
        "{} had mode {mode:04o}, so that others could read it; it is {wanted:04o} now",
        path.display()
    );
    Ok(())
}

/// Makes the folder.
pub(super) fn write(folder: &Path, parts: &Parts) -> Result<(), CredentialsError> {
    let files = [
        (CA_CERTIFICATE, &parts.ca_certificate),
        (CA_KEY, &parts.ca_key),
        (SERVER_CERTIFICATE, &parts.server_certificate),
        (SERVER_KEY, &parts.server_key),
        (ADMIN_CERTIFICATE, &parts.admin_certificate),
        (ADMIN_KEY, &parts.admin_key),
        (ADMIN_TOKEN, &parts.admin_token),
        (ACCOUNTS_KEY, &parts.accounts_key),
    ];
    write_whole(folder, &files)
}

/// Makes a folder with these files. It appears whole or not at all, whenever the machine stops.
fn write_whole(folder: &Path, files: &[(&str, &String)]) -> Result<(), CredentialsError> {
    let new = folder.with_extension("new");
    if new.try_exists().map_err(failed("look for", &new))? {
        fs::remove_dir_all(&new).map_err(failed("remove", &new))?;
    }
    let above = folder.parent().unwrap_or(Path::new("."));
    DirBuilder::new().recursive(true).mode(0o700).create(above).map_err(failed("make", above))?;
    DirBuilder::new().mode(0o700).create(&new).map_err(failed("make", &new))?;
    for (name, text) in files {
        let path = new.join(name);
        write_private(&path, text).map_err(failed("write", &path))?;
    }
    fs::rename(&new, folder).map_err(failed("make", folder))?;
    File::open(above).and_then(|above| above.sync_all()).map_err(failed("write", above))
}

fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> CredentialsError {
    let path = path.to_owned();
    move |source| CredentialsError::File { action, path, source }
}

#[cfg(test)]
mod tests {
    use crate::credentials::{Credentials, CredentialsError};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn what_was_made_is_found_again_and_only_this_user_may_read_it() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("data/credentials");
        let made = Credentials::kept_in(&folder).unwrap();
        let found = Credentials::kept_in(&folder).unwrap();
        assert_eq!(made.ca_certificate(), found.ca_certificate());
        assert_eq!(made.admin_token(), found.admin_token());
        let mode = |path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(folder.clone()), 0o700);
        for entry in std::fs::read_dir(&folder).unwrap() {
            assert_eq!(mode(entry.unwrap().path()), 0o600);
        }
    }

    #[test]
    fn what_others_may_read_is_closed_to_them() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("credentials");
        Credentials::kept_in(&folder).unwrap();
        let (mode, key) =
            (|path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777, folder.join("ca.key"));
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
        std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o755)).unwrap();
        Credentials::kept_in(&folder).unwrap();
        assert_eq!((mode(key), mode(folder)), (0o600, 0o700));
    }

    #[test]
    fn a_front_proxy_is_made_once_also_in_a_folder_of_before() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("credentials");
        let made = Credentials::kept_in(&folder).unwrap();
        assert!(!folder.join("front-proxy").exists(), "nobody asked for it");
        let proxy = made.front_proxy().unwrap();
        let again = Credentials::kept_in(&folder).unwrap();
        assert_eq!(again.front_proxy().unwrap().key, proxy.key);
        assert_ne!(proxy.ca_certificate, made.ca_certificate(), "clients of one are no proxies");
        let mode = |name| std::fs::metadata(folder.join(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("front-proxy"), mode("front-proxy/client.key")), (0o700, 0o600));
    }

    #[test]
    fn a_folder_that_lacks_a_file_is_refused_and_left_as_it_is() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join("credentials");
        let made = Credentials::kept_in(&folder).unwrap();
        std::fs::remove_file(folder.join("server.key")).unwrap();
        let error = Credentials::kept_in(&folder).unwrap_err();
        assert!(matches!(error, CredentialsError::File { action: "read", .. }), "{error}");
        let kept = std::fs::read_to_string(folder.join("ca.crt")).unwrap();
        assert_eq!(kept, made.ca_certificate());
    }
}
