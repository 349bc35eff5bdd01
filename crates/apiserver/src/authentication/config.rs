//! The file of `--authentication-config`, and the flags `--oidc-…` that say the same of one issuer.

use super::jwt_authenticator::{
    ALGORITHMS, ClaimMappings, ExtraMapping, JwtAuthenticator, Mapping, RequiredClaim, TrustedIssuer,
    UserValidationRule, ValidationRule, claims_variable, user_variable,
};
use crate::client::TrustedCertificates;
use crate::config_file::{self, InvalidConfigFile};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use windlass_schema::field::{FieldError, Path};
use windlass_schema::{Expression, VariableType, names};

const MOST_ISSUERS: usize = 64;

/// An AuthenticationConfiguration of `apiserver.config.k8s.io`, read and checked.
#[derive(Debug, Clone, Default)]
pub struct AuthenticationConfiguration {
    /// The trusted issuers of tokens.
    pub jwt: Vec<JwtAuthenticator>,
    /// Who shows nothing, if the file says anything about it.
    pub anonymous: Option<AnonymousConfiguration>,
}

/// Whether, and where, who shows nothing is `system:anonymous`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct AnonymousConfiguration {
    /// Whether it is at all.
    pub enabled: bool,
    /// The paths at which it is; all, without.
    pub conditions: Vec<AnonymousCondition>,
}

/// A path at which one may be anonymous.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct AnonymousCondition {
    /// As it is in a URL, whole.
    pub path: String,
}

