//! The kinds of patches, by the content type of the request.

use http::Method;
use serde_json::Value;

use crate::body;
use crate::field_error::FieldError;
use crate::patch::{self, managed_fields};
use crate::refusal::Refusal;
use crate::request::Request;
use crate::resources::Resource;
use crate::schema;

/// How a patch is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PatchKind {
    Json,
    Merge,
    Strategic,
    Apply,
}

impl PatchKind {
    pub(crate) fn of(content_type: &str) -> Option<Self> {
        match content_type.split(';').next().unwrap_or_default().trim() {
            "application/json-patch+json" => Some(Self::Json),
            "application/merge-patch+json" => Some(Self::Merge),
            "application/strategic-merge-patch+json" => Some(Self::Strategic),
            "application/apply-patch+yaml" => Some(Self::Apply),
            _ => None,
        }
    }

    /// Refuses what is no patch of the resource; custom ones have no strategy.
    pub(crate) fn check(request: &Request, resource: &Resource) -> Result<(), Refusal> {
        if request.method != Method::PATCH {
            return Ok(());
        }
        match (Self::of(&request.content_type), &resource.custom) {
            (None | Some(Self::Strategic), Some(_)) => Err(Refusal::unsupported_media_type(
                "the body of the request was in an unknown format - accepted media types include: \
                 application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
            )),
            (None, None) => Err(Refusal::unknown_media_type()),
            _ => Ok(()),
        }
    }

    /// Reads a patch.
    pub(crate) fn read(self, text: &[u8]) -> Result<Value, Refusal> {
        if self == Self::Apply {
            return Err(not_here());
        }
        let prefix = if self == Self::Strategic { "" } else { "error decoding patch: " };
        let patch = body::patch(text, prefix)?;
        let is_merged = matches!(self, Self::Merge | Self::Strategic);
        if is_merged && !patch.is_object() { Err(not_a_patch(&patch, prefix)) } else { Ok(patch) }
    }

    /// Whether a patch leaves alone who set what.
    pub(crate) fn leaves_managers(self, patch: &Value) -> bool {
        matches!(self, Self::Merge | Self::Strategic) && managed_fields::entries(patch).is_none()
    }

    /// Whether a patch does nothing but set times anew, as heartbeats do.
    pub(crate) fn renews(self, patch: &Value, object: &Value, resource: &Resource) -> bool {
        self == Self::Merge
            && resource.custom.is_none()
            && patch.get("metadata").is_none()
            && schema::sets_times(resource.schema(), patch, object)
    }

    /// Changes an object as a patch says.
    pub(crate) fn patch(self, object: &mut Value, patch: &Value, resource: &Resource) -> Result<(), Refusal> {
        match self {
            Self::Json => patch::json_patch(object, patch),
            Self::Merge => {
                patch::merge_patch(object, patch);
                Ok(())
            }
            Self::Strategic => patch::strategic_merge_patch(object, patch, resource.schema()),
            Self::Apply => Err(not_here()),
        }
    }
}

fn not_here() -> Refusal {
    Refusal::unsupported_media_type("server-side apply is not possible here")
}

fn not_a_patch(patch: &Value, prefix: &str) -> Refusal {
    if patch.is_null() {
        return Refusal::bad_request("Invalid JSON Patch");
    }
    let kind = crate::write::go_type(patch);
    Refusal::bad_request(format!(
        "{prefix}json: cannot unmarshal {kind} into Go value of type map[string]interface {{}}"
    ))
}

/// The refusal of a patch whose result cannot be read, as `refusal` says of the whole object.
pub(crate) fn unreadable(patched: &str, refusal: &Refusal) -> Refusal {
    let message =
        refusal.message.split_once(" cannot be handled as a ").and_then(|(_, rest)| rest.split_once(": "));
    let why = message.map_or(refusal.message.as_str(), |(_, why)| why);
    Refusal::invalid("", "", "", &[FieldError::invalid("patch", &Value::from(patched), why)])
}
