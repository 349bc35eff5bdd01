//! `--nodes simulate=3`: which nodes a cluster has.

use anyhow::{Context, bail};
use std::str::FromStr;

/// More than anybody needs on one machine; a slip of the finger is no reason to fill its memory.
const MOST: usize = 1000;

/// How many nodes there are of each sort.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Nodes {
    /// Nodes whose pods run in name only.
    pub(crate) simulate: usize,
}

impl Default for Nodes {
    fn default() -> Self {
        Self { simulate: 1 }
    }
}

impl FromStr for Nodes {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let (sort, count) = text.split_once('=').context("it is written as in simulate=3")?;
        if sort != "simulate" {
            bail!("there are no nodes of the sort {sort:?}; there are: simulate");
        }
        let count = count.parse().with_context(|| format!("{count:?} is no number"))?;
        if count > MOST {
            bail!("{count} nodes are too many; there can be {MOST}");
        }
        Ok(Self { simulate: count })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_told_by_sort_and_number() {
        assert_eq!("simulate=3".parse::<Nodes>().unwrap(), Nodes { simulate: 3 });
        assert_eq!("simulate=0".parse::<Nodes>().unwrap(), Nodes { simulate: 0 });
        for (text, why) in [
            ("3", "simulate=3"),
            ("real=1", "no nodes of the sort"),
            ("simulate=x", "no number"),
            ("simulate=-1", "no number"),
            ("simulate=100000", "too many"),
        ] {
            let refused = text.parse::<Nodes>().unwrap_err().to_string();
            assert!(refused.contains(why), "{text}: {refused}");
        }
    }
}
