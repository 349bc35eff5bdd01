//! Versions and constraints on them, as Masterminds/semver v3 has them: what Helm and Sprig compare versions with.

use crate::go::quote::quote;
use regex::Regex;
use std::cmp::Ordering;
use std::fmt;
use std::sync::LazyLock;

/// A semantic version; minor and patch may be left out, and a `v` may lead it.
#[derive(Clone, Debug)]
pub struct Version {
    /// The first number.
    pub major: u64,
    /// The second.
    pub minor: u64,
    /// The third.
    pub patch: u64,
    /// What stands behind `-`.
    pub prerelease: String,
    /// What stands behind `+`.
    pub metadata: String,
    original: String,
}

const LONGEST: usize = 256;

#[allow(clippy::expect_used)] // constant patterns
static VERSION: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        r"^v?(0|[1-9][0-9]*)(?:\.(0|[1-9][0-9]*))?(?:\.(0|[1-9][0-9]*))?",
        r"(?:-((?:0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*)(?:\.(?:0|[1-9][0-9]*|[0-9]*[a-zA-Z-][0-9a-zA-Z-]*))*))?",
        r"(?:\+([0-9a-zA-Z-]+(?:\.[0-9a-zA-Z-]+)*))?$"
    ))
    .expect("the pattern is constant")
});

impl Version {
    /// A version of three numbers.
    #[must_use]
    pub fn new(major: u64, minor: u64, patch: u64) -> Self {
        let original = format!("{major}.{minor}.{patch}");
        Self { major, minor, patch, prerelease: String::new(), metadata: String::new(), original }
    }

    /// Reads a version.
    ///
    /// # Errors
    /// If it is none, in Go's words.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > LONGEST {
            return Err(format!("version string is too long (max {LONGEST} bytes)"));
        }
        let Some(parts) = VERSION.captures(text) else { return Err(mistake(text)) };
        let part = |at: usize| parts.get(at).map_or("", |part| part.as_str());
        let number = |at: usize| match part(at) {
            "" => Ok(0),
            digits => digits.parse::<u64>().map_err(|_| {
                let digits = quote(digits.as_bytes());
                format!(
                    "error parsing version segment: strconv.ParseUint: parsing {digits}: value out of range"
                )
            }),
        };
        Ok(Self {
            major: number(1)?,
            minor: number(2)?,
            patch: number(3)?,
            prerelease: part(4).into(),
            metadata: part(5).into(),
            original: text.into(),
        })
    }

    /// As it was written.
    #[must_use]
    pub fn original(&self) -> &str {
        &self.original
    }

    /// Which of both is the later one? Metadata does not count.
    #[must_use]
    pub fn compare(&self, other: &Self) -> Ordering {
        (self.major, self.minor, self.patch)
            .cmp(&(other.major, other.minor, other.patch))
            .then_with(|| prereleases(&self.prerelease, &other.prerelease))
    }
}

/// Go tells these mistakes apart.
fn mistake(text: &str) -> String {
    let rest = text.strip_prefix('v').unwrap_or(text);
    let core = &rest[..rest.find(['-', '+']).unwrap_or(rest.len())];
    let numbers: Vec<&str> = core.split('.').collect();
    let all_digits =
        numbers.iter().all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()));
    if all_digits && numbers.len() <= 3 {
        if numbers.iter().any(|part| part.len() > 1 && part.starts_with('0')) {
            return "version segment starts with 0".into();
        }
        if let Some((_, prerelease)) = rest.split_once('+').map_or(rest, |(before, _)| before).split_once('-')
        {
            let zero = |part: &str| {
                part.len() > 1 && part.starts_with('0') && part.bytes().all(|byte| byte.is_ascii_digit())
            };
            if prerelease.split('.').any(zero) {
                return "version segment starts with 0".into();
            }
        }
    }
    "invalid semantic version".into()
}

