//! Sockets whose path is too long for an address.

use std::io;
use std::path::Path;

/// Calls `dial` with a path to `socket` that fits into an address, however deep its folder is.
///
/// # Errors
/// The folder cannot be opened, or `dial` fails.
pub(super) fn through_directory<T>(
    socket: &Path,
    dial: impl FnOnce(&Path) -> io::Result<T>,
) -> io::Result<T> {
    use std::os::fd::AsRawFd;
    /// What `sockaddr_un` holds, with the zero at its end.
    const FITS: usize = 107;
    if socket.as_os_str().len() <= FITS {
        return dial(socket);
    }
    let (Some(folder), Some(name)) = (socket.parent(), socket.file_name()) else {
        return Err(io::Error::other("the path of a socket names no file"));
    };
    let folder = std::fs::File::open(folder)?;
    dial(&Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string()).join(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::{UnixListener, UnixStream};

    #[test]
    fn a_socket_is_found_however_deep_it_is() {
        let folder = tempfile::tempdir().unwrap();
        for depth in [1, 40] {
            let deep = folder.path().join("deep/".repeat(depth));
            std::fs::create_dir_all(&deep).unwrap();
            let socket = deep.join("socket");
            let listener = through_directory(&socket, |path| UnixListener::bind(path)).unwrap();
            through_directory(&socket, |path| UnixStream::connect(path)).unwrap();
            drop(listener);
        }
        assert!(through_directory(&folder.path().join("none"), |path| UnixStream::connect(path)).is_err());
    }
}
