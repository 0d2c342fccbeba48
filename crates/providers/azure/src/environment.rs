//! The clouds that Azure consists of: where each is asked and who logs us in.

use serde::{Deserialize, Serialize};

/// A cloud.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Environment {
    /// Its name.
    pub name: String,
    /// Where resources are managed, with a slash at the end.
    pub resource_manager: String,
    /// Where tokens are given out, with a slash at the end.
    pub login: String,
    /// For whom tokens are.
    pub audience: String,
}

const PUBLIC: &str = "AzurePublicCloud";
const US_GOVERNMENT: &str = "AzureUSGovernmentCloud";
const CHINA: &str = "AzureChinaCloud";
const PUBLIC_ENDPOINT: &str = "https://management.azure.com/";

/// Why a cloud cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnvironmentError {
    /// Nobody knows it.
    #[error(
        "ARM_CLOUD {0:?} is no known cloud, expected AzurePublicCloud, AzureUSGovernmentCloud or AzureChinaCloud"
    )]
    Unknown(String),
    /// It is said twice which one it is.
    #[error("ARM_CLOUD and AZURE_ENVIRONMENT_FILEPATH are both set, expected at most one of them")]
    Twice,
    /// Its description is somewhere else.
    #[error("AZURE_ENVIRONMENT_FILEPATH {0:?} is no absolute path")]
    Relative(String),
    /// Its description cannot be read.
    #[error("reading AZURE_ENVIRONMENT_FILEPATH {path:?}, {why}")]
    File {
        /// Where it should be.
        path: String,
        /// What is wrong.
        why: String,
    },
}

/// The description of a cloud in a file; other members are not used.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Described {
    name: String,
    resource_manager_endpoint: String,
    active_directory_endpoint: String,
    token_audience: String,
}

impl Default for Environment {
    fn default() -> Self {
        Self::public()
    }
}

impl Environment {
    /// The cloud that most use.
    pub fn public() -> Self {
        Self::known(PUBLIC, PUBLIC_ENDPOINT, "https://login.microsoftonline.com/")
    }

    /// The cloud of the government of the USA.
    pub fn us_government() -> Self {
        Self::known(
            US_GOVERNMENT,
            "https://management.usgovcloudapi.net/",
            "https://login.microsoftonline.us/",
        )
    }

    /// The cloud in China.
    pub fn china() -> Self {
        Self::known(CHINA, "https://management.chinacloudapi.cn/", "https://login.chinacloudapi.cn/")
    }

    fn known(name: &str, resource_manager: &str, login: &str) -> Self {
        Self {
            name: name.to_owned(),
            resource_manager: resource_manager.to_owned(),
            login: login.to_owned(),
            audience: resource_manager.to_owned(),
        }
    }

    /// Finds out which cloud it is. `file` reads a file, and is only asked for one that is named.
    pub fn choose(
        name: &str,
        path: &str,
        file: impl FnOnce(&str) -> Result<String, String>,
    ) -> Result<Self, EnvironmentError> {
        match (name, path) {
            ("", "") => Ok(Self::public()),
            (name, "") => Self::named(name).ok_or_else(|| EnvironmentError::Unknown(name.to_owned())),
            ("", path) if !path.starts_with('/') => Err(EnvironmentError::Relative(path.to_owned())),
            ("", path) => file(path)
                .and_then(|text| Self::described(&text))
                .map_err(|why| EnvironmentError::File { path: path.to_owned(), why }),
            _ => Err(EnvironmentError::Twice),
        }
    }

    /// Whether its name says everything about it.
    pub fn is_known(&self) -> bool {
        Self::named(&self.name).as_ref() == Some(self)
    }

    fn named(name: &str) -> Option<Self> {
        match name.to_ascii_uppercase().as_str() {
            "AZURECLOUD" | "AZUREPUBLICCLOUD" => Some(Self::public()),
            "AZURECHINACLOUD" => Some(Self::china()),
            "AZUREUSGOVERNMENT" | "AZUREUSGOVERNMENTCLOUD" => Some(Self::us_government()),
            _ => None,
        }
    }

