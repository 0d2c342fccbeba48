//! Operations that take long, in every form that Azure has.

use std::time::Duration;

use armdouble::{Failure, Form, Kind, Lro};
use http::Method;
use serde_json::Value;

use crate::support::{Azure, COMPUTE, Told, seconds};

fn azure(method: &Method, form: Form) -> Azure {
    let azure = Azure::new();
    let lro = Lro { form, takes: Duration::from_secs(10), retry_after: Some(Duration::from_secs(7)) };
    azure.double.change(|world| world.settings.set_lro(Kind::VirtualMachine, method, lro));
    azure
}

async fn created(form: Form) -> (Azure, Told) {
    let azure = azure(&Method::PUT, form);
    let told = azure.put_machine("aks-a", "Standard_D2s_v3", "1").await;
    (azure, told)
}

// azure.md 24, LRO protocol
#[tokio::test(start_paused = true)]
async fn azure_async_operation_tells_the_status() {
    let (azure, told) = created(Form::AsyncOperation).await;
    assert_eq!(told.header("retry-after"), Some("7"));
    let url = told.header("azure-asyncoperation").unwrap();
    assert!(url.starts_with("https://management.azure.com/subscriptions/"), "{url}");
    let running = azure.with(Method::GET, url, &[], None).await.is(200);
    assert_eq!(
        (running.body["status"].as_str(), running.header("retry-after")),
        (Some("InProgress"), Some("7"))
    );
    seconds(9).await;
    assert_eq!(azure.with(Method::GET, url, &[], None).await.body["status"], "InProgress");
    seconds(1).await;
    let done = azure.with(Method::GET, url, &[], None).await.is(200);
    assert_eq!(done.body["status"], "Succeeded");
    assert_eq!(done.header("retry-after"), None);
}

#[tokio::test(start_paused = true)]
async fn operation_location_tells_the_same() {
    let (azure, told) = created(Form::OperationLocation).await;
    assert!(told.header("azure-asyncoperation").is_none());
    assert!(told.header("operation-location").is_some());
    assert_eq!(azure.end(&told).await["status"], "Succeeded");
}

#[tokio::test(start_paused = true)]
async fn location_is_accepted_until_the_resource_is_there() {
    let (azure, told) = created(Form::Location).await;
    let url = told.header("location").unwrap();
    let running = azure.with(Method::GET, url, &[], None).await.is(202);
    assert_eq!(running.header("location"), Some(url));
    seconds(10).await;
    let done = azure.with(Method::GET, url, &[], None).await.is(200);
    assert_eq!((done.body["name"].as_str(), done.state()), (Some("aks-a"), "Succeeded"));
}

#[tokio::test(start_paused = true)]
async fn without_a_header_only_the_resource_tells() {
    let (azure, told) = created(Form::Body).await;
    for name in ["location", "azure-asyncoperation", "operation-location"] {
        assert_eq!(told.header(name), None);
    }
    assert_eq!(told.state(), "Creating");
    seconds(10).await;
    assert_eq!(azure.get_machine("aks-a").await.state(), "Succeeded");
}

#[tokio::test(start_paused = true)]
async fn what_is_done_at_once_is_answered_as_done() {
    let (_, told) = created(Form::Immediate).await;
    assert_eq!((told.status, told.state()), (201, "Succeeded"));
}

#[tokio::test(start_paused = true)]
async fn deletions_say_where_to_look_or_nothing() {
    for (form, has_status, has_location) in
        [(Form::Both, true, true), (Form::Location, false, true), (Form::Body, false, false)]
    {
        let azure = azure(&Method::DELETE, form);
        azure.make_machine("aks-a").await;
        let told = azure.delete_machine("aks-a").await.is(202);
        assert_eq!(told.header("azure-asyncoperation").is_some(), has_status, "{form:?}");
        assert_eq!(told.header("location").is_some(), has_location, "{form:?}");
        seconds(10).await;
        if let Some(url) = told.header("location") {
            azure.with(Method::GET, url, &[], None).await.is(204);
        }
        assert_eq!(azure.machines(), Vec::<String>::new());
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_told_in_every_form() {
    let failure = || {
        Failure::of(Method::PUT, Kind::VirtualMachine).later(
            409,
            "ZonalAllocationFailed",
            "No capacity in this zone.",
        )
    };
    for form in [Form::AsyncOperation, Form::OperationLocation, Form::Both] {
        let azure = azure(&Method::PUT, form);
        azure.double.fail(failure());
        let told = azure.put_machine("aks-a", "Standard_D2s_v3", "1").await.is(201);
        let ended = azure.end(&told).await;
        assert_eq!(
            (ended["status"].as_str(), ended["error"]["code"].as_str()),
            (Some("Failed"), Some("ZonalAllocationFailed"))
        );
        assert_eq!(azure.get_machine("aks-a").await.is(200).state(), "Failed");
    }
    let azure_with_location = azure(&Method::PUT, Form::Location);
    azure_with_location.double.fail(failure());
    let told = azure_with_location.put_machine("aks-a", "Standard_D2s_v3", "1").await.is(201);
    seconds(10).await;
    let url = told.header("location").unwrap();
    azure_with_location.with(Method::GET, url, &[], None).await.refused(409, "ZonalAllocationFailed");
    let azure = azure(&Method::PUT, Form::Immediate);
    azure.double.fail(failure());
    azure.put_machine("aks-a", "Standard_D2s_v3", "1").await.refused(409, "ZonalAllocationFailed");
}

// azure.md 10.6: 404 while polling a deletion
#[tokio::test(start_paused = true)]
async fn operations_that_are_done_can_be_forgotten() {
    let azure = azure(&Method::DELETE, Form::Both);
    azure.make_machine("aks-a").await;
    azure.double.change(|world| world.settings.forgets_operations = true);
    let told = azure.delete_machine("aks-a").await.is(202);
    let url = told.header("azure-asyncoperation").unwrap();
    azure.with(Method::GET, url, &[], None).await.is(200);
    seconds(10).await;
    azure.with(Method::GET, url, &[], None).await.refused(404, "OperationNotFound");
}

#[tokio::test(start_paused = true)]
async fn what_happened_while_nobody_asked_has_its_own_time() {
    let azure = azure(&Method::DELETE, Form::Both);
    azure.make_machine("aks-a").await;
    let told = azure.delete_machine("aks-a").await.is(202);
    seconds(3600).await;
    let ended = azure.end(&told).await;
    let time = |name: &str| ended[name].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    assert_eq!(time("endTime").duration_since(time("startTime")).as_secs(), 10);
    let missing = azure.ask(Method::GET, &azure.machine_id("aks-a"), COMPUTE, Value::Null).await;
    missing.refused(404, "ResourceNotFound");
}
