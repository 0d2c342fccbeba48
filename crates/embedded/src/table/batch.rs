//! The cells of jobs.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::cells::{containers, or, selector};
use super::{age_at, duration};
use crate::kinds::Get;

fn has_condition(object: &Value, kind: &str) -> bool {
    object
        .list("status.conditions")
        .iter()
        .any(|condition| condition.text("type") == kind && condition.text("status") == "True")
}

pub(super) fn job(job: &Value, now: Timestamp, age: &Value) -> Vec<Value> {
    let succeeded = job.number("status.succeeded").unwrap_or_default();
    let completions =
        match (job.number("spec.completions"), job.number("spec.parallelism").unwrap_or_default()) {
            (Some(wanted), _) => format!("{succeeded}/{wanted}"),
            (None, parallel) if parallel > 1 => format!("{succeeded}/1 of {parallel}"),
            (None, _) => format!("{succeeded}/1"),
        };
    let time = |path: &str| job.at(path).as_str().and_then(|text| text.parse::<Timestamp>().ok());
    let took = time("status.startTime").map(|start| {
        let end = time("status.completionTime").unwrap_or(now);
        duration(end.duration_since(start))
    });
    let status = if has_condition(job, "Complete") {
        "Complete"
    } else if has_condition(job, "Failed") {
        "Failed"
    } else if job.has("metadata.deletionTimestamp") {
        "Terminating"
    } else {
        let known = ["Suspended", "FailureTarget", "SuccessCriteriaMet"];
        known.into_iter().find(|kind| has_condition(job, kind)).unwrap_or("Running")
    };
    let (names, images) = containers(job.at("spec.template"));
    vec![
        json!(job.text("metadata.name")),
        json!(status),
        json!(completions),
        json!(took.unwrap_or_default()),
        age.clone(),
        names,
        images,
        json!(selector(job.at("spec.selector"))),
    ]
}

pub(super) fn cron_job(job: &Value, now: Timestamp, age: &Value) -> Vec<Value> {
    let last = match job.at("status.lastScheduleTime") {
        Value::Null => "<none>".to_owned(),
        time => age_at(time, now),
    };
    let suspend = match job.at("spec.suspend").as_bool() {
        Some(true) => "True",
        Some(false) => "False",
        None => "<unset>",
    };
    let (names, images) = containers(job.at("spec.jobTemplate.spec.template"));
    vec![
        json!(job.text("metadata.name")),
        json!(job.text("spec.schedule")),
        or(job.text("spec.timeZone"), "<none>"),
        json!(suspend),
        json!(job.list("status.active").len()),
        json!(last),
        age.clone(),
        names,
        images,
        json!(selector(job.at("spec.jobTemplate.spec.selector"))),
    ]
}
