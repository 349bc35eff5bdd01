//! `Chart.yaml`.

use crate::Error;
use serde_json::{Map, Value as Json};
use std::collections::BTreeMap;

/// What `Chart.yaml` says.
#[derive(Clone, Debug, Default)]
pub struct Metadata {
    /// `v1` or `v2`
    pub api_version: String,
    /// The chart's name.
    pub name: String,
    /// The chart's own version.
    pub version: String,
    /// The version of what it installs.
    pub app_version: String,
    /// `application` or `library`
    pub kind: String,
    /// One sentence.
    pub description: String,
    /// A constraint on the version of Kubernetes.
    pub kube_version: String,
    /// A URL.
    pub home: String,
    /// A URL.
    pub icon: String,
    /// URLs.
    pub sources: Vec<String>,
    /// Words to find it by.
    pub keywords: Vec<String>,
    /// Who keeps it.
    pub maintainers: Vec<Maintainer>,
    /// `condition` and `tags` of the chart itself, which only old charts have.
    pub condition: String,
    /// See [`Metadata::condition`].
    pub tags: String,
    /// Should it not be used any more?
    pub deprecated: bool,
    /// Free for all.
    pub annotations: BTreeMap<String, String>,
    /// The charts that it is made of.
    pub dependencies: Vec<Dependency>,
}

/// Who keeps a chart.
#[derive(Clone, Debug, Default)]
pub struct Maintainer {
    /// The name.
    pub name: String,
    /// The address.
    pub email: String,
    /// A URL.
    pub url: String,
}

/// A chart within a chart.
#[derive(Clone, Debug, Default)]
pub struct Dependency {
    /// The name of the chart, or its alias once dependencies were processed.
    pub name: String,
    /// A constraint on its version.
    pub version: String,
    /// Where it comes from.
    pub repository: String,
    /// Paths in the values that switch it on or off, separated by commas.
    pub condition: String,
    /// Tags in the values that switch it on or off.
    pub tags: Vec<String>,
    /// Is it used?
    pub enabled: bool,
    /// The name that it has here.
    pub alias: String,
    /// Values of it that become its parent's.
    pub import_values: Vec<Json>,
}

struct Fields<'a>(&'a Map<String, Json>, &'static str);

impl Fields<'_> {
    fn text(&self, name: &str) -> Result<String, Error> {
        match self.0.get(name) {
            None | Some(Json::Null) => Ok(String::new()),
            Some(Json::String(text)) => Ok(text.clone()),
            Some(other) => Err(self.wrong(name, other, "string")),
        }
    }

    fn wrong(&self, name: &str, value: &Json, wanted: &str) -> Error {
        let found = match value {
            Json::Number(_) => "number",
            Json::Bool(_) => "bool",
            Json::Array(_) => "array",
            Json::Object(_) => "object",
            _ => "string",
        };
        Error(format!(
            "json: cannot unmarshal {found} into Go struct field {}.{name} of type {wanted}",
            self.1
        ))
    }

    fn items(&self, name: &str) -> Result<&[Json], Error> {
        match self.0.get(name) {
            None | Some(Json::Null) => Ok(&[]),
            Some(Json::Array(items)) => Ok(items),
            Some(other) => Err(self.wrong(name, other, "[]interface {}")),
        }
    }

    fn texts(&self, name: &str) -> Result<Vec<String>, Error> {
        self.items(name)?
            .iter()
            .map(|item| item.as_str().map(str::to_owned).ok_or_else(|| self.wrong(name, item, "string")))
            .collect()
    }

    fn flag(&self, name: &str) -> Result<bool, Error> {
        match self.0.get(name) {
            None | Some(Json::Null) => Ok(false),
            Some(Json::Bool(value)) => Ok(*value),
            Some(other) => Err(self.wrong(name, other, "bool")),
        }
    }
}