/// What the flags `--oidc-…` say. What is not said is empty.
#[derive(Debug, Clone, Default)]
pub struct OidcFlags {
    /// `--oidc-issuer-url`
    pub issuer_url: String,
    /// `--oidc-client-id`
    pub client_id: String,
    /// The content of `--oidc-ca-file`
    pub ca: Option<String>,
    /// `--oidc-username-claim`; `sub`, if it is empty
    pub username_claim: String,
    /// `--oidc-username-prefix`
    pub username_prefix: String,
    /// `--oidc-groups-claim`
    pub groups_claim: String,
    /// `--oidc-groups-prefix`
    pub groups_prefix: String,
    /// `--oidc-signing-algs`; RS256, if there are none
    pub signing_algs: Vec<String>,
    /// `--oidc-required-claim`
    pub required_claims: Vec<(String, String)>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct File {
    #[serde(rename = "apiVersion")]
    _api_version: String,
    #[serde(rename = "kind")]
    _kind: String,
    jwt: Vec<Jwt>,
    anonymous: Option<AnonymousConfiguration>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Jwt {
    issuer: IssuerFields,
    claim_validation_rules: Vec<ClaimRule>,
    claim_mappings: Mappings,
    user_validation_rules: Vec<UserRule>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct IssuerFields {
    url: String,
    #[serde(rename = "discoveryURL")]
    discovery_url: String,
    certificate_authority: String,
    audiences: Vec<String>,
    audience_match_policy: String,
    egress_selector_type: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct ClaimRule {
    claim: String,
    required_value: String,
    expression: String,
    message: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct UserRule {
    expression: String,
    message: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Mappings {
    username: PrefixedClaim,
    groups: PrefixedClaim,
    uid: PrefixedClaim,
    extra: Vec<Extra>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct PrefixedClaim {
    claim: String,
    prefix: Option<String>,
    expression: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct Extra {
    key: String,
    value_expression: String,
}

impl AuthenticationConfiguration {
    /// Reads a file. The issuers of service account tokens cannot be among them.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn parse(text: &str, service_account_issuers: &[String]) -> Result<Self, InvalidConfigFile> {
        let file: File = config_file::read(text, "AuthenticationConfiguration")?;
        let root = Path::new("jwt");
        if file.jwt.len() > MOST_ISSUERS {
            let error = FieldError::too_many(&root, file.jwt.len(), MOST_ISSUERS);
            return Err(InvalidConfigFile::Invalid(error.to_string()));
        }
        let mut wrong = Wrong(Vec::new());
        let (mut urls, mut discovery_urls) = (BTreeSet::new(), BTreeSet::new());
        let mut jwt = Vec::new();
        for (index, fields) in file.jwt.iter().enumerate() {
            let path = root.index(index);
            let issuer = path.child("issuer");
            fields.issuer.validate(service_account_issuers, &issuer, &mut wrong);
            let mappings = fields.mappings(&path, &mut wrong);
            if !urls.insert(&fields.issuer.url) {
                wrong.push(FieldError::duplicate(&issuer.child("url"), fields.issuer.url.as_str()));
            }
            let discovery_url = &fields.issuer.discovery_url;
            if !discovery_url.is_empty() && !discovery_urls.insert(discovery_url) {
                wrong.push(FieldError::duplicate(&issuer.child("discoveryURL"), discovery_url.as_str()));
            }
            jwt.extend(mappings.map(|mappings| (fields, mappings)));
        }
        if let Some(anonymous) = &file.anonymous
            && !anonymous.enabled
            && !anonymous.conditions.is_empty()
        {
            let shown: Vec<Value> =
                anonymous.conditions.iter().map(|one| json!({"Path": one.path})).collect();
            let why = "enabled should be set to true when conditions are defined";
            wrong.push(FieldError::invalid(&Path::new("anonymous").child("conditions"), shown, why));
        }
        InvalidConfigFile::unless_empty(&wrong.0)?;
        let authenticators = jwt.into_iter().map(|(fields, mappings)| {
            let issuer = &fields.issuer;
            let given = |text: &'_ str| !text.is_empty();
            JwtAuthenticator::new(TrustedIssuer {
                url: &issuer.url,
                discovery_url: Some(issuer.discovery_url.as_str()).filter(|url| given(url)),
                certificate_authority: Some(issuer.certificate_authority.as_str()).filter(|pem| given(pem)),
                audiences: issuer.audiences.clone(),
                algorithms: ALGORITHMS.map(str::to_owned).to_vec(),
                mappings,
            })
            .map_err(|error| InvalidConfigFile::Invalid(error.to_string()))
        });
        Ok(Self { jwt: authenticators.collect::<Result<_, _>>()?, anonymous: file.anonymous })
    }
}

impl OidcFlags {
    /// The issuer that they describe; none if they say nothing.
    ///
    /// # Errors
    /// What is wrong with them.
    pub fn authenticator(&self) -> Result<Option<JwtAuthenticator>, InvalidConfigFile> {
        let invalid = |why: String| InvalidConfigFile::Invalid(why);
        if self.issuer_url.is_empty() && self.client_id.is_empty() {
            return Ok(None);
        }
        if self.issuer_url.is_empty() || self.client_id.is_empty() {
            return Err(invalid(
                "oidc-issuer-url and oidc-client-id must be specified together when any oidc-* flags are set"
                    .to_owned(),
            ));
        }
        let mut wrong = Wrong(Vec::new());
        validate_url(&self.issuer_url, &[], &Path::new("issuer").child("url"), &mut wrong);
        InvalidConfigFile::unless_empty(&wrong.0)?;
        let default = ["RS256".to_owned()];
        let algorithms = if self.signing_algs.is_empty() { &default[..] } else { &self.signing_algs };
        if let Some(unknown) = algorithms.iter().find(|name| !ALGORITHMS.contains(&name.as_str())) {
            return Err(invalid(format!("oidc: unsupported signing alg: {unknown:?}")));
        }
        let username_claim = if self.username_claim.is_empty() { "sub" } else { &self.username_claim };
        // So that users of different issuers are told apart, but for those who are known by their address.
        let username_prefix = match self.username_prefix.as_str() {
            "" if username_claim != "email" => format!("{}#", self.issuer_url),
            "-" => String::new(),
            prefix => prefix.to_owned(),
        };
        let claim =
            |name: &str, prefix: &str| Mapping::Claim { name: name.to_owned(), prefix: prefix.to_owned() };
        let required = self.required_claims.iter();
        let mappings = ClaimMappings {
            username: claim(username_claim, &username_prefix),
            groups: (!self.groups_claim.is_empty()).then(|| claim(&self.groups_claim, &self.groups_prefix)),
            uid: None,
            extra: Vec::new(),
            required: required
                .map(|(name, value)| RequiredClaim { name: name.clone(), value: value.clone() })
                .collect(),
            rules: Vec::new(),
            user_rules: Vec::new(),
        };
        JwtAuthenticator::new(TrustedIssuer {
            url: &self.issuer_url,
            discovery_url: None,
            certificate_authority: self.ca.as_deref(),
            audiences: vec![self.client_id.clone()],
            algorithms: algorithms.to_vec(),
            mappings,
        })
        .map(Some)
        .map_err(|error| invalid(error.to_string()))
    }
}

/// All that is wrong.
struct Wrong(Vec<FieldError>);

impl Wrong {
    fn push(&mut self, error: FieldError) {
        self.0.push(error);
    }

    /// An expression over a variable, if it can be compiled, and evaluates to a boolean if that is wanted.
    fn compile(
        &mut self,
        source: &str,
        variable: (&str, VariableType<'_>),
        boolean: bool,
        path: &Path,
    ) -> Option<Expression> {
        let why = match Expression::compile(source, &[variable]) {
            Ok(expression) if boolean && expression.output() != "bool" => "must evaluate to bool".to_owned(),
            Ok(expression) => return Some(expression),
            Err(why) => format!("compilation failed: {why}"),
        };
        self.push(FieldError::invalid(path, source, why));
        None
    }
}

impl IssuerFields {
    fn validate(&self, disallowed: &[String], path: &Path, wrong: &mut Wrong) {
        match self.url.is_empty() {
            true => wrong.push(FieldError::required(&path.child("url"), "")),
            false => validate_url(&self.url, disallowed, &path.child("url"), wrong),
        }
        if !self.discovery_url.is_empty() {
            let path = path.child("discoveryURL");
            let plain = |url: &str| url.trim_end_matches('/').to_owned();
            if !self.url.is_empty() && plain(&self.url) == plain(&self.discovery_url) {
                let why = "discoveryURL must be different from URL";
                wrong.push(FieldError::invalid(&path, self.discovery_url.as_str(), why));
            }
            validate_url(&self.discovery_url, &[], &path, wrong);
        }
        self.validate_audiences(path, wrong);
        if !self.certificate_authority.is_empty()
            && let Err(error) = TrustedCertificates::read(&self.certificate_authority)
        {
            let path = path.child("certificateAuthority");
            wrong.push(FieldError::invalid(&path, "<omitted>", error.to_string()));
        }
        if !self.egress_selector_type.is_empty() {
            let why = match self.egress_selector_type.as_str() {
                "controlplane" | "cluster" => "there is no egress selector here",
                _ => "egress selector must be either controlplane or cluster",
            };
            let path = path.child("egressSelectorType");
            wrong.push(FieldError::invalid(&path, self.egress_selector_type.as_str(), why));
        }
    }

    fn validate_audiences(&self, path: &Path, wrong: &mut Wrong) {
        let audiences = path.child("audiences");
        if self.audiences.is_empty() {
            let why = format!("at least one {audiences} is required");
            wrong.push(FieldError::required(&audiences, why));
            return;
        }
        let mut seen = BTreeSet::new();
        for (index, audience) in self.audiences.iter().enumerate() {
            if audience.is_empty() {
                wrong.push(FieldError::required(&audiences.index(index), ""));
            }
            if !seen.insert(audience) {
                wrong.push(FieldError::duplicate(&audiences.index(index), audience.as_str()));
            }
        }
        let policy = self.audience_match_policy.as_str();
        let why = match (self.audiences.len(), policy) {
            (_, "MatchAny") | (1, "") => return,
            (1, _) => "audienceMatchPolicy must be empty or MatchAny for single audience",
            _ => "audienceMatchPolicy must be MatchAny for multiple audiences",
        };
        wrong.push(FieldError::invalid(&path.child("audienceMatchPolicy"), policy, why));
    }
}

fn validate_url(url: &str, disallowed: &[String], path: &Path, wrong: &mut Wrong) {
    let mut invalid = |why: String| wrong.push(FieldError::invalid(path, url, why));
    if disallowed.iter().any(|known| known == url) {
        invalid(format!("URL must not overlap with disallowed issuers: [{}]", disallowed.join(" ")));
    }
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    if scheme != "https" {
        invalid("URL scheme must be https".to_owned());
    }
    let (rest, fragment) = rest.split_once('#').unwrap_or((rest, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let authority = rest.split('/').next().unwrap_or_default();
    if authority.contains('@') {
        invalid("URL must not contain a username or password".to_owned());
    }
    if !query.is_empty() {
        invalid("URL must not contain a query".to_owned());
    }
    if !fragment.is_empty() {
        invalid("URL must not contain a fragment".to_owned());
    }
}

impl Jwt {
    /// How claims become a user; none if something is wrong with it.
    fn mappings(&self, path: &Path, wrong: &mut Wrong) -> Option<ClaimMappings> {
        let before = wrong.0.len();
        let (required, rules) = self.claim_rules(&path.child("claimValidationRules"), wrong);
        let fields = &self.claim_mappings;
        let mappings = path.child("claimMappings");
        let username = fields.username.mapping(&mappings.child("username"), true, true, wrong);
        let groups = fields.groups.mapping(&mappings.child("groups"), false, true, wrong);
        let uid = fields.uid.mapping(&mappings.child("uid"), false, false, wrong);
        let extra = self.extra(&mappings.child("extra"), wrong);
        let user_rules = self.user_rules(&path.child("userValidationRules"), wrong);
        let uses = |expression: &Expression, claim: &str| expression.selects("claims", claim);
        if let Some(Mapping::Expression(expression)) = &username
            && uses(expression, "email")
            && !uses(expression, "email_verified")
            && !extra.iter().any(|one| uses(&one.expression, "email_verified"))
            && !rules.iter().any(|rule| uses(&rule.expression, "email_verified"))
        {
            let why = "claims.email_verified must be used in claimMappings.username.expression or \
                       claimMappings.extra[*].valueExpression or claimValidationRules[*].expression when claims.email is \
                       used in claimMappings.username.expression";
            let path = mappings.child("username").child("expression");
            wrong.push(FieldError::invalid(&path, expression.source(), why));
        }
        let username = username.filter(|_| wrong.0.len() == before)?;
        Some(ClaimMappings { username, groups, uid, extra, required, rules, user_rules })
    }

    fn claim_rules(&self, path: &Path, wrong: &mut Wrong) -> (Vec<RequiredClaim>, Vec<ValidationRule>) {
        let (mut required, mut rules) = (Vec::new(), Vec::new());
        let (mut claims, mut expressions) = (BTreeSet::new(), BTreeSet::new());
        for (index, rule) in self.claim_validation_rules.iter().enumerate() {
            let path = path.index(index);
            let ClaimRule { claim, required_value, expression, message } = rule;
            match (claim.is_empty(), expression.is_empty()) {
                (false, false) => {
                    let why = "claim and expression can't both be set";
                    wrong.push(FieldError::invalid(&path, claim.as_str(), why));
                }
                (true, true) => {
                    wrong.push(FieldError::required(&path, "claim or expression is required"));
                }
                (false, true) => {
                    if !message.is_empty() {
                        let why = "may not be specified when claim is set";
                        wrong.push(FieldError::invalid(&path.child("message"), message.as_str(), why));
                    }
                    if !claims.insert(claim) {
                        wrong.push(FieldError::duplicate(&path.child("claim"), claim.as_str()));
                    }
                    required.push(RequiredClaim { name: claim.clone(), value: required_value.clone() });
                }
                (true, false) => {
                    if !required_value.is_empty() {
                        let path = path.child("requiredValue");
                        let why = "may not be specified when expression is set";
                        wrong.push(FieldError::invalid(&path, required_value.as_str(), why));
                    }
                    let path = path.child("expression");
                    if !expressions.insert(expression) {
                        wrong.push(FieldError::duplicate(&path, expression.as_str()));
                        continue;
                    }
                    let compiled = wrong.compile(expression, claims_variable(), true, &path);
                    rules.extend(
                        compiled.map(|expression| ValidationRule { expression, message: message.clone() }),
                    );
                }
            }
        }
        (required, rules)
    }

    fn user_rules(&self, path: &Path, wrong: &mut Wrong) -> Vec<UserValidationRule> {
        let (mut rules, mut seen) = (Vec::new(), BTreeSet::new());
        for (index, UserRule { expression, message }) in self.user_validation_rules.iter().enumerate() {
            let path = path.index(index).child("expression");
            if expression.is_empty() {
                wrong.push(FieldError::required(&path, ""));
            } else if !seen.insert(expression) {
                wrong.push(FieldError::duplicate(&path, expression.as_str()));
            } else if let Some(expression) = wrong.compile(expression, user_variable(), true, &path) {
                rules.push(UserValidationRule(ValidationRule { expression, message: message.clone() }));
            }
        }
        rules
    }

    fn extra(&self, path: &Path, wrong: &mut Wrong) -> Vec<ExtraMapping> {
        let (mut extra, mut seen) = (Vec::new(), BTreeSet::new());
        for (index, Extra { key, value_expression }) in self.claim_mappings.extra.iter().enumerate() {
            let path = path.index(index);
            let place = path.child("key");
            for error in names::domain_prefixed_path(&place, key) {
                wrong.push(error);
            }
            if *key != key.to_lowercase() {
                wrong.push(FieldError::invalid(&place, key.as_str(), "must be lowercase"));
            }
            let domain = key.split_once('/').map_or("", |(domain, _)| domain);
            let reserved = |suffix: &str| domain == suffix || domain.ends_with(&format!(".{suffix}"));
            if reserved("kubernetes.io") || reserved("k8s.io") {
                let why = "k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use";
                wrong.push(FieldError::invalid(&place, key.as_str(), why));
            }
            if !seen.insert(key) {
                wrong.push(FieldError::duplicate(&place, key.as_str()));
                continue;
            }
            let place = path.child("valueExpression");
            if value_expression.is_empty() {
                wrong.push(FieldError::required(&place, ""));
                continue;
            }
            let compiled = wrong.compile(value_expression, claims_variable(), false, &place);
            extra.extend(compiled.map(|expression| ExtraMapping { key: key.clone(), expression }));
        }
        extra
    }
}

impl PrefixedClaim {
    /// Where a name comes from, if anything says so.
    fn mapping(&self, path: &Path, required: bool, prefixed: bool, wrong: &mut Wrong) -> Option<Mapping> {
        let Self { claim, prefix, expression } = self;
        match (claim.is_empty(), expression.is_empty()) {
            (false, false) => {
                wrong.push(FieldError::invalid(path, "", "claim and expression can't both be set"));
                None
            }
            (true, true) => {
                if required {
                    wrong.push(FieldError::required(path, "claim or expression is required"));
                }
                None
            }
            (true, false) => {
                if let Some(prefix) = prefix {
                    let why = "may not be specified when expression is set";
                    wrong.push(FieldError::invalid(&path.child("prefix"), prefix.as_str(), why));
                }
                let path = path.child("expression");
                wrong.compile(expression, claims_variable(), false, &path).map(Mapping::Expression)
            }
            (false, true) => {
                if prefixed && prefix.is_none() {
                    let why = "prefix is required when claim is set. It can be set to an empty string to disable prefixing";
                    wrong.push(FieldError::required(&path.child("prefix"), why));
                }
                let prefix = prefix.clone().unwrap_or_default();
                Some(Mapping::Claim { name: claim.clone(), prefix })
            }
        }
    }
}
