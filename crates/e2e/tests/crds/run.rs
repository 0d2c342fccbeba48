//! Sends the corpus of one provider to its API server and keeps what came of it. Entry: [`results`].

use std::sync::OnceLock;

use anyhow::{Context as _, Result, bail};
use api::provider::Provider;
use http::Method;
use serde_json::{Value, json};

use crate::cluster::{Cluster, Reply, cluster, text, versions};
use crate::corpus::{self, Case, File, Verdict};

/// What the API server said about the whole corpus of one provider.
#[derive(Default)]
pub(crate) struct Results {
    pub(crate) cases: usize,
    /// Every difference between the corpus and the API server, ready to be printed.
    pub(crate) mismatches: Vec<String>,
    pub(crate) accepted: Vec<Accepted>,
    pub(crate) refused: Vec<Refused>,
}

/// An object that the API server stored, or would have stored.
pub(crate) struct Accepted {
    pub(crate) endpoint: Endpoint,
    pub(crate) case: String,
    pub(crate) object: Value,
    /// Whether an older object was there to be compared with.
    pub(crate) is_update: bool,
}

/// One thing that the API server found wrong with an object.
pub(crate) struct Refused {
    pub(crate) endpoint: Endpoint,
    pub(crate) field: String,
    pub(crate) message: String,
}

/// Where objects of one version of a kind are sent.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Endpoint {
    /// The name of the CRD, such as `nodepools.karpenter.sh`.
    pub(crate) crd: String,
    pub(crate) version: String,
    /// The URL path of the collection.
    pub(crate) path: String,
    api_version: String,
    /// What the API server warns of whenever the version is used.
    deprecation: Option<String>,
}

/// The results of one provider, found out once.
pub(crate) fn results(provider: Provider) -> &'static Results {
    static RESULTS: [OnceLock<Results>; 3] = [const { OnceLock::new() }; 3];
    let index = Provider::ALL.iter().position(|known| *known == provider).expect("every provider is known");
    RESULTS[index].get_or_init(|| run(provider).expect("the corpus can be sent"))
}

fn run(provider: Provider) -> Result<Results> {
    let cluster = cluster(provider);
    let mut results = Results::default();
    for file in corpus::load(provider)? {
        for endpoint in endpoints(cluster, &file.object).with_context(|| file.name.clone())? {
            for case in &file.cases {
                // A case with a version of its own is about that version only.
                let version = &case.object(&file)["apiVersion"];
                if *version != file.object["apiVersion"] && *version != endpoint.api_version {
                    continue;
                }
                results.cases += 1;
                let mut trial = Trial { cluster, endpoint: &endpoint, results: &mut results };
                if let Some(problem) = trial.run(&file, case)? {
                    let (name, version) = (&file.name, &endpoint.version);
                    results.mismatches.push(format!("{name} ({version}): {}\n{problem}", case.name));
                }
            }
        }
    }
    Ok(results)
}

/// The versions in which the objects of a file are sent: all that the CRD serves.
pub(crate) fn endpoints(cluster: &Cluster, object: &Value) -> Result<Vec<Endpoint>> {
    let (group, kind) = (text(object, "/apiVersion").split('/').next(), text(object, "/kind"));
    let crd = cluster
        .crds
        .iter()
        .find(|crd| Some(text(crd, "/spec/group")) == group && text(crd, "/spec/names/kind") == kind)
        .context("no CRD is for the file's object")?;
    let (group, plural) = (text(crd, "/spec/group"), text(crd, "/spec/names/plural"));
    let namespace = if text(crd, "/spec/scope") == "Namespaced" { "namespaces/default/" } else { "" };
    let endpoint = |version: &Value| {
        let name = text(version, "/name");
        let warning = version.get("deprecationWarning").and_then(Value::as_str);
        Endpoint {
            crd: text(crd, "/metadata/name").to_owned(),
            version: name.to_owned(),
            path: format!("/apis/{group}/{name}/{namespace}{plural}"),
            api_version: format!("{group}/{name}"),
            deprecation: warning.map(|warning| format!("299 - \"{warning}\"")),
        }
    };
    Ok(versions(crd).iter().map(endpoint).collect())
}

struct Trial<'a> {
    cluster: &'a Cluster,
    endpoint: &'a Endpoint,
    results: &'a mut Results,
}

