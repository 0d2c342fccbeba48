//! The client over a real connection, with the double at the other end.

use std::sync::Arc;
use std::time::Duration;

use armdouble::{Double, Form, Kind, Lro};
use azure::arm::types::nic::NetworkInterface;
use azure::arm::{Client, Setup};
use azure::auth::FixedToken;
use azure::environment::Environment;
use azure_http::{Network, identity};
use clock::Clock;
use http::Method;
use tokio::net::TcpListener;

#[tokio::test]
async fn azure_can_be_asked_over_plain_http_on_loopback() {
    let clock = Clock::system();
    let double = Double::new(clock);
    double.change(|azure| {
        azure.settings.page_size = 5;
        let soon = Lro::new(Form::AsyncOperation, Duration::ZERO);
        azure.settings.set_lro(Kind::NetworkInterface, &Method::PUT, soon);
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}/", listener.local_addr().unwrap());
    tokio::spawn(double.clone().serve(listener));
    let settings = double.change(|azure| azure.settings.clone());
    let environment = Environment { resource_manager: base.clone(), ..Environment::public() };
    let client = Client::new(Setup {
        environment,
        prices: base.clone(),
        clock,
        ..Setup::new(
            Arc::new(Network::new().unwrap()),
            Arc::new(FixedToken::new("token")),
            &settings.subscription,
        )
    });
    assert!(client.skus(&settings.location).await.unwrap().len() > 5, "in pages");
    let body = format!(
        r#"{{"location":"{}","properties":{{"ipConfigurations":[{{"name":"a","properties":{{"primary":true,"privateIPAllocationMethod":"Dynamic","subnet":{{"id":"{}"}}}}}}]}}}}"#,
        settings.location,
        settings.subnet_id()
    );
    let interface: NetworkInterface = serde_json::from_str(&body).unwrap();
    let group = settings.node_resource_group.as_str();
    let running = client.put_network_interface(group, "aks-a", &interface).await.unwrap();
    assert_eq!(running.wait().await.unwrap().name.as_deref(), Some("aks-a"));
    let refused = client.virtual_machine(group, "aks-a").await.unwrap_err();
    assert!(refused.is_not_found() && refused.correlation_id.is_some(), "{refused}");
}

#[tokio::test]
async fn who_we_are_is_found_as_the_directory_says_it() {
    let double = Double::new(Clock::system());
    let tenant = double.change(|azure| azure.settings.tenant.clone());
    // The library insists on encryption, so that the double stands in for the network.
    let transport: Arc<dyn azure::arm::Transport> = Arc::new(double);
    let variables =
        [("AZURE_TENANT_ID", tenant.as_str()), ("AZURE_CLIENT_ID", "c"), ("AZURE_CLIENT_SECRET", "s")];
    let tokens = identity::find(&transport, &Environment::public(), |name| {
        variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    });
    let token = tokens.unwrap().token(&Environment::public().scope()).await.unwrap();
    assert!(token.secret.reveal().starts_with("armdouble.entra."));
}
