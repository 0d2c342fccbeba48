//! What AWS answers when it does not do what it was asked, and what that means.

/// Codes of things that are not there.
const NOT_FOUND: &[&str] = &[
    "InvalidCapacityReservationId.NotFound",
    "InvalidInstanceID.NotFound",
    LAUNCH_TEMPLATE_NAME_NOT_FOUND,
    "InvalidLaunchTemplateId.NotFound",
    PLACEMENT_GROUP_UNKNOWN,
    "InvalidPlacementGroupId.NotFound",
    "QueueDoesNotExist",
    // What the queue service calls it in its older protocol.
    "AWS.SimpleQueueService.NonExistentQueue",
    "NoSuchEntity",
    "ParameterNotFound",
];
/// There is no placement group with that name.
pub const PLACEMENT_GROUP_UNKNOWN: &str = "InvalidPlacementGroup.Unknown";
const LAUNCH_TEMPLATE_NAME_NOT_FOUND: &str = "InvalidLaunchTemplateName.NotFoundException";

/// Codes of launches that another instance type, zone or time would satisfy.
const UNFULFILLABLE: &[&str] = &[
    "InsufficientInstanceCapacity",
    SPOT_QUOTA,
    VCPU_QUOTA,
    "UnfulfillableCapacity",
    "Unsupported",
    INSUFFICIENT_FREE_ADDRESSES,
    FLEET_QUOTA,
    "ReservationCapacityExceeded",
];
/// Codes of requests that policies do not allow.
const DENIED: &[&str] = &[
    "UnauthorizedOperation",
    "AccessDenied",
    "AccessDeniedException",
    "AuthorizationError",
    "NotAuthorized",
    "AWS.SimpleQueueService.AccessDenied",
];

/// Codes of requests that come too often, in the words of all services.
const THROTTLED: &[&str] = &[
    "RequestLimitExceeded",
    "RequestThrottled",
    "RequestThrottledException",
    "ThrottledException",
    "Throttling",
    "ThrottlingException",
    "TooManyRequestsException",
];

/// Codes of credentials that are worth nothing.
const UNKNOWN_CALLER: &[&str] = &[
    "AuthFailure",
    "ExpiredToken",
    "ExpiredTokenException",
    "InvalidClientTokenId",
    "InvalidSignatureException",
    "SignatureDoesNotMatch",
    "UnrecognizedClientException",
];

/// The account has as many spot instances as it may have.
pub const SPOT_QUOTA: &str = "MaxSpotInstanceCountExceeded";
/// The account has as many virtual processors as it may have.
pub const VCPU_QUOTA: &str = "VcpuLimitExceeded";
/// The account has as many fleets as it may have.
pub const FLEET_QUOTA: &str = "MaxFleetCountExceeded";
/// A subnet is full.
pub const INSUFFICIENT_FREE_ADDRESSES: &str = "InsufficientFreeAddressesInSubnet";
/// The account cannot have spot instances yet, and we may not change that.
pub const SPOT_ROLE_NOT_PERMITTED: &str = "AuthFailure.ServiceLinkedRoleCreationNotPermitted";
/// What the message says when a spread placement group has all the instances of a zone that it may have.
const SPREAD_LIMIT: &str = "limit of instances in this spread placement group";

/// Whose fault an error is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fault {
    /// The request was wrong or not allowed.
    Client,
    /// The service failed; the same request may succeed later.
    Server,
    /// No answer came, so that nobody knows.
    #[default]
    Unknown,
}

/// Why AWS did not do what it should.
#[derive(Clone, Debug, Default, PartialEq, Eq, thiserror::Error)]
#[error("{operation}, {}{message}{}", written_code(&self.code), written_request(self.request_id.as_deref()))]
pub struct Error {
    /// What was asked, such as `ec2:CreateFleet`.
    pub operation: &'static str,
    /// The service's word for the error; empty if no answer came.
    pub code: String,
    /// What the service says about it.
    pub message: String,
    /// The status of the HTTP answer.
    pub status: Option<u16>,
    /// What AWS' support asks for.
    pub request_id: Option<String>,
    /// Whose fault it is.
    pub fault: Fault,
}

fn written_code(code: &str) -> String {
    if code.is_empty() { String::new() } else { format!("{code}: ") }
}

fn written_request(id: Option<&str>) -> String {
    id.map_or_else(String::new, |id| format!(" (request {id})"))
}

impl Error {
    /// An error with a code, as a service answers a wrong request.
    pub fn new(operation: &'static str, code: &str, message: &str) -> Self {
        Self {
            operation,
            code: code.to_owned(),
            message: message.to_owned(),
            status: None,
            request_id: None,
            fault: Fault::Client,
        }
    }

    /// The same error, as the service's own fault.
    #[must_use]
    pub fn by_server(self) -> Self {
        Self { fault: Fault::Server, ..self }
    }

    /// Whether what was asked for is not there.
    pub fn is_not_found(&self) -> bool {
        NOT_FOUND.contains(&self.code.as_str())
    }

    /// Whether a launch template is not there.
    pub fn is_launch_template_not_found(&self) -> bool {
        self.code == LAUNCH_TEMPLATE_NAME_NOT_FOUND
    }

