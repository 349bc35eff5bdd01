//! The kubeconfig that points clients at a cluster: a context of ours among those that the user has.

use anyhow::{Context, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use windlass_apiserver::Credentials;

/// The name of our context, cluster and user.
pub(crate) const NAME: &str = "windlass";

/// The extension of the cluster's entry that says in which folder the cluster is.
const EXTENSION: &str = "cluster.windlass.dev";

/// Where each kind of entry is, and under which field.
const LISTS: [(&str, &str); 3] = [("clusters", "cluster"), ("users", "user"), ("contexts", "context")];

/// A kubeconfig file, read but not yet changed.
#[derive(Debug)]
pub(crate) struct Kubeconfig {
    path: PathBuf,
    content: Map<String, Value>,
    /// Was there no such file?
    new: bool,
}

impl Kubeconfig {
    /// The file as it is; nothing is in it if it is not there.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        // Behind a link is the file that is to change, not the link.
        let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let shown = path.display();
        let (text, new) = match fs::read_to_string(&path) {
            Ok(text) => (text, false),
            Err(error) if error.kind() == ErrorKind::NotFound => (String::new(), true),
            Err(error) => return Err(error).with_context(|| format!("cannot read {shown}")),
        };
        let content = match serde_saphyr::from_str::<Option<Map<String, Value>>>(&text) {
            _ if text.trim().is_empty() => Map::new(),
            Ok(content) => content.unwrap_or_default(),
            Err(error) => {
                let why = error.to_string();
                bail!(
                    "{shown} is no kubeconfig, and stays as it is: {}",
                    why.lines().next().unwrap_or_default()
                )
            }
        };
        for (list, _) in LISTS {
            if !matches!(content.get(list), None | Some(Value::Null | Value::Array(_))) {
                bail!("{shown} is no kubeconfig, and stays as it is: its {list} are no list");
            }
        }
        let mut file = Self { path, content, new };
        // One that holds nothing but our context was made by a cluster that was killed, and goes with this one.
        file.new |= file.is_ours_alone();
        Ok(file)
    }

    fn is_ours_alone(&self) -> bool {
        let entries = |list: &str| self.content.get(list).and_then(Value::as_array).map_or(0, Vec::len);
        LISTS.iter().all(|(list, _)| entries(list) == 1 && self.others(list).is_empty())
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is in this folder, whatever links lead there.
    pub(crate) fn is_in(&self, folder: &Path) -> bool {
        self.path.canonicalize().is_ok_and(|path| path.starts_with(folder))
    }

    /// Writes our context into it. The current context stays the user's own, if there is one.
    pub(crate) fn point_at(
        &mut self,
        server: &str,
        credentials: &Credentials,
        folder: &Path,
    ) -> anyhow::Result<()> {
        let data = |pem: &str| STANDARD.encode(pem);
        let ours = [
            json!({
                "server": server,
                "certificate-authority-data": data(credentials.ca_certificate()),
                "extensions": [{"name": EXTENSION, "extension": {"folder": folder}}],
            }),
            json!({
                "client-certificate-data": data(credentials.admin_certificate()),
                "client-key-data": data(credentials.admin_key()),
                "token": credentials.admin_token(),
            }),
            json!({"cluster": NAME, "user": NAME}),
        ];
        for ((list, field), entry) in LISTS.into_iter().zip(ours) {
            let mut entries = self.others(list);
            entries.push(json!({"name": NAME, field: entry}));
            self.content.insert(list.to_owned(), entries.into());
        }
        self.content.insert("apiVersion".to_owned(), json!("v1"));
        self.content.insert("kind".to_owned(), json!("Config"));
        if !self.has_another_current_context() {
            self.content.insert("current-context".to_owned(), json!(NAME));
        }
        self.write()
    }

    /// Takes our context out again, as long as it is still about `server`; a file that we made goes, unless others wrote
    /// to it.
    pub(crate) fn forget(&self, server: &str) -> anyhow::Result<()> {
        let mut file = Self::open(&self.path)?;
        let cluster = file.content.get("clusters").and_then(Value::as_array).and_then(|clusters| {
            clusters
                .iter()
                .find(|cluster| cluster["name"] == NAME)
                .map(|cluster| cluster["cluster"]["server"].clone())
        });
        if cluster != Some(json!(server)) {
            return Ok(());
        }
        let mut others = 0;
        for (list, _) in LISTS {
            let entries = file.others(list);
            others += entries.len();
            file.content.insert(list.to_owned(), entries.into());
        }
        if others == 0 && self.new {
            let shown = file.path.display();
            return fs::remove_file(&file.path).with_context(|| format!("cannot remove {shown}"));
        }
        if !file.has_another_current_context() {
            file.content.insert("current-context".to_owned(), json!(""));
        }
        file.write()
    }

    /// What a person types to use it.
    pub(crate) fn usage(&self) -> String {
        let path = quoted(&self.path.display().to_string());
        match self.has_another_current_context() {
            true => format!("kubectl --kubeconfig {path} --context {NAME}"),
            false => format!("export KUBECONFIG={path}"),
        }
    }

    /// The same cluster for somebody else, as YAML, and nothing of whoever uses this file.
    pub(crate) fn for_user(&self, user: &str, certificate: &str, key: &str) -> anyhow::Result<String> {
        let mut clusters = self.content.get("clusters").and_then(Value::as_array).into_iter().flatten();
        let ours = clusters.rfind(|entry| entry["name"] == NAME);
        let cluster = ours.with_context(|| format!("{} has no cluster {NAME}", self.path.display()))?;
        let data = |pem: &str| STANDARD.encode(pem);
        let content = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": NAME, "clusters": [cluster],
            "users": [{"name": user, "user": {
                "client-certificate-data": data(certificate), "client-key-data": data(key),
            }}],
            "contexts": [{"name": NAME, "context": {"cluster": NAME, "user": user}}],
        });
        Ok(serde_saphyr::to_string(&content)?)
    }

    fn has_another_current_context(&self) -> bool {
        let current = self.content.get("current-context").and_then(Value::as_str).unwrap_or_default();
        !current.is_empty() && current != NAME
    }

    /// The entries of a list that are not ours.
    fn others(&self, list: &str) -> Vec<Value> {
        let entries = self.content.get(list).and_then(Value::as_array).cloned().unwrap_or_default();
        entries.into_iter().filter(|entry| entry["name"] != NAME).collect()
    }

    /// Replaces the file in one step, readable by this user only: it lets its reader do everything.
    fn write(&self) -> anyhow::Result<()> {
        let shown = self.path.display();
        let cannot = || format!("cannot write {shown}");
        let text = serde_saphyr::to_string(&self.content).with_context(cannot)?;
        let folder = match self.path.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        let mut new = tempfile::Builder::new()
            .prefix(".windlass-")
            .permissions(fs::Permissions::from_mode(0o600))
            .tempfile_in(folder)
            .with_context(cannot)?;
        new.write_all(text.as_bytes()).with_context(cannot)?;
        new.persist(&self.path).with_context(cannot)?;
        Ok(())
    }
}