impl Metadata {
    /// Reads `Chart.yaml`.
    ///
    /// # Errors
    /// If it is no YAML, or a field is of the wrong type.
    pub fn read(text: &str) -> Result<Self, Error> {
        let json = windlass_template::yaml::read(text).map_err(|error| Error(error.to_string()))?;
        let empty = Map::new();
        let fields = Fields(json.as_object().unwrap_or(&empty), "Metadata");
        let mut annotations = BTreeMap::new();
        if let Some(Json::Object(all)) = fields.0.get("annotations") {
            for (name, value) in all {
                // Only strings are strings, but what is no string is read as one.
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                annotations.insert(name.clone(), text);
            }
        }
        let maintainers = fields.items("maintainers")?.iter().map(|item| {
            let item = Fields(item.as_object().unwrap_or(&empty), "Maintainer");
            Ok(Maintainer { name: item.text("name")?, email: item.text("email")?, url: item.text("url")? })
        });
        let mut metadata = Self {
            api_version: fields.text("apiVersion")?,
            name: fields.text("name")?,
            version: fields.text("version")?,
            app_version: fields.0.get("appVersion").map_or(String::new(), scalar),
            kind: fields.text("type")?,
            description: fields.text("description")?,
            kube_version: fields.text("kubeVersion")?,
            home: fields.text("home")?,
            icon: fields.text("icon")?,
            sources: fields.texts("sources")?,
            keywords: fields.texts("keywords")?,
            maintainers: maintainers.collect::<Result<_, Error>>()?,
            condition: fields.text("condition")?,
            tags: fields.text("tags")?,
            deprecated: fields.flag("deprecated")?,
            annotations,
            dependencies: Vec::new(),
        };
        metadata.add_dependencies(&json)?;
        if metadata.api_version.is_empty() {
            "v1".clone_into(&mut metadata.api_version);
        }
        Ok(metadata)
    }

    /// Takes `dependencies` from `Chart.yaml` or `requirements.yaml`.
    pub(crate) fn add_dependencies(&mut self, json: &Json) -> Result<(), Error> {
        let empty = Map::new();
        let fields = Fields(json.as_object().unwrap_or(&empty), "Metadata");
        if fields.0.get("dependencies").is_none() {
            return Ok(());
        }
        let read = fields.items("dependencies")?.iter().map(|item| {
            let item = Fields(item.as_object().unwrap_or(&empty), "Dependency");
            Ok(Dependency {
                name: item.text("name")?,
                version: item.text("version")?,
                repository: item.text("repository")?,
                condition: item.text("condition")?,
                tags: item.texts("tags")?,
                enabled: item.flag("enabled")?,
                alias: item.text("alias")?,
                import_values: item.items("import-values")?.to_vec(),
            })
        });
        self.dependencies = read.collect::<Result<_, Error>>()?;
        Ok(())
    }

    /// Is there all that a chart must have?
    ///
    /// # Errors
    /// What is missing, in Helm's words.
    pub fn check(&self) -> Result<(), Error> {
        let invalid = |what: &str| Err(Error(format!("validation: {what}")));
        if self.name.is_empty() {
            return invalid("chart.metadata.name is required");
        }
        if self.name.contains('/') || self.name == "." || self.name == ".." {
            return invalid(&format!("chart.metadata.name {:?} is invalid", self.name));
        }
        if self.version.is_empty() {
            return invalid("chart.metadata.version is required");
        }
        if windlass_template::semver::Version::parse(&self.version).is_err() {
            return invalid(&format!("chart.metadata.version {:?} is invalid", self.version));
        }
        if !matches!(self.kind.as_str(), "" | "application" | "library") {
            return invalid("chart.metadata.type must be application or library");
        }
        let mut names: Vec<&str> = Vec::new();
        for dependency in &self.dependencies {
            let name = if dependency.alias.is_empty() { &dependency.name } else { &dependency.alias };
            if names.contains(&name.as_str()) {
                return invalid(&format!("more than one dependency with name or alias {name:?}"));
            }
            names.push(name);
        }
        Ok(())
    }

    /// Does the chart only offer templates to others?
    #[must_use]
    pub fn library(&self) -> bool {
        self.kind.eq_ignore_ascii_case("library")
    }
}

fn scalar(value: &Json) -> String {
    match value {
        Json::Null => String::new(),
        Json::String(text) => text.clone(),
        other => other.to_string(),
    }
}
