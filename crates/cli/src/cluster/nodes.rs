//! `--nodes simulated=3,process=1`: the nodes of a cluster.

use anyhow::{Context, bail};
use std::str::FromStr;

/// More than anybody needs on one machine; a slip of the finger is no reason to fill its memory.
const MOST: usize = 1000;
/// Nodes that run pods as processes share this machine, and each has a network of its own.
const MOST_PROCESS: usize = 16;

/// The number of nodes of each kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Nodes {
    /// Simulated nodes, which run nothing.
    pub(crate) simulated: usize,
    /// Nodes whose pods are processes of this machine.
    pub(crate) process: usize,
}

impl Default for Nodes {
    fn default() -> Self {
        Self { simulated: 1, process: 0 }
    }
}

impl FromStr for Nodes {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> anyhow::Result<Self> {
        let mut nodes = Self { simulated: 0, process: 0 };
        for part in text.split(',') {
            let (kind, count) =
                part.split_once('=').context("the form is KIND=COUNT, such as simulated=3 or process=1")?;
            let count = count.parse().with_context(|| format!("{count:?} is not a number"))?;
            let (place, most) = match kind {
                "simulated" => (&mut nodes.simulated, MOST),
                "process" => (&mut nodes.process, MOST_PROCESS),
                _ => bail!("unknown kind of nodes {kind:?}; known are simulated and process"),
            };
            if count > most {
                bail!("{count} nodes are too many; the maximum is {most}");
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
    fn nodes_are_given_by_kind_and_count() {
        assert_eq!("simulated=3".parse::<Nodes>().unwrap(), Nodes { simulated: 3, process: 0 });
        assert_eq!("simulated=0".parse::<Nodes>().unwrap(), Nodes { simulated: 0, process: 0 });
        assert_eq!("process=1".parse::<Nodes>().unwrap(), Nodes { simulated: 0, process: 1 });
        assert_eq!("simulated=2,process=1".parse::<Nodes>().unwrap(), Nodes { simulated: 2, process: 1 });
        for (text, why) in [
            ("3", "simulated=3"),
            ("real=1", "unknown kind of nodes"),
            ("simulated=x", "not a number"),
            ("simulated=-1", "not a number"),
            ("simulated=100000", "too many"),
            ("process=17", "too many"),
        ] {
            let refused = text.parse::<Nodes>().unwrap_err().to_string();
            assert!(refused.contains(why), "{text}: {refused}");
        }
    }
}