    /// Whether what was to be created is there already.
    pub fn is_already_exists(&self) -> bool {
        self.code == "EntityAlreadyExists"
    }

    /// Whether a request that was only tried would have been carried out.
    pub fn is_dry_run_success(&self) -> bool {
        self.code == "DryRunOperation"
    }

    /// Whether we are not allowed to ask for this.
    pub fn is_unauthorized(&self) -> bool {
        self.code == "UnauthorizedOperation"
    }

    /// Whether we are not allowed to ask for this, in the words of any service.
    pub fn is_denied(&self) -> bool {
        DENIED.contains(&self.code.as_str())
    }

    /// Whether nobody knows us: what we ask for does not matter.
    pub fn is_unknown_caller(&self) -> bool {
        UNKNOWN_CALLER.contains(&self.code.as_str())
    }

    /// Whether we ask too often.
    pub fn is_rate_limited(&self) -> bool {
        THROTTLED.contains(&self.code.as_str())
    }

    /// Whether the service failed.
    pub fn is_server_fault(&self) -> bool {
        self.fault == Fault::Server
    }

    /// Whether the same request may succeed later without anybody changing anything.
    pub fn is_transient(&self) -> bool {
        self.is_rate_limited() || self.is_server_fault() || self.fault == Fault::Unknown
    }

    /// Whether an instance profile is not there, or not there yet.
    pub fn is_instance_profile_not_found(&self) -> bool {
        self.code == "InvalidParameterValue" && self.message.contains("Invalid IAM Instance Profile name")
    }

    /// Whether the user data is larger than EC2 accepts.
    pub fn is_user_data_too_large(&self) -> bool {
        self.code == "InvalidUserData.Malformed" && self.message.contains("User data is limited to")
    }

    /// Whether a role is not there: the same code also stands for other things of IAM.
    pub fn is_role_not_found(&self) -> bool {
        self.code == "NoSuchEntity" && self.message.to_ascii_lowercase().contains("role")
    }
}

/// Whether a launch with this code may succeed with another instance type or zone, or later.
pub fn is_unfulfillable(code: &str) -> bool {
    UNFULFILLABLE.contains(&code)
}

/// Whether a message says that a spread placement group is full in a zone.
pub fn is_spread_limit(message: &str) -> bool {
    message.contains(SPREAD_LIMIT)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(code: &str, message: &str) -> Error {
        Error::new("ec2:CreateFleet", code, message)
    }

    #[test]
    fn the_text_has_what_was_asked_the_code_and_the_request() {
        let mut error = error("Unsupported", "not here");
        assert_eq!(error.to_string(), "ec2:CreateFleet, Unsupported: not here");
        error.request_id = Some("abc".to_owned());
        assert_eq!(error.to_string(), "ec2:CreateFleet, Unsupported: not here (request abc)");
        error.code.clear();
        assert_eq!(error.to_string(), "ec2:CreateFleet, not here (request abc)");
    }

    #[test]
    fn every_code_has_one_meaning() {
        for code in NOT_FOUND {
            assert!(error(code, "").is_not_found() && !is_unfulfillable(code), "{code}");
        }
        for code in UNFULFILLABLE {
            assert!(is_unfulfillable(code) && !error(code, "").is_not_found(), "{code}");
        }
        assert!(error("EntityAlreadyExists", "").is_already_exists());
        assert!(error("DryRunOperation", "").is_dry_run_success());
        assert!(error("UnauthorizedOperation", "").is_unauthorized());
        for code in DENIED {
            assert!(error(code, "").is_denied() && !error(code, "").is_unknown_caller(), "{code}");
        }
        for code in UNKNOWN_CALLER {
            assert!(error(code, "").is_unknown_caller() && !error(code, "").is_denied(), "{code}");
        }
        assert!(!is_unfulfillable(SPOT_ROLE_NOT_PERMITTED) && !is_unfulfillable("RequestLimitExceeded"));
        assert!(error("InvalidLaunchTemplateName.NotFoundException", "").is_launch_template_not_found());
        assert!(!error("InvalidLaunchTemplateId.NotFound", "").is_launch_template_not_found());
    }

    #[test]
    fn what_may_pass_by_itself_is_transient() {
        for code in THROTTLED {
            assert!(error(code, "").is_transient() && !is_unfulfillable(code), "{code}");
        }
        assert!(error("InternalError", "").by_server().is_transient());
        assert!(Error::default().is_transient());
        assert!(!error("UnauthorizedOperation", "").is_transient());
    }

    #[test]
    fn some_meanings_are_in_the_message() {
        let wrong =
            "Value (x) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name";
        assert!(error("InvalidParameterValue", wrong).is_instance_profile_not_found());
        assert!(!error("InvalidParameterValue", "other").is_instance_profile_not_found());
        assert!(error("InvalidUserData.Malformed", "User data is limited to 16384").is_user_data_too_large());
        assert!(error("NoSuchEntity", "Role x not found").is_role_not_found());
        assert!(!error("NoSuchEntity", "Instance Profile x cannot be found").is_role_not_found());
        assert!(is_spread_limit("You have reached the limit of instances in this spread placement group"));
    }
}