impl Trial<'_> {
    /// Runs one case and returns how it differs from what the corpus says.
    fn run(&mut self, file: &File, case: &Case) -> Result<Option<String>> {
        let mut object = case.object(file);
        object["apiVersion"] = json!(self.endpoint.api_version);
        let path = &self.endpoint.path;
        if case.is_about_creation() {
            let reply = self.send(Method::POST, &format!("{path}?dryRun=All"), &object)?;
            return self.judge(case, reply);
        }
        let reply = self.send(Method::POST, &format!("{path}?fieldManager=crds"), &object)?;
        if !reply.is_success() {
            return Ok(Some(format!("  expected: to be created first\n  got: {}", reply.message())));
        }
        let created = reply.body.clone();
        let own_path = format!("{path}/{}", text(&created, "/metadata/name"));
        let mut problem = self.judge_warnings(&reply);
        self.accept(case, reply.body, false);

        let mut changed = created;
        let (target, change) = match (&case.update, &case.status) {
            (Some(update), _) => (format!("{own_path}?fieldManager=crds"), update.clone()),
            (_, Some(status)) => (format!("{own_path}/status?fieldManager=crds"), json!({"status": status})),
            _ => bail!("a case that is not about creation changes something"),
        };
        corpus::merge(&mut changed, &change);
        let reply = self.send(Method::PUT, &target, &changed)?;
        let verdict = self.judge(case, reply)?;
        let reply = self.cluster.send(Method::DELETE, &own_path, None)?;
        if !reply.is_success() {
            bail!("{own_path} cannot be deleted: {}", reply.message());
        }
        problem = problem.or(verdict);
        Ok(problem)
    }

    /// Unknown fields are refused, so that a misspelt field in the corpus is seen.
    fn send(&self, method: Method, path: &str, object: &Value) -> Result<Reply> {
        self.cluster.send(method, &format!("{path}&fieldValidation=Strict"), Some(object))
    }

    fn judge(&mut self, case: &Case, reply: Reply) -> Result<Option<String>> {
        let problem = self.judge_warnings(&reply);
        let got = match reply.code {
            200 | 201 => "accepted".to_owned(),
            400 | 422 => format!("refused: {}", reply.message()),
            code => bail!("{}: {}: HTTP status {code}: {}", self.endpoint.path, case.name, reply.body),
        };
        let expected = match case.verdict() {
            Verdict::Accepted if reply.is_success() => {
                let difference =
                    case.stored.as_ref().and_then(|stored| missing(stored, &reply.body, "the object"));
                self.accept(case, reply.body, !case.is_about_creation());
                return Ok(difference.or(problem));
            }
            Verdict::Refused(texts) if !reply.is_success() => {
                self.refuse(&reply);
                let absent: Vec<_> = texts.iter().filter(|text| !reply.message().contains(*text)).collect();
                if absent.is_empty() {
                    return Ok(problem);
                }
                format!("refused with {absent:?}")
            }
            Verdict::Accepted => "accepted".to_owned(),
            Verdict::Refused(texts) => format!("refused with {texts:?}"),
        };
        Ok(Some(format!("  expected: {expected}\n  got: {got}")))
    }

    /// The only warning allowed is that of a deprecated version.
    fn judge_warnings(&self, reply: &Reply) -> Option<String> {
        let expected = self.endpoint.deprecation.as_slice();
        let as_expected = reply.warnings.is_empty() && !reply.is_success() || reply.warnings == expected;
        (!as_expected).then(|| format!("  expected: the warnings {expected:?}\n  got: {:?}", reply.warnings))
    }

    fn accept(&mut self, case: &Case, object: Value, is_update: bool) {
        let (endpoint, case) = (self.endpoint.clone(), case.name.clone());
        self.results.accepted.push(Accepted { endpoint, case, object, is_update });
    }

    fn refuse(&mut self, reply: &Reply) {
        let causes = reply.body.pointer("/details/causes").and_then(Value::as_array);
        for cause in causes.into_iter().flatten() {
            let part = |name: &str| cause[name].as_str().unwrap_or_default().to_owned();
            let (field, message) = (part("field"), part("message"));
            self.results.refused.push(Refused { endpoint: self.endpoint.clone(), field, message });
        }
    }
}

/// Where `found` lacks something of `expected`; null means that nothing is there.
fn missing(expected: &Value, found: &Value, place: &str) -> Option<String> {
    match (expected, found) {
        (Value::Object(fields), Value::Object(_)) => fields.iter().find_map(|(key, value)| {
            missing(value, found.get(key).unwrap_or(&Value::Null), &format!("{place}.{key}"))
        }),
        (Value::Array(items), Value::Array(others)) if items.len() == others.len() => {
            let mut pairs = items.iter().zip(others).enumerate();
            pairs.find_map(|(i, (item, other))| missing(item, other, &format!("{place}[{i}]")))
        }
        _ if expected == found => None,
        _ => Some(format!("  expected: {place} to be {expected}\n  got: {found}")),
    }
}