fn prereleases(a: &str, b: &str) -> Ordering {
    match (a.is_empty(), b.is_empty()) {
        (true, true) => return Ordering::Equal,
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        _ => {}
    }
    let (mut a, mut b) = (a.split('.'), b.split('.'));
    loop {
        let order = match (a.next(), b.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => Ordering::Less,
            (Some(_), None) => Ordering::Greater,
            (Some(a), Some(b)) => match (a.parse::<u64>(), b.parse::<u64>()) {
                (Ok(a), Ok(b)) => a.cmp(&b),
                (Ok(_), Err(_)) => Ordering::Less,
                (Err(_), Ok(_)) => Ordering::Greater,
                (Err(_), Err(_)) => a.cmp(b),
            },
        };
        if order.is_ne() {
            return order;
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)?;
        if !self.prerelease.is_empty() {
            write!(f, "-{}", self.prerelease)?;
        }
        if !self.metadata.is_empty() {
            write!(f, "+{}", self.metadata)?;
        }
        Ok(())
    }
}

/// Constraints such as `>= 1.2, < 2 || ~3.1`.
#[derive(Clone, Debug)]
pub struct Constraints(Vec<Vec<Constraint>>);

#[derive(Clone, Debug)]
struct Constraint {
    operator: String,
    version: Version,
    /// Parts were left out, or are `x`.
    dirty: bool,
    minor_dirty: bool,
    patch_dirty: bool,
}

const PARTS: &str = r"v?([0-9|x|X|\*]+)(\.[0-9|x|X|\*]+)?(\.[0-9|x|X|\*]+)?(-([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?(\+([0-9A-Za-z\-]+(\.[0-9A-Za-z\-]+)*))?";
const OPERATORS: &str = r"=||!=|>|<|>=|=>|<=|=<|~|~>|\^";

#[allow(clippy::expect_used)]
fn pattern(text: String) -> Regex {
    Regex::new(&text).expect("the pattern is constant")
}

static ONE: LazyLock<Regex> =
    LazyLock::new(|| pattern(format!(r"^[\t\n\x0c\r ]*({OPERATORS})[\t\n\x0c\r ]*({PARTS})[\t\n\x0c\r ]*$")));
static RANGE: LazyLock<Regex> = LazyLock::new(|| {
    pattern(format!(r"[\t\n\x0c\r ]*({PARTS})[\t\n\x0c\r ]+-[\t\n\x0c\r ]+({PARTS})[\t\n\x0c\r ]*"))
});
static FIND: LazyLock<Regex> = LazyLock::new(|| pattern(format!(r"({OPERATORS})[\t\n\x0c\r ]*({PARTS})")));
static VALID: LazyLock<Regex> = LazyLock::new(|| {
    let (space, one) = (r"[\t\n\x0c\r ]", format!(r"({OPERATORS})[\t\n\x0c\r ]*({PARTS})"));
    pattern(format!(r"^({space}*{one}{space}*)((?:{space}+|,{space}*){one}{space}*)*$"))
});

impl Constraints {
    /// Reads constraints.
    ///
    /// # Errors
    /// If they are none, in Go's words.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > 512 {
            return Err("constraint string is too long (max 512 bytes)".into());
        }
        let text = RANGE.replace_all(text, |range: &regex::Captures<'_>| {
            format!(">= {}, <= {} ", &range[1], range.get(11).map_or("", |part| part.as_str()))
        });
        let groups: Vec<&str> = text.split("||").collect();
        if groups.len() > 32 {
            return Err("too many constraint groups (max 32)".into());
        }
        let mut all = Vec::new();
        for group in groups {
            if !VALID.is_match(group) {
                return Err(format!("improper constraint: {}", quote(group.as_bytes())));
            }
            let found: Result<Vec<_>, _> =
                FIND.find_iter(group).map(|one| Constraint::parse(one.as_str())).collect();
            all.push(found?);
        }
        Ok(Self(all))
    }

    /// Does a version meet one of the groups?
    #[must_use]
    pub fn check(&self, version: &Version) -> bool {
        self.0.iter().any(|group| {
            let prereleases = group.iter().any(|one| !one.version.prerelease.is_empty());
            group.iter().all(|one| one.check(version, prereleases))
        })
    }
}

