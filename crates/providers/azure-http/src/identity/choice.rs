//! Which ways to find out who we are make sense here.

use azure::auth::{Secret, TokenError};

/// A way to find out who we are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A secret in the environment.
    Secret,
    /// A token of the service account, exchanged for one of Azure.
    Workload,
    /// The identity of the machine.
    Managed,
    /// Who is logged in to `az`.
    Cli,
    /// Who is logged in to `azd`.
    DeveloperCli,
}

impl Kind {
    /// The name by which administrators know it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Secret => "EnvironmentCredential",
            Self::Workload => "WorkloadIdentityCredential",
            Self::Managed => "ManagedIdentityCredential",
            Self::Cli => "AzureCLICredential",
            Self::DeveloperCli => "AzureDeveloperCLICredential",
        }
    }
}

/// What the environment says about who we are.
#[derive(Clone, Debug)]
pub(super) struct Choice {
    /// The ways to try, in this order.
    pub(super) kinds: Vec<Kind>,
    pub(super) tenant: String,
    pub(super) client: String,
    pub(super) secret: Secret,
    pub(super) token_file: String,
    /// Whether the machine's identity is not that of a virtual machine.
    pub(super) is_app_service: bool,
}

/// Which ways `AZURE_TOKEN_CREDENTIALS` leaves.
fn allowed(text: &str) -> Result<&'static [Kind], TokenError> {
    use Kind::{Cli, DeveloperCli, Managed, Secret, Workload};
    Ok(match text.to_ascii_lowercase().as_str() {
        "" => &[Secret, Workload, Managed, Cli, DeveloperCli],
        "prod" => &[Secret, Workload, Managed],
        "dev" => &[Cli, DeveloperCli],
        "environmentcredential" => &[Secret],
        "workloadidentitycredential" => &[Workload],
        "managedidentitycredential" => &[Managed],
        "azureclicredential" => &[Cli],
        "azuredeveloperclicredential" => &[DeveloperCli],
        _ => {
            return Err(TokenError(format!(
                "AZURE_TOKEN_CREDENTIALS {text:?} is not supported, expected prod, dev, EnvironmentCredential, WorkloadIdentityCredential, ManagedIdentityCredential, AzureCLICredential or AzureDeveloperCLICredential"
            )));
        }
    })
}

impl Choice {
    pub(super) fn new(variable: impl Fn(&str) -> Option<String>) -> Result<Self, TokenError> {
        let text = |name: &str| variable(name).map(|value| value.trim().to_owned()).unwrap_or_default();
        let (tenant, client) = (text("AZURE_TENANT_ID"), text("AZURE_CLIENT_ID"));
        let (secret, token_file) = (text("AZURE_CLIENT_SECRET"), text("AZURE_FEDERATED_TOKEN_FILE"));
        let allowed = allowed(&text("AZURE_TOKEN_CREDENTIALS"))?;
        let is_known = !tenant.is_empty() && !client.is_empty();
        let is_set = |kind: Kind| match kind {
            Kind::Secret => is_known && !secret.is_empty(),
            Kind::Workload => is_known && !token_file.is_empty(),
            _ => true,
        };
        let has_certificate =
            is_known && secret.is_empty() && !text("AZURE_CLIENT_CERTIFICATE_PATH").is_empty();
        if has_certificate && allowed.contains(&Kind::Secret) {
            return Err(TokenError(
                "AZURE_CLIENT_CERTIFICATE_PATH is not supported, use a workload identity or AZURE_CLIENT_SECRET"
                    .to_owned(),
            ));
        }
        let mut kinds: Vec<Kind> = allowed.iter().copied().filter(|kind| is_set(*kind)).collect();
        // What somebody set up is what is meant: if it fails, nobody is helped by another identity.
        if let Some(first) =
            kinds.first().copied().filter(|kind| matches!(kind, Kind::Secret | Kind::Workload))
        {
            kinds = vec![first];
        }
        match (kinds.is_empty(), allowed) {
            (true, [Kind::Secret]) => Err(TokenError(
                "EnvironmentCredential needs AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_CLIENT_SECRET".to_owned(),
            )),
            (true, _) => Err(TokenError(
                "WorkloadIdentityCredential needs AZURE_TENANT_ID, AZURE_CLIENT_ID and AZURE_FEDERATED_TOKEN_FILE"
                    .to_owned(),
            )),
            (false, _) => Ok(Self {
                kinds,
                tenant,
                client,
                secret: Secret::new(secret),
                token_file,
                is_app_service: !text("IDENTITY_ENDPOINT").is_empty(),
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(variables: &[(&str, &str)]) -> Result<Vec<Kind>, String> {
        let variable = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        Choice::new(variable).map(|choice| choice.kinds).map_err(|error| error.to_string())
    }

    const WORKLOAD: [(&str, &str); 3] = [
        ("AZURE_TENANT_ID", "t"),
        ("AZURE_CLIENT_ID", "c"),
        ("AZURE_FEDERATED_TOKEN_FILE", "/var/run/secrets/azure/tokens/azure-identity-token"),
    ];

    // azure.md 18
    #[test]
    fn what_is_set_up_is_used_in_the_known_order() {
        use Kind::{Cli, DeveloperCli, Managed, Secret, Workload};
        assert_eq!(choose(&[]), Ok(vec![Managed, Cli, DeveloperCli]));
        assert_eq!(choose(&WORKLOAD), Ok(vec![Workload]));
        assert_eq!(choose(&WORKLOAD[..2]), Ok(vec![Managed, Cli, DeveloperCli]));
        let mut secret = WORKLOAD.to_vec();
        secret.push(("AZURE_CLIENT_SECRET", "s"));
        assert_eq!(choose(&secret), Ok(vec![Secret]));
        assert_eq!(choose(&secret[1..]), Ok(vec![Managed, Cli, DeveloperCli]), "half a secret is none");
    }

    #[test]
    fn a_variable_narrows_the_choice() {
        use Kind::{Cli, DeveloperCli, Managed, Workload};
        let with = |text: &'static str| {
            let mut all = WORKLOAD.to_vec();
            all.push(("AZURE_TOKEN_CREDENTIALS", text));
            choose(&all)
        };
        assert_eq!(with("dev"), Ok(vec![Cli, DeveloperCli]));
        assert_eq!(with("Prod"), Ok(vec![Workload]));
        assert_eq!(with("managedIdentityCredential"), Ok(vec![Managed]));
        assert_eq!(with("AzureCliCredential"), Ok(vec![Cli]));
        assert!(with("EnvironmentCredential").unwrap_err().contains("needs AZURE_TENANT_ID"));
        assert!(with("AzurePowerShellCredential").unwrap_err().contains("is not supported, expected prod"));
        let lonely = choose(&[("AZURE_TOKEN_CREDENTIALS", "WorkloadIdentityCredential")]);
        assert!(lonely.unwrap_err().contains("AZURE_FEDERATED_TOKEN_FILE"));
    }

    #[test]
    fn a_certificate_is_refused_with_the_reason() {
        let mut certificate = WORKLOAD[..2].to_vec();
        certificate.push(("AZURE_CLIENT_CERTIFICATE_PATH", "/a.pem"));
        assert!(
            choose(&certificate).unwrap_err().starts_with("AZURE_CLIENT_CERTIFICATE_PATH is not supported")
        );
    }
}
