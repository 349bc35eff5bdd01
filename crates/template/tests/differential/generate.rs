//! Makes templates out of a number: every function with arguments of every type, within every action.

use windlass_template::functions::Functions;

/// What depends on time, chance, keys or the order of Go's maps is not compared as text.
const BY_PROPERTY: &[&str] = &[
    "now",
    "date",
    "dateInZone",
    "date_in_zone",
    "htmlDate",
    "htmlDateInZone",
    "ago",
    "durationRound",
    "randInt",
    "randAlpha",
    "randAlphaNum",
    "randAscii",
    "randNumeric",
    "randBytes",
    "uuidv4",
    "shuffle",
    "keys",
    "values",
    "pluck",
    "genPrivateKey",
    "genCA",
    "genCAWithKey",
    "genSelfSignedCert",
    "genSelfSignedCertWithKey",
    "genSignedCert",
    "genSignedCertWithKey",
    "buildCustomCert",
    "bcrypt",
    "htpasswd",
    "encryptAES",
    "getHostByName",
    "derivePassword",
    // No such templates are there, or they are what is tested below.
    "include",
    "call",
];

const STRINGS: &[&str] = &[
    r#""""#,
    r#""a""#,
    r#""hello world""#,
    r#""Foo_Bar-baz 12x""#,
    r#""a,b,,c""#,
    r#"",""#,
    r#"".""#,
    r#""  x  ""#,
    r#""%s-%d|%v|%5.2f|%q""#,
    r#""1.2.3""#,
    r#""v1.4.0-beta.1""#,
    r#"">=1.2 <2 || ~3""#,
    r#""12""#,
    r#""-0x1F""#,
    r#""1e3""#,
    r#""3.00""#,
    r#""aGVsbG8=""#,
    r#""NBSWY3DP""#,
    r#""[a-z]+""#,
    r#""(\\w)(o*)""#,
    r#""${1}-$2""#,
    r#""é☃x""#,
    r#""https://a.b:1/c?d#e""#,
    r#""/a/../b//c.txt""#,
    r#""2006-01-02T15:04:05Z07:00""#,
    r#""2023-05-06""#,
    r#""1h30m""#,
    r#""{\"a\":[1,{\"b\":null}]}""#,
    r#""a: 1\nb:\n- x\n- 2.5\n""#,
    r#""yes""#,
    r#""null""#,
    r#""~""#,
    r#""it's \"q\"\n""#,
    r#""int""#,
    r#""string""#,
    r#""map""#,
    r#""slice""#,
    "`raw \\n`",
    r#""a = 1\n[b]\nc = \"x\"\n""#,
    ".Values.s",
    ".Values.e",
    ".Values.u",
    ".Values.num",
    ".Values.multi",
    ".Values.yaml",
    ".Values.json",
    ".Values.ver",
    ".Values.url",
    "(printf \"%d\" 3)",
];
const INTS: &[&str] = &["0", "1", "2", "3", "5", "7", "-1", "-3", "12", "100", "0x1f", "'a'"];
const FLOATS: &[&str] =
    &["0.0", "1.5", "-2.25", "1e3", ".Values.n", ".Values.f", ".Values.big", "1e21", "0.1"];
const BOOLS: &[&str] = &["true", "false", ".Values.t", ".Values.z"];
const MAPS: &[&str] = &[
    ".Values.d",
    ".Values.de",
    "(dict)",
    r#"(dict "a" 1 "b" "x")"#,
    r#"(dict "a" (dict "b" (list 1 2)))"#,
    ".Values.d.b",
    r#"(dict "scheme" "http" "host" "h" "path" "/p")"#,
];
const LISTS: &[&str] = &[
    ".Values.l",
    ".Values.ln",
    ".Values.le",
    ".Values.lm",
    "(list)",
    "(list 1 2 3)",
    r#"(list "b" "a" "b")"#,
    "(list (list 1) nil true 1.5)",
    "(until 4)",
    r#"(splitList "," "x,y,z")"#,
    "(list 3 \"a\" (dict \"k\" 1))",
];
const OTHERS: &[&str] = &[
    "nil",
    ".Values.nil",
    ".Values.missing",
    "(int64 5)",
    "(int 3)",
    "(float64 2)",
    "2i",
    r#"(split "," "a,b")"#,
    r#"(semver "1.2.3")"#,
    r#"(toDate "2006-01-02" "2023-05-06")"#,
    "(index .Values.s 1)",
    "$.Values",
    ".Values",
    "$.Values.d.k",
    ".Values.d.b.c",
    ".Chart.Name",
];

/// A generator of one seed.
pub struct Generator {
    state: u64,
    names: Vec<&'static str>,
}

