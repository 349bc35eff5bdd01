//! English plurals of kinds, as their names in paths.

/// Words whose plural no ending tells.
const IRREGULAR: [(&str, &str); 14] = [
    ("person", "people"),
    ("child", "children"),
    ("man", "men"),
    ("mouse", "mice"),
    ("foot", "feet"),
    ("tooth", "teeth"),
    ("index", "indices"),
    ("vertex", "vertices"),
    ("matrix", "matrices"),
    ("quiz", "quizzes"),
    ("datum", "data"),
    ("schema", "schemas"),
    ("leaf", "leaves"),
    ("shelf", "shelves"),
];

/// Words that are their own plural.
const ALWAYS_THE_SAME: [&str; 11] = [
    "data",
    "metadata",
    "series",
    "species",
    "sheep",
    "fish",
    "equipment",
    "information",
    "news",
    "redis",
    "dns",
];

/// The plural of a word in lower case. Only its end counts: `dbschema` becomes `dbschemas`.
///
/// ```
/// # use windlass_sdk::scaffold::plural;
/// assert_eq!(plural("memcached"), "memcacheds");
/// assert_eq!(plural("policy"), "policies");
/// assert_eq!(plural("proxy"), "proxies");
/// assert_eq!(plural("gateway"), "gateways");
/// ```
pub fn plural(word: &str) -> String {
    if ALWAYS_THE_SAME.iter().any(|same| word.ends_with(same)) {
        return word.to_owned();
    }
    for (one, many) in IRREGULAR {
        if let Some(before) = word.strip_suffix(one)
            // `human` ends like `man`, and is none.
            && (before.is_empty() || one.len() > 3)
        {
            return format!("{before}{many}");
        }
    }
    if let Some(stem) = word.strip_suffix('y')
        && !stem.ends_with(['a', 'e', 'i', 'o', 'u'])
        && !stem.is_empty()
    {
        return format!("{stem}ies");
    }
    if let Some(stem) = word.strip_suffix("sis") {
        return format!("{stem}ses");
    }
    match ["s", "x", "z", "ch", "sh"].iter().any(|end| word.ends_with(end)) {
        true => format!("{word}es"),
        false => format!("{word}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plurals_are_those_that_people_expect() {
        for (one, many) in [
            ("memcached", "memcacheds"),
            ("policy", "policies"),
            ("networkpolicy", "networkpolicies"),
            ("gateway", "gateways"),
            ("ingress", "ingresses"),
            ("box", "boxes"),
            ("branch", "branches"),
            ("mesh", "meshes"),
            ("analysis", "analyses"),
            ("status", "statuses"),
            ("index", "indices"),
            ("searchindex", "searchindices"),
            ("person", "people"),
            ("human", "humans"),
            ("series", "series"),
            ("y", "ys"),
            ("type", "types"),
            ("redis", "redis"),
        ] {
            assert_eq!(plural(one), many);
        }
    }
}
