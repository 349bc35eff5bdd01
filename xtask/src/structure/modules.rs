//! Cycles among the top-level modules of a crate: each pair in one can only be understood together.

use super::uses;
use anyhow::Context;
use proc_macro2::{TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Which module uses which, and where.
type Uses = BTreeMap<String, BTreeMap<String, String>>;

/// A cycle among the modules that a crate's root file declares, told as one line, if there is one.
pub(super) fn cycle(name: &str, root: &Path) -> anyhow::Result<Option<String>> {
    let declared = Declared::read(root)?;
    let folder = root.parent().context("a crate's root is in no folder")?;
    let mut all = Uses::new();
    for module in &declared.modules {
        let used = all.entry(module.clone()).or_default();
        for (file, depth) in files(folder, module)? {
            for (other, line) in uses::from_root(tokens(&file)?, depth) {
                let other = declared.reexported.get(&other).cloned().unwrap_or(other);
                if other != *module && declared.modules.contains(&other) {
                    let place = file.strip_prefix(folder).unwrap_or(&file).display();
                    used.entry(other).or_insert_with(|| format!("{place}:{line}"));
                }
            }
        }
    }
    Ok(shortest(&all).map(|cycle| format!("the modules of {name} form a cycle: {cycle}")))
}

/// What a crate's root file says of modules.
struct Declared {
    modules: BTreeSet<String>,
    /// Items of modules that the root has too, and of which.
    reexported: BTreeMap<String, String>,
}

impl Declared {
    fn read(root: &Path) -> anyhow::Result<Self> {
        let tokens: Vec<TokenTree> = tokens(root)?.into_iter().collect();
        let (mut modules, mut reexported) = (BTreeSet::new(), BTreeMap::new());
        let mut at = 0;
        while at < tokens.len() {
            if uses::is_test_attribute(&tokens[at..]) {
                at = uses::end_of_item(&tokens, at + 2);
                continue;
            }
            match &tokens[at..] {
                [TokenTree::Ident(word), TokenTree::Ident(name), ..] if word == "mod" => {
                    modules.insert(name.to_string());
                }
                [TokenTree::Ident(word), TokenTree::Ident(module), rest @ ..] if word == "use" => {
                    let end = uses::end_of_item(rest, 0);
                    let items: TokenStream = rest[..end].iter().cloned().collect();
                    names(items, &mut |item| drop(reexported.insert(item, module.to_string())));
                }
                _ => {}
            }
            at += 1;
        }
        reexported.retain(|item, module| modules.contains(module) && !modules.contains(item));
        Ok(Self { modules, reexported })
    }
}

fn names(tokens: TokenStream, add: &mut impl FnMut(String)) {
    for token in tokens {
        match token {
            TokenTree::Ident(ident) => add(ident.to_string()),
            TokenTree::Group(group) => names(group.stream(), add),
            _ => {}
        }
    }
}

/// The files of a module, each with how many modules deep it is. Files of tests do not count.
fn files(folder: &Path, module: &str) -> anyhow::Result<Vec<(PathBuf, usize)>> {
    let mut found = Vec::new();
    let file = folder.join(format!("{module}.rs"));
    if file.exists() {
        found.push((file, 1));
    }
    walk(&folder.join(module), 1, &mut found)?;
    Ok(found)
}

fn walk(folder: &Path, depth: usize, found: &mut Vec<(PathBuf, usize)>) -> anyhow::Result<()> {
    if !folder.is_dir() {
        return Ok(());
    }
    let tests = test_modules(folder)?;
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<_>>()?;
    entries.sort();
    for path in entries {
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        if tests.contains(name) {
            continue;
        }
        if path.is_dir() {
            walk(&path, depth + 1, found)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push((path.clone(), if name == "mod" { depth } else { depth + 1 }));
        }
    }
    Ok(())
}

/// The modules of a folder that are declared for tests alone, by any file that can declare them.
fn test_modules(folder: &Path) -> anyhow::Result<BTreeSet<String>> {
    let mut tests = BTreeSet::new();
    for file in [folder.join("mod.rs"), folder.with_extension("rs")] {
        if !file.exists() {
            continue;
        }
        let tokens: Vec<TokenTree> = tokens(&file)?.into_iter().collect();
        for at in 0..tokens.len() {
            if let true = uses::is_test_attribute(&tokens[at..])
                && let [TokenTree::Ident(word), TokenTree::Ident(name), ..] = &tokens[at + 2..]
                && word == "mod"
            {
                tests.insert(name.to_string());
            }
        }
    }
    Ok(tests)
}

fn tokens(file: &Path) -> anyhow::Result<TokenStream> {
    let text = std::fs::read_to_string(file).with_context(|| format!("{} cannot be read", file.display()))?;
    text.parse().map_err(|error| anyhow::anyhow!("{} is not Rust: {error}", file.display()))
}

/// The shortest cycle there is, with the place of each use.
fn shortest(all: &Uses) -> Option<String> {
    let cycles = all.keys().filter_map(|start| back_to(all, start));
    let cycle = cycles.min_by_key(Vec::len)?;
    let place = |pair: &[&String]| format!(" -> {} ({})", pair[1], all[pair[0]][pair[1]]);
    Some(cycle[0].clone() + &cycle.windows(2).map(place).collect::<String>())
}

/// The shortest way from a module back to itself.
fn back_to<'a>(all: &'a Uses, start: &'a String) -> Option<Vec<&'a String>> {
    let mut came_from: BTreeMap<&String, &String> = BTreeMap::new();
    let mut front = vec![start];
    while !front.is_empty() {
        let mut next = Vec::new();
        for module in front {
            for used in all.get(module).into_iter().flat_map(BTreeMap::keys) {
                if used == start {
                    let mut way = vec![start, module];
                    while let Some(before) =
                        came_from.get(way[way.len() - 1]).filter(|_| way[way.len() - 1] != start)
                    {
                        way.push(before);
                    }
                    way.reverse();
                    way.push(start);
                    way.dedup();
                    return Some(way);
                }
                if !came_from.contains_key(used) {
                    came_from.insert(used, module);
                    next.push(used);
                }
            }
        }
        front = next;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_files(files: &[(&str, &str)]) -> Option<String> {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let file = folder.path().join(path);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        }
        cycle("sample", &folder.path().join("lib.rs")).unwrap()
    }

    #[test]
    fn modules_that_use_each_other_are_told_with_their_places() {
        let told = of_files(&[
            ("lib.rs", "mod a; mod b; mod c; pub use c::Thing;"),
            ("a.rs", "use crate::b::X;"),
            ("b/mod.rs", "mod inner;"),
            ("b/inner.rs", "\nuse crate::Thing;"),
            ("c.rs", "use super::a;"),
        ]);
        assert_eq!(
            told.unwrap(),
            "the modules of sample form a cycle: a -> b (a.rs:1) -> c (b/inner.rs:2) -> a (c.rs:1)"
        );
    }

    #[test]
    fn tests_may_use_what_is_above() {
        assert_eq!(
            of_files(&[
                ("lib.rs", "mod a; mod b; #[cfg(test)] mod world;"),
                ("a.rs", "use crate::b::X;"),
                ("b/mod.rs", "#[cfg(test)] mod tests;\n#[cfg(test)] mod more { use crate::a; }"),
                ("b/tests.rs", "use crate::a;"),
                ("world.rs", "use crate::a;"),
            ]),
            None
        );
    }
}