impl Generator {
    pub fn new(seed: u64) -> Self {
        let mut names = Functions::helm().names();
        names.retain(|name| !BY_PROPERTY.contains(name));
        Self { state: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1), names }
    }

    fn below(&mut self, end: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        usize::try_from((self.state >> 11) % u64::try_from(end).expect("small")).expect("small")
    }

    fn one(&mut self, of: &[&'static str]) -> String {
        of[self.below(of.len())].to_owned()
    }

    fn any(&mut self) -> String {
        match self.below(12) {
            0..3 => self.one(STRINGS),
            3..5 => self.one(INTS),
            5 => self.one(FLOATS),
            6 => self.one(BOOLS),
            7 => self.one(MAPS),
            8..10 => self.one(LISTS),
            _ => self.one(OTHERS),
        }
    }

    fn argument(&mut self, letter: char, depth: usize) -> String {
        if self.below(12) == 0 {
            return self.any();
        }
        if depth > 0 && self.below(6) == 0 {
            return format!("({})", self.call(depth - 1));
        }
        match letter {
            's' => self.one(STRINGS),
            'i' => self.one(INTS),
            'f' => self.one(FLOATS),
            'b' => self.one(BOOLS),
            'm' => self.one(MAPS),
            'l' | 'L' => self.one(LISTS),
            't' => r#"(toDate "2006-01-02" "2023-05-06")"#.into(),
            'V' => r#"(semver "1.2.3")"#.into(),
            _ => self.any(),
        }
    }

    /// A call of some function.
    fn call(&mut self, depth: usize) -> String {
        let at = self.below(self.names.len());
        let name = self.names[at];
        let signature = Functions::helm().signature(name).expect("it is listed");
        let params = signature.split('>').next().unwrap_or_default();
        let mut letters: Vec<char> = params.chars().filter(|letter| *letter != '*').collect();
        if params.ends_with('*') {
            let last = letters.pop().unwrap_or('a');
            for _ in 0..self.below(4) {
                letters.push(last);
            }
        }
        match self.below(40) {
            0 => {
                letters.pop();
            }
            1 => letters.push('a'),
            _ => {}
        }
        let mut arguments: Vec<String> =
            letters.into_iter().map(|letter| self.argument(letter, depth)).collect();
        if self.below(4) == 0
            && let Some(last) = arguments.pop()
        {
            return format!("{last} | {name} {}", arguments.join(" ")).trim_end().to_owned();
        }
        format!("{name} {}", arguments.join(" ")).trim_end().to_owned()
    }

    fn action(&mut self, depth: usize) -> String {
        let call = self.call(2);
        if depth == 0 {
            return format!("{{{{ {call} }}}}");
        }
        let inner = self.action(depth - 1);
        match self.below(16) {
            0 => format!("{{{{- if {call} }}}} yes {inner} {{{{ else -}}}} no {{{{ end -}}}} ."),
            1 => format!("{{{{ with {call} }}}}[{{{{ . }}}}]{{{{ else }}}}none{{{{ end }}}}"),
            2 => {
                let list = self.one(LISTS);
                format!(
                    "{{{{ range $i, $e := {list} }}}}{{{{ $i }}}}={{{{ $e }}}};{inner}{{{{ else }}}}empty{{{{ end }}}}"
                )
            }
            3 => {
                let map = self.one(MAPS);
                format!(
                    "{{{{ range $k, $v := {map} }}}}{{{{ if eq $k \"b\" }}}}{{{{ continue }}}}{{{{ end }}}}{{{{ $k }}}}{{{{ end }}}}"
                )
            }
            4 => format!("{{{{ $x := {call} }}}}{{{{ $x | toJson }}}}{{{{ typeOf $x }}}}"),
            5 => format!(
                "{{{{ define \"t\" }}}}<{{{{ . }}}}>{{{{ end }}}}{{{{ include \"t\" ({call}) | quote }}}}{{{{ template \"t\" 1 }}}}"
            ),
            6 => format!(
                "{{{{ range 3 }}}}{{{{ . }}}}{{{{ if eq . 1 }}}}{{{{ break }}}}{{{{ end }}}}{{{{ end }}}}{inner}"
            ),
            7 => {
                let value = self.any();
                format!("{{{{ ({value}).a }}}}{{{{ printf \"%v %T %#v\" {value} {value} {value} }}}}")
            }
            8 => format!(
                "{{{{ tpl {} . }}}}",
                self.one(&[
                    "\"{{ .Values.s | upper }}\"",
                    "\"{{ .Values.nope.x }}\"",
                    "`{{ range .Values.l }}{{.}},{{ end }}`",
                    "\"{{\""
                ])
            ),
            9 => {
                let value = self.any();
                format!("{{{{ {value} | toYaml | nindent 2 }}}}")
            }
            10 => self.broken(),
            _ => format!("{{{{ {call} }}}}"),
        }
    }

    /// What may well be no template at all.
    fn broken(&mut self) -> String {
        let whole = format!("{{{{ if {} }}}}x{{{{ end }}}}", self.any());
        let at = self.below(whole.len());
        let mut cut: String = whole.chars().take(at).collect();
        cut.push_str(["", "}}", "{{ end }}", " | ", ")", "\"", ".x", "$y"][self.below(8)]);
        cut.extend(whole.chars().skip(at + self.below(3)));
        cut
    }

    pub fn template(&mut self) -> String {
        self.action(1)
    }
}
