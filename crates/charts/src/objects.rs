//! The objects that templates see: `.Chart`, `.Capabilities` and what is in them.

use crate::Metadata;
use crate::capabilities::Capabilities;
use std::any::Any;
use std::rc::Rc;
use windlass_template::value::{Elem, Kind, List, Map, MapType, Member, Object, Value};

/// A struct: fields in their order, and methods that answer a constant.
#[derive(Debug)]
pub(crate) struct Record {
    pub type_name: &'static str,
    pub kind: Kind,
    pub fields: Vec<(&'static str, Value)>,
    pub text: Option<String>,
    /// The names in JSON, in the order of the fields; what is empty is left out.
    pub json: Vec<&'static str>,
}

impl Record {
    fn value(self) -> Value {
        Value::Object(Rc::new(self))
    }
}

impl Object for Record {
    fn type_name(&self) -> String {
        self.type_name.into()
    }

    fn kind(&self) -> Kind {
        self.kind
    }

    fn member(&self, name: &str) -> Member {
        if self.text.is_some() && matches!(name, "String" | "GitVersion") {
            return Member::Method(">s");
        }
        match self.fields.iter().find(|(field, _)| *field == name) {
            Some((_, value)) => Member::Field(value.clone()),
            None => Member::Missing,
        }
    }

    fn call(&self, _: &str, _: &[Value]) -> Result<Value, String> {
        Ok(self.text.clone().unwrap_or_default().into())
    }

    fn text(&self) -> Option<String> {
        self.text.clone()
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        self.fields.clone()
    }

    fn plain(&self) -> Value {
        let named =
            self.json.iter().zip(&self.fields).filter(|(name, (_, value))| !name.is_empty() && value.truth());
        Value::map(named.map(|(name, (_, value))| (*name, value.clone())))
    }

    fn equals(&self, other: &dyn Object) -> bool {
        other.any().downcast_ref::<Self>().is_some_and(|other| std::ptr::eq(self, other))
    }

