//! Tokens.

use bytes::Bytes;
use http::Request;
use serde_json::json;

use crate::support::{Azure, COMPUTE, Told, seconds};

async fn entra(azure: &Azure, tenant: &str, form: &[(&str, &str)]) -> Told {
    let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
    let request = Request::post(format!("https://login.microsoftonline.com/{tenant}/oauth2/v2.0/token"));
    azure.send(request.body(Bytes::from(body)).unwrap()).await.unwrap()
}

async fn machine_with(azure: &Azure, token: &str) -> Told {
    let url = format!("https://management.azure.com{}?api-version={COMPUTE}", azure.machine_id("a"));
    let request = Request::get(url).header("authorization", format!("Bearer {token}"));
    azure.send(request.body(Bytes::new()).unwrap()).await.unwrap()
}

// azure.md 18
#[tokio::test(start_paused = true)]
async fn a_workload_gets_a_token_for_an_hour() {
    let azure = Azure::new();
    let tenant = azure.double.change(|world| world.settings.tenant.clone());
    let jwt = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
    let form = [
        ("grant_type", "client_credentials"),
        ("client_id", "c"),
        ("scope", "https://management.azure.com//.default"),
        ("client_assertion_type", jwt),
        ("client_assertion", "assertion"),
    ];
    let told = entra(&azure, &tenant, &form).await.is(200);
    assert_eq!(told.body["expires_in"], 3600);
    let token = told.body["access_token"].as_str().unwrap();
    machine_with(&azure, token).await.is(404);
    seconds(3600).await;
    machine_with(&azure, token).await.refused(401, "ExpiredAuthenticationToken");

    let error = |told: Told| told.body["error"].as_str().map(str::to_owned).unwrap_or_default();
    assert_eq!(error(entra(&azure, "other", &form).await.is(400)), "invalid_request");
    assert_eq!(error(entra(&azure, &tenant, &form[..3]).await.is(401)), "invalid_client");
    assert_eq!(error(entra(&azure, &tenant, &form[1..]).await.is(400)), "unsupported_grant_type");
    assert_eq!(error(entra(&azure, &tenant, &form[..2]).await.is(400)), "invalid_scope");
}

#[tokio::test(start_paused = true)]
async fn an_instance_gets_a_token_from_its_metadata() {
    let azure = Azure::new();
    let url =
        "http://169.254.169.254/metadata/identity/oauth2/token?api-version=2018-02-01&resource=r&client_id=c";
    let ask = async |metadata: bool| {
        let mut request = Request::get(url);
        if metadata {
            request = request.header("metadata", "true");
        }
        azure.send(request.body(Bytes::new()).unwrap()).await.unwrap()
    };
    ask(false).await.is(400);
    let told = ask(true).await.is(200);
    assert_eq!(told.body["expires_in"], "86400");
    assert_eq!(told.body["client_id"], "c");
    assert_eq!(told.body["resource"], "r");
}

#[tokio::test(start_paused = true)]
async fn a_token_for_images_says_when_to_refresh_it() {
    let azure = Azure::new();
    let ask = async |query: &str| {
        let request = Request::get(format!("http://sig.example/sig/token{query}"));
        azure.send(request.body(Bytes::new()).unwrap()).await.unwrap()
    };
    let told = ask("?scope=https://management.azure.com//.default").await.is(200);
    assert_eq!(told.body["ExpiresOn"], "1970-01-01T01:00:00Z");
    assert_eq!(told.body["RefreshOn"], "1970-01-01T00:30:00Z");
    assert!(told.body["Token"].is_string());
    assert_eq!(ask("").await.is(400).body, json!("scope is required"));
}