impl Constraint {
    fn parse(text: &str) -> Result<Self, String> {
        let improper = || format!("improper constraint: {}", quote(text.as_bytes()));
        let parts = ONE.captures(text).ok_or_else(improper)?;
        let part = |at: usize| parts.get(at).map_or("", |part| part.as_str());
        let any = |part: &str| matches!(part.trim_start_matches('.'), "" | "x" | "X" | "*");
        let tail = part(6);
        let (text, dirty, minor_dirty, patch_dirty) = if any(part(3)) {
            (format!("0.0.0{tail}"), true, false, false)
        } else if any(part(4)) {
            (format!("{}.0.0{tail}", part(3)), true, true, false)
        } else if any(part(5)) {
            (format!("{}{}.0{tail}", part(3), part(4)), true, false, true)
        } else {
            (part(2).to_owned(), false, false, false)
        };
        let version = Version::parse(&text).map_err(|_| "constraint parser error")?;
        Ok(Self { operator: part(1).into(), version, dirty, minor_dirty, patch_dirty })
    }

    fn check(&self, version: &Version, prereleases_too: bool) -> bool {
        if !version.prerelease.is_empty() && !prereleases_too {
            return false;
        }
        let wanted = &self.version;
        let order = version.compare(wanted);
        match self.operator.as_str() {
            "" | "=" if self.dirty => self.tilde(version),
            "" | "=" => order.is_eq(),
            "!=" => self.differs(version),
            ">" if self.dirty => match version.major.cmp(&wanted.major) {
                Ordering::Greater => true,
                Ordering::Less => false,
                Ordering::Equal if self.minor_dirty => false,
                Ordering::Equal if self.patch_dirty => version.minor > wanted.minor,
                Ordering::Equal => order.is_gt(),
            },
            ">" => order.is_gt(),
            "<" => order.is_lt(),
            ">=" | "=>" => order.is_ge(),
            "<=" | "=<" if self.dirty => {
                version.major < wanted.major
                    || version.major == wanted.major && (version.minor <= wanted.minor || self.minor_dirty)
            }
            "<=" | "=<" => order.is_le(),
            "~" | "~>" => self.tilde(version),
            _ => self.caret(version),
        }
    }

    fn differs(&self, version: &Version) -> bool {
        let wanted = &self.version;
        if !self.dirty {
            return version.compare(wanted).is_ne();
        }
        if wanted.major != version.major {
            return true;
        }
        if wanted.minor != version.minor && !self.minor_dirty {
            return true;
        }
        if self.minor_dirty {
            return false;
        }
        if wanted.patch != version.patch && !self.patch_dirty {
            return true;
        }
        if self.patch_dirty {
            return (!version.prerelease.is_empty() || !wanted.prerelease.is_empty())
                && prereleases(&version.prerelease, &wanted.prerelease).is_ne();
        }
        version.compare(wanted).is_ne()
    }

    fn tilde(&self, version: &Version) -> bool {
        let wanted = &self.version;
        if version.compare(wanted).is_lt() {
            return false;
        }
        if (wanted.major, wanted.minor, wanted.patch) == (0, 0, 0) && !self.minor_dirty && !self.patch_dirty {
            return true;
        }
        version.major == wanted.major && (version.minor == wanted.minor || self.minor_dirty)
    }

    fn caret(&self, version: &Version) -> bool {
        let wanted = &self.version;
        if version.compare(wanted).is_lt() {
            return false;
        }
        if wanted.major > 0 || self.minor_dirty {
            return version.major == wanted.major;
        }
        if version.major > 0 {
            return false;
        }
        if wanted.minor > 0 || self.patch_dirty {
            return version.minor == wanted.minor;
        }
        if version.minor > 0 {
            return false;
        }
        version.patch == wanted.patch
    }
}
