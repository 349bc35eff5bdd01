//! The `PROJECT` file: the APIs and settings of the project, for the next command.

use super::webhooks::WebhookSort;
use super::{ScaffoldError, valid_names};
use serde::{Deserialize, Serialize};

/// Where it is, below the project's folder.
pub const PATH: &str = "PROJECT";

/// Whose text is at the head of every source file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum License {
    /// The Apache License, version 2.0.
    #[default]
    Apache2,
    /// The MIT licence.
    Mit,
    /// None that the tool would write down.
    None,
}

/// What was made here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Project {
    /// The version of this file's form.
    pub layout: u32,
    /// The project's name, and that of its crate.
    pub name: String,
    /// What all groups end with.
    pub domain: String,
    /// The licence of new files.
    pub license: License,
    /// Whether new kinds go into a folder of their group.
    pub multigroup: bool,
    /// The kinds, in the order in which they were made.
    #[serde(default)]
    pub kinds: Vec<Kind>,
}

/// A kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kind {
    /// Its group, without the domain.
    pub group: String,
    /// Its CamelCase name.
    pub kind: String,
    /// Its name in paths.
    pub plural: String,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// Whether its files are in a folder of its group.
    #[serde(default)]
    pub grouped: bool,
    /// Its versions; the first is the one that is stored, and that its controllers are about.
    pub versions: Vec<String>,
    /// The kinds that its controllers own.
    #[serde(default)]
    pub owns: Vec<String>,
    /// The concerns of its further controllers.
    #[serde(default)]
    pub concerns: Vec<String>,
    /// What its webhooks are for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub webhooks: Vec<WebhookSort>,
}

/// The form of the file that this version writes.
const LAYOUT: u32 = 1;

const HEAD: &str = "# What `windlass init` and `windlass create` made here, for the next of them. Commit it; edit it by `windlass edit`.\n";

impl Project {
    /// A new one.
    pub(super) fn new(name: &str, domain: &str, license: License, multigroup: bool) -> Self {
        let (name, domain) = (name.to_owned(), domain.to_owned());
        Self { layout: LAYOUT, name, domain, license, multigroup, kinds: Vec::new() }
    }

    /// Reads the file.
    ///
    /// # Errors
    /// When it is not one, with the line or the field that is wrong.
    pub fn read(text: &str) -> Result<Self, ScaffoldError> {
        let damaged = |why: String| ScaffoldError::InvalidFile { path: PATH.to_owned(), why };
        let project: Self = serde_saphyr::from_str(text).map_err(|error| damaged(error.to_string()))?;
        if project.layout != LAYOUT {
            let why = format!(
                "layout is {}, and this windlass reads {LAYOUT}; use the one that wrote it",
                project.layout
            );
            return Err(damaged(why));
        }
        project.check().map_err(|(field, refused)| damaged(format!("{field}: {refused}")))?;
        Ok(project)
    }

    fn check(&self) -> Result<(), (String, ScaffoldError)> {
        valid_names::project(&self.name).map_err(|refused| ("name".to_owned(), refused))?;
        valid_names::domain(&self.domain).map_err(|refused| ("domain".to_owned(), refused))?;
        for (at, kind) in self.kinds.iter().enumerate() {
            let of = |field: &str| format!("kinds[{at}].{field}");
            valid_names::group(&kind.group).map_err(|refused| (of("group"), refused))?;
            valid_names::kind(&kind.kind).map_err(|refused| (of("kind"), refused))?;
            valid_names::plural(&kind.plural).map_err(|refused| (of("plural"), refused))?;
            for version in &kind.versions {
                valid_names::version(version).map_err(|refused| (of("versions"), refused))?;
            }
            if kind.versions.is_empty() {
                return Err((
                    of("versions"),
                    ScaffoldError::name("list", "[]", "a kind has at least one version"),
                ));
            }
            for owned in &kind.owns {
                super::owned::find(owned, &kind.kind, self).map_err(|refused| (of("owns"), refused))?;
            }
            for concern in &kind.concerns {
                valid_names::concern(concern).map_err(|refused| (of("concerns"), refused))?;
            }
            let twice = |other: &Kind| {
                other.group == kind.group && (other.kind == kind.kind || other.plural == kind.plural)
            };
            if self.kinds[..at].iter().any(twice) {
                return Err((
                    of("kind"),
                    ScaffoldError::name("kind", &kind.kind, "it is there twice, or its plural is"),
                ));
            }
        }
        Ok(())
    }

    /// The file's text.
    pub(super) fn text(&self) -> String {
        let value = serde_json::to_value(self).unwrap_or_default();
        // Fields in the order in which people think of them, which a JSON value does not keep.
        let mut text = serde_saphyr::to_string(self).unwrap_or_else(|_| crate::yaml::document(&value));
        if !text.ends_with('\n') {
            text.push('\n');
        }
        format!("{HEAD}{text}")
    }

    /// The whole group of a kind.
    pub(super) fn full_group(&self, group: &str) -> String {
        match group {
            "" => self.domain.clone(),
            group => format!("{group}.{}", self.domain),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project() -> Project {
        let mut project = Project::new("shop-operator", "example.com", License::Mit, true);
        project.kinds.push(Kind {
            group: "cache".into(),
            kind: "Memcached".into(),
            plural: "memcacheds".into(),
            namespaced: true,
            grouped: true,
            versions: vec!["v1alpha1".into(), "v1".into()],
            owns: vec!["Deployment".into()],
            concerns: vec![],
            webhooks: vec![],
        });
        project
    }

    #[test]
    fn what_is_written_is_read() {
        assert_eq!(Project::read(&project().text()).unwrap(), project());
        assert!(project().text().contains("name: shop-operator\n"), "{}", project().text());
    }

    #[test]
    fn damage_is_named_with_its_place() {
        let text = project().text();
        for (from, to, part) in [
            ("kind: Memcached", "kind: memcached", "kinds[0].kind"),
            ("domain: example.com", "domain: 7", "domain"),
            ("domain: example.com\n", "", "domain"),
            ("layout: 1", "layout: 9", "layout is 9"),
            ("multigroup: true", "multigroup: [", "line"),
            ("license: mit", "license: gpl", "line 5"),
            ("name: shop", "nom: shop", "nom"),
            ("v1alpha1", "first", "kinds[0].versions"),
            ("Deployment", "Spaceship", "kinds[0].owns"),
        ] {
            assert!(text.contains(from), "{text}");
            let said = Project::read(&text.replace(from, to)).unwrap_err().to_string();
            assert!(said.starts_with("PROJECT is invalid") && said.contains(part), "{said}");
        }
        assert!(Project::read("").is_err() && Project::read("- 1").is_err());
    }
}