    fn described(text: &str) -> Result<Self, String> {
        let read: Described = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let needed = [
            ("resourceManagerEndpoint", &read.resource_manager_endpoint),
            ("activeDirectoryEndpoint", &read.active_directory_endpoint),
            ("tokenAudience", &read.token_audience),
        ];
        let missing: Vec<&str> =
            needed.iter().filter(|(_, value)| value.trim().is_empty()).map(|(name, _)| *name).collect();
        if !missing.is_empty() {
            return Err(format!("{} must be set", missing.join(", ")));
        }
        Ok(Self {
            name: read.name,
            resource_manager: with_slash(&read.resource_manager_endpoint),
            login: with_slash(&read.active_directory_endpoint),
            audience: read.token_audience.trim().to_owned(),
        })
    }

    /// What tokens are asked for. The audience of the public cloud ends with a slash, and another follows.
    pub fn scope(&self) -> String {
        format!("{}/.default", self.audience)
    }

    /// Whether this is the public cloud, whose prices are published.
    pub fn is_public(&self) -> bool {
        let trimmed = |text: &str| text.trim_end_matches('/').to_ascii_lowercase();
        trimmed(&self.resource_manager) == trimmed(PUBLIC_ENDPOINT)
    }

    /// Whether AKS bills machines by an extension here.
    pub fn has_billing_extension(&self) -> bool {
        [PUBLIC, US_GOVERNMENT, CHINA].iter().any(|name| name.eq_ignore_ascii_case(&self.name))
    }
}

fn with_slash(url: &str) -> String {
    format!("{}/", url.trim().trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(name: &str, path: &str, text: &str) -> Result<Environment, String> {
        Environment::choose(name, path, |_| Ok(text.to_owned())).map_err(|error| error.to_string())
    }

    // azure.md 18, the table of clouds
    #[test]
    fn clouds_are_known_by_name_in_any_spelling() {
        let rows = [
            ("", Environment::public()),
            ("AzureCloud", Environment::public()),
            ("AZUREPUBLICCLOUD", Environment::public()),
            ("azurechinacloud", Environment::china()),
            ("AzureUSGovernment", Environment::us_government()),
            ("AzureUSGovernmentCloud", Environment::us_government()),
        ];
        for (name, expected) in rows {
            assert_eq!(choose(name, "", ""), Ok(expected), "{name}");
        }
        assert_eq!(Environment::public().scope(), "https://management.azure.com//.default");
        assert_eq!(Environment::china().login, "https://login.chinacloudapi.cn/");
        assert_eq!(Environment::us_government().resource_manager, "https://management.usgovcloudapi.net/");
        assert!(Environment::public().is_public() && !Environment::china().is_public());
    }

    #[test]
    fn a_cloud_can_be_described_in_a_file() {
        let text = r#"{"name":"Mine","resourceManagerEndpoint":"https://arm.example","activeDirectoryEndpoint":"https://login.example/","tokenAudience":"https://a.example","gallery":1}"#;
        let read = choose("", "/etc/cloud.json", text).unwrap();
        assert_eq!(read.resource_manager, "https://arm.example/");
        assert_eq!(
            (read.login.as_str(), read.scope().as_str()),
            ("https://login.example/", "https://a.example/.default")
        );
        assert!(!read.has_billing_extension() && !read.is_public());
        assert!(Environment::china().has_billing_extension());
        let shouted = r#"{"resourceManagerEndpoint":"https://MANAGEMENT.azure.com","activeDirectoryEndpoint":"l","tokenAudience":"a"}"#;
        assert!(choose("", "/c", shouted).unwrap().is_public());
    }

    #[test]
    fn a_cloud_that_cannot_be_used_is_named_with_the_reason() {
        let rows = [
            (choose("AzureGermanCloud", "", ""), "\"AzureGermanCloud\" is no known cloud"),
            (choose("AzureCloud", "/c", ""), "both set"),
            (choose("", "c.json", ""), "\"c.json\" is no absolute path"),
            (choose("", "/c", "{"), "reading AZURE_ENVIRONMENT_FILEPATH \"/c\", EOF"),
            (
                choose("", "/c", "{}"),
                "resourceManagerEndpoint, activeDirectoryEndpoint, tokenAudience must be set",
            ),
        ];
        for (result, part) in rows {
            let error = result.unwrap_err();
            assert!(error.contains(part), "{error}");
        }
        let lost = Environment::choose("", "/c", |_| Err("no such file".to_owned())).unwrap_err();
        assert!(lost.to_string().contains("no such file"));
    }
}