    fn any(&self) -> &dyn Any {
        self
    }
}

/// `.Chart`
pub(crate) fn chart(metadata: &Metadata, root: bool) -> Value {
    let object = |items: Vec<Value>| Value::List(List::new(Elem::Object, items));
    let strings = |items: &[String]| match items {
        [] => Value::List(List::nil(Elem::Str)),
        items => Value::strings(items.iter().map(String::as_str)),
    };
    let text = |text: &str| Value::from(text);
    let annotations =
        metadata.annotations.iter().map(|(key, value)| (key.as_str().into(), text(value))).collect();
    let maintainers = metadata.maintainers.iter().map(|one| {
        let fields = vec![("Name", text(&one.name)), ("Email", text(&one.email)), ("URL", text(&one.url))];
        let json = vec!["name", "email", "url"];
        Record { type_name: "*chart.Maintainer", kind: Kind::Pointer, fields, text: None, json }.value()
    });
    let dependencies = metadata.dependencies.iter().map(|one| {
        let fields = vec![
            ("Name", text(&one.name)),
            ("Version", text(&one.version)),
            ("Repository", text(&one.repository)),
            ("Condition", text(&one.condition)),
            ("Tags", strings(&one.tags)),
            ("Enabled", Value::Bool(one.enabled)),
            (
                "ImportValues",
                Value::list(one.import_values.iter().map(windlass_template::from_json).collect()),
            ),
            ("Alias", text(&one.alias)),
        ];
        let json =
            vec!["name", "version", "repository", "condition", "tags", "enabled", "import-values", "alias"];
        Record { type_name: "*chart.Dependency", kind: Kind::Pointer, fields, text: None, json }.value()
    });
    let fields = vec![
        ("Name", text(&metadata.name)),
        ("Home", text(&metadata.home)),
        ("Sources", strings(&metadata.sources)),
        ("Version", text(&metadata.version)),
        ("Description", text(&metadata.description)),
        ("Keywords", strings(&metadata.keywords)),
        ("Maintainers", object(maintainers.collect())),
        ("Icon", text(&metadata.icon)),
        ("APIVersion", text(&metadata.api_version)),
        ("Condition", text(&metadata.condition)),
        ("Tags", text(&metadata.tags)),
        ("AppVersion", text(&metadata.app_version)),
        ("Deprecated", Value::Bool(metadata.deprecated)),
        ("Annotations", Value::Map(Map::new(MapType::Str, annotations))),
        ("KubeVersion", text(&metadata.kube_version)),
        ("Dependencies", object(dependencies.collect())),
        ("Type", text(&metadata.kind)),
        ("IsRoot", Value::Bool(root)),
    ];
    let json = vec![
        "name",
        "home",
        "sources",
        "version",
        "description",
        "keywords",
        "maintainers",
        "icon",
        "apiVersion",
        "condition",
        "tags",
        "appVersion",
        "deprecated",
        "annotations",
        "kubeVersion",
        "dependencies",
        "type",
        "IsRoot",
    ];
    let type_name = "struct { chart.Metadata; IsRoot bool }";
    Record { type_name, kind: Kind::Struct, fields, text: None, json }.value()
}

/// `.Capabilities`
pub(crate) fn capabilities(capabilities: &Capabilities) -> Value {
    let version = &capabilities.kube_version;
    let text = |text: &str| Value::from(text);
    let parts: Vec<&str> = version.trim_start_matches('v').split('.').collect();
    let part = |at: usize| text(parts.get(at).copied().unwrap_or(""));
    let kube = Record {
        type_name: "chartutil.KubeVersion",
        kind: Kind::Struct,
        fields: vec![("Version", text(version)), ("Major", part(0)), ("Minor", part(1))],
        text: Some(version.clone()),
        json: vec!["Version", "Major", "Minor"],
    };
    let helm = Record {
        type_name: "version.BuildInfo",
        kind: Kind::Struct,
        fields: vec![
            ("Version", text("v3.22")),
            ("GitCommit", text("")),
            ("GitTreeState", text("")),
            ("GoVersion", text("go1.26")),
        ],
        text: None,
        json: vec!["version", "git_commit", "git_tree_state", "go_version"],
    };
    let fields = vec![
        ("KubeVersion", kube.value()),
        ("APIVersions", Value::Object(Rc::new(Versions(capabilities.api_versions.clone())))),
        ("HelmVersion", helm.value()),
    ];
    let json = vec!["KubeVersion", "APIVersions", "HelmVersion"];
    Record { type_name: "*chartutil.Capabilities", kind: Kind::Pointer, fields, text: None, json }.value()
}

/// `.Capabilities.APIVersions`
#[derive(Debug)]
struct Versions(Vec<String>);

impl Object for Versions {
    fn type_name(&self) -> String {
        "chartutil.VersionSet".into()
    }

    fn kind(&self) -> Kind {
        Kind::Slice
    }

    fn member(&self, name: &str) -> Member {
        if name == "Has" { Member::Method("s>b") } else { Member::Missing }
    }

    fn call(&self, _: &str, given: &[Value]) -> Result<Value, String> {
        let wanted = match given.first() {
            Some(Value::Str(wanted)) => wanted.lossy().into_owned(),
            _ => String::new(),
        };
        Ok(Value::Bool(self.0.contains(&wanted)))
    }

    fn len(&self) -> Option<usize> {
        Some(self.0.len())
    }

    fn entries(&self) -> Vec<(windlass_template::GoStr, Value)> {
        self.0.iter().map(|version| ("".into(), version.as_str().into())).collect()
    }

    fn text(&self) -> Option<String> {
        Some(format!("[{}]", self.0.join(" ")))
    }

    fn plain(&self) -> Value {
        Value::strings(self.0.iter().map(String::as_str))
    }

    fn equals(&self, _: &dyn Object) -> bool {
        false
    }

    fn any(&self) -> &dyn Any {
        self
    }
}
