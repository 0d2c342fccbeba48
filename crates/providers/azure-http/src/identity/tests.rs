//! Tokens from the official library, over a network that only tests have.

use std::collections::BTreeMap;

use azure::arm::TransportError;
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response};
use parking_lot::Mutex;

use super::*;

const SCOPE: &str = "https://management.azure.com//.default";
const TOKEN: &str = r#"{"token_type":"Bearer","expires_in":86400,"access_token":"secret"}"#;

/// Answers by the beginning of the address; who is not there does not answer.
#[derive(Default)]
struct Net {
    answers: BTreeMap<&'static str, (u16, String)>,
    asked: Mutex<Vec<(String, String)>>,
}

impl Net {
    fn new(answers: &[(&'static str, u16, &str)]) -> Arc<Self> {
        let answers =
            answers.iter().map(|(url, status, body)| (*url, (*status, (*body).to_owned()))).collect();
        Arc::new(Self { answers, asked: Mutex::default() })
    }
}

impl Transport for Net {
    fn send(&self, request: Request<Bytes>) -> BoxFuture<'_, Result<Response<Bytes>, TransportError>> {
        Box::pin(async move {
            let url = request.uri().to_string();
            let body = String::from_utf8_lossy(request.body()).into_owned();
            let text = format!("{} {url} {body}", request.method());
            let metadata = request.headers().get("metadata").map_or("", |value| value.to_str().unwrap());
            self.asked.lock().push((text, metadata.to_owned()));
            let found = self.answers.iter().find(|(known, _)| url.starts_with(**known));
            match found {
                Some((_, (status, body))) => {
                    Ok(Response::builder().status(*status).body(Bytes::from(body.clone())).unwrap())
                }
                None => futures::future::pending().await,
            }
        })
    }
}

fn find_with(
    net: &Arc<Net>,
    environment: &Environment,
    variables: &[(&str, &str)],
) -> Result<Arc<dyn TokenSource>, TokenError> {
    let transport: Arc<dyn Transport> = Arc::<Net>::clone(net);
    find(&transport, environment, |name| {
        variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    })
}

#[tokio::test]
async fn a_service_account_exchanges_its_token() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "assertion").unwrap();
    let net = Net::new(&[("https://login.chinacloudapi.cn/tenant/oauth2/v2.0/token", 200, TOKEN)]);
    let variables = [
        ("AZURE_TENANT_ID", "tenant"),
        ("AZURE_CLIENT_ID", "client"),
        ("AZURE_FEDERATED_TOKEN_FILE", file.path().to_str().unwrap()),
    ];
    let tokens = find_with(&net, &Environment::china(), &variables).unwrap();
    let token = tokens.token("https://management.chinacloudapi.cn//.default").await.unwrap();
    assert_eq!(token.secret.reveal(), "secret");
    let asked = net.asked.lock()[0].0.clone();
    assert!(asked.starts_with("POST https://login.chinacloudapi.cn/tenant/oauth2/v2.0/token "), "{asked}");
    for part in [
        "client_id=client",
        "client_assertion=assertion",
        "scope=https%3A%2F%2Fmanagement.chinacloudapi.cn%2F%2F.default",
    ] {
        assert!(asked.contains(part), "{part}: {asked}");
    }
}

#[tokio::test]
async fn a_secret_of_the_environment_is_used() {
    let net = Net::new(&[("https://login.microsoftonline.com/t/", 200, TOKEN)]);
    let variables = [("AZURE_TENANT_ID", "t"), ("AZURE_CLIENT_ID", "c"), ("AZURE_CLIENT_SECRET", "hush")];
    let tokens = find_with(&net, &Environment::public(), &variables).unwrap();
    assert_eq!(tokens.token(SCOPE).await.unwrap().secret.reveal(), "secret");
    assert!(net.asked.lock()[0].0.contains("client_secret=hush"));
}

#[tokio::test]
async fn what_the_directory_refuses_is_said_in_one_line() {
    let refused = r#"{"error":"invalid_client","error_description":"AADSTS7000215: wrong secret","error_codes":[7000215]}"#;
    let net = Net::new(&[("https://login.microsoftonline.com/", 401, refused)]);
    let variables = [("AZURE_TENANT_ID", "t"), ("AZURE_CLIENT_ID", "c"), ("AZURE_CLIENT_SECRET", "hush")];
    let tokens = find_with(&net, &Environment::public(), &variables).unwrap();
    let error = tokens.token(SCOPE).await.unwrap_err().to_string();
    assert!(
        error.starts_with("EnvironmentCredential: ") && error.contains("AADSTS7000215: wrong secret"),
        "{error}"
    );
    assert!(!error.contains("hush") && !error.contains('\n'), "{error}");
}

#[tokio::test]
async fn a_machine_of_azure_is_asked_who_it_is() {
    let expires = "4102444800";
    let body = format!(
        r#"{{"access_token":"secret","expires_on":"{expires}","token_type":"Bearer","resource":"r"}}"#
    );
    let net = Net::new(&[("http://169.254.169.254/metadata/identity/oauth2/token", 200, &body)]);
    let tokens = find_with(&net, &Environment::public(), &[("AZURE_CLIENT_ID", "c")]).unwrap();
    let token = tokens.token(SCOPE).await.unwrap();
    assert_eq!(token.expires.as_second().to_string(), expires);
    let asked = net.asked.lock();
    assert_eq!(asked[0].1, "", "first, whether it is one at all");
    assert_eq!(asked[1].1, "true");
    assert!(
        asked[1].0.contains("client_id=c")
            && asked[1].0.contains("resource=https%3A%2F%2Fmanagement.azure.com%2F&"),
        "{}",
        asked[1].0
    );
}

#[tokio::test(start_paused = true)]
async fn elsewhere_nobody_waits_for_the_metadata_of_a_machine() {
    let transport: Arc<dyn Transport> = Net::new(&[]);
    let choice = Choice::new(|_| None).unwrap();
    let begun = tokio::time::Instant::now();
    let credential = credential(Kind::Managed, &choice, &transport, &Environment::public()).unwrap();
    let link = Link { name: Kind::Managed.name(), credential, is_doubtful: true };
    let error = Chain::new(vec![link], transport).token(SCOPE).await.unwrap_err();
    assert_eq!(error.to_string(), "ManagedIdentityCredential: no metadata service answers");
    assert_eq!(begun.elapsed().as_secs(), 1);
}

#[tokio::test]
async fn a_token_file_that_is_not_there_is_said_at_once() {
    let variables = [
        ("AZURE_TENANT_ID", "t"),
        ("AZURE_CLIENT_ID", "c"),
        ("AZURE_FEDERATED_TOKEN_FILE", "/nowhere/token"),
    ];
    let error = find_with(&Net::new(&[]), &Environment::public(), &variables).err().unwrap().to_string();
    assert!(error.starts_with("WorkloadIdentityCredential: "), "{error}");
}