/// The folder and the server of the cluster that the current context of these files belongs to, merged as kubectl does;
/// none where that context is some other Kubernetes. Files that cannot be read are left out.
pub(crate) fn current_cluster(paths: &[PathBuf]) -> Option<(PathBuf, String)> {
    let files = paths.iter().filter_map(|path| kube::config::Kubeconfig::read_from(path).ok());
    let merged = files.reduce(|merged, next| merged.clone().merge(next).unwrap_or(merged))?;
    let current = merged.current_context?;
    let context = merged.contexts.into_iter().find(|context| context.name == current)?.context?;
    let cluster = merged.clusters.into_iter().find(|cluster| cluster.name == context.cluster)?.cluster?;
    let ours = cluster.extensions?.into_iter().find(|extension| extension.name == EXTENSION)?;
    Some((ours.extension["folder"].as_str()?.into(), cluster.server?))
}

/// A path as a shell takes it.
pub(crate) fn quoted(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+:@%,".contains(&byte);
    match text.bytes().all(plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SERVER: &str = "https://127.0.0.1:6443";

    fn read(path: &Path) -> Value {
        serde_saphyr::from_str(&fs::read_to_string(path).unwrap()).unwrap()
    }

    #[test]
    fn a_new_file_is_private_and_goes_with_its_context() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        let mut file = Kubeconfig::open(&path).unwrap();
        file.point_at(SERVER, &Credentials::generate().unwrap(), folder.path()).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(read(&path)["current-context"], "windlass");
        assert_eq!(file.usage(), format!("export KUBECONFIG={}", path.display()));
        file.forget("https://127.0.0.1:1").unwrap();
        assert!(path.exists(), "a context of another cluster is not ours to remove");
        file.forget(SERVER).unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn what_a_killed_cluster_left_goes_with_the_next() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        Kubeconfig::open(&path)
            .unwrap()
            .point_at(SERVER, &Credentials::generate().unwrap(), folder.path())
            .unwrap();
        let mut next = Kubeconfig::open(&path).unwrap();
        next.point_at(SERVER, &Credentials::generate().unwrap(), folder.path()).unwrap();
        next.forget(SERVER).unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn the_users_own_contexts_stay_as_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        let own = "apiVersion: v1\nkind: Config\ncurrent-context: work\npreferences: {colors: true}\n\
            clusters: [{name: work, cluster: {server: \"https://work:6443\"}}]\n\
            users: [{name: me, user: {token: \"007\", username: \"yes\", exec: {args: [\"1e3\", \"\"]}}}]\n\
            contexts: [{name: work, context: {cluster: work, user: me, namespace: \"12\"}}]\n";
        fs::write(&path, own).unwrap();
        let before = read(&path);
        let credentials = Credentials::generate().unwrap();
        for _ in 0..2 {
            let mut file = Kubeconfig::open(&path).unwrap();
            file.point_at(SERVER, &credentials, folder.path()).unwrap();
            assert!(file.usage().ends_with(" --context windlass"));
        }
        let with = read(&path);
        assert_eq!(with["current-context"], "work");
        for (list, _) in LISTS {
            assert_eq!(with[list].as_array().map(Vec::len), Some(2), "{list}");
            assert_eq!(with[list][0], before[list][0]);
        }
        Kubeconfig::open(&path).unwrap().forget(SERVER).unwrap();
        assert_eq!(read(&path), before);
    }

    #[test]
    fn what_is_no_kubeconfig_is_refused_and_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config");
        for text in ["- a\n- b\n", "clusters: none\n", "{", "a: [\n"] {
            fs::write(&path, text).unwrap();
            let refused = Kubeconfig::open(&path).unwrap_err().to_string();
            assert!(refused.contains("is no kubeconfig, and stays as it is"), "{refused}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
    }

    #[test]
    fn the_current_context_says_which_cluster_it_belongs_to() {
        let folder = tempfile::tempdir().unwrap();
        let (ours, other) = (folder.path().join("ours"), folder.path().join("other"));
        let mut file = Kubeconfig::open(&ours).unwrap();
        file.point_at(SERVER, &Credentials::generate().unwrap(), Path::new("/data")).unwrap();
        fs::write(
            &other,
            "current-context: work\nclusters: [{name: work, cluster: {server: \"https://work:6443\"}}]\n\
             users: [{name: me, user: {}}]\ncontexts: [{name: work, context: {cluster: work, user: me}}]\n",
        )
        .unwrap();
        let belongs = Some((PathBuf::from("/data"), SERVER.to_owned()));
        assert_eq!(current_cluster(std::slice::from_ref(&ours)), belongs);
        assert_eq!(current_cluster(&[folder.path().join("none"), ours.clone(), other.clone()]), belongs);
        assert_eq!(current_cluster(&[other, ours]), None, "the first current context counts");
        assert_eq!(current_cluster(&[]), None);
    }

    #[test]
    fn paths_are_quoted_for_a_shell() {
        assert_eq!(quoted("/a/b-c.d"), "/a/b-c.d");
        assert_eq!(quoted("/it's here"), r"'/it'\''s here'");
    }
}
