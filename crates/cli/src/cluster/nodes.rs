//! `--nodes simulate=3,process=1`: which nodes a cluster has.

use anyhow::{Context, bail};
use std::str::FromStr;

/// More than anybody needs on one machine; a slip of the finger is no reason to fill its memory.
const MOST: usize = 1000;
/// Nodes that run pods as processes share this machine, and each has a network of its own.
const MOST_PROCESS: usize = 16;

/// How many nodes there are of each sort.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Nodes {
    /// Nodes whose pods run in name only.
    pub(crate) simulate: usize,
    /// Nodes whose pods are processes of this machine.
    pub(crate) process: usize,
}

impl Default for Nodes {
    fn default() -> Self {
        Self { simulate: 1, process: 0 }
    }
}

impl FromStr for Nodes {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let mut nodes = Self { simulate: 0, process: 0 };
        for part in text.split(',') {
            let (sort, count) =
                part.split_once('=').context("it is written as in simulate=3 or process=1")?;
            let count = count.parse().with_context(|| format!("{count:?} is no number"))?;
            let (place, most) = match sort {
                "simulate" => (&mut nodes.simulate, MOST),
                "process" => (&mut nodes.process, MOST_PROCESS),
                _ => bail!("there are no nodes of the sort {sort:?}; there are: simulate, process"),
            };
            if count > most {
                bail!("{count} nodes are too many; there can be {most}");
            }
            *place = count;
        }
        Ok(nodes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_told_by_sort_and_number() {
        assert_eq!("simulate=3".parse::<Nodes>().unwrap(), Nodes { simulate: 3, process: 0 });
        assert_eq!("simulate=0".parse::<Nodes>().unwrap(), Nodes { simulate: 0, process: 0 });
        assert_eq!("process=1".parse::<Nodes>().unwrap(), Nodes { simulate: 0, process: 1 });
        assert_eq!("simulate=2,process=1".parse::<Nodes>().unwrap(), Nodes { simulate: 2, process: 1 });
        for (text, why) in [
            ("3", "simulate=3"),
            ("real=1", "no nodes of the sort"),
            ("simulate=x", "no number"),
            ("simulate=-1", "no number"),
            ("simulate=100000", "too many"),
            ("process=17", "too many"),
        ] {
            let refused = text.parse::<Nodes>().unwrap_err().to_string();
            assert!(refused.contains(why), "{text}: {refused}");
        }
    }
}
