//! Operations that take long, in every form they have.

use super::super::script::{Answer, Script, answer, silence};
use super::super::types::vm::VirtualMachine;
use super::super::{Client, MachinePool};
use super::*;

const POLL: &str =
    "https://management.azure.com/subscriptions/sub/providers/Microsoft.Compute/locations/l/operations/o";

fn polled(body: &str) -> Answer {
    answer(200, &[], body)
}

async fn put(client: &Client) -> Result<VirtualMachine, Error> {
    let running = client.put_virtual_machine("g", "a", &VirtualMachine::default()).await?;
    running.wait().await
}

async fn delete(client: &Client) -> Result<(), Error> {
    client.delete_virtual_machine("g", "a").await?.done().await
}

/// When what was asked, without what is the same for all.
fn asked(script: &Script) -> Vec<String> {
    let short =
        |line: String| line.replace("/subscriptions/sub", "").replace("/providers/Microsoft.Compute", "");
    script.asked().into_iter().map(short).collect()
}

// azure.md 24, LRO protocol
#[tokio::test(start_paused = true)]
async fn a_status_is_looked_at_until_it_is_an_end_and_then_the_result_is_fetched() {
    for name in ["azure-asyncoperation", "operation-location"] {
        let script = Script::new([
            answer(
                201,
                &[(name, POLL), ("location", "http://never/")],
                r#"{"properties":{"provisioningState":"Creating"}}"#,
            ),
            polled(r#"{"status":"InProgress"}"#),
            polled(r#"{"status":"SomethingNew"}"#),
            polled(r#"{"status":"Succeeded"}"#),
            polled(r#"{"name":"a"}"#),
        ]);
        let machine = put(&script.client()).await.unwrap();
        assert_eq!(machine.name.as_deref(), Some("a"));
        assert_eq!(
            asked(&script),
            [
                "0.0 PUT /resourceGroups/g/virtualMachines/a?api-version=2025-04-01",
                "0.0 GET /locations/l/operations/o",
                "3.0 GET /locations/l/operations/o",
                "6.0 GET /locations/l/operations/o",
                "6.0 GET /resourceGroups/g/virtualMachines/a?api-version=2025-04-01",
            ]
        );
    }
}

#[tokio::test(start_paused = true)]
async fn who_does_not_need_the_result_does_not_ask_for_it() {
    let script = Script::new([
        answer(201, &[("azure-asyncoperation", POLL)], ""),
        polled(r#"{"status":"Succeeded"}"#),
    ]);
    let running = script.client().put_virtual_machine("g", "a", &VirtualMachine::default()).await.unwrap();
    // The client may be gone, and another task may wait.
    tokio::spawn(running.done()).await.unwrap().unwrap();
    assert_eq!(script.asked().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn azure_says_how_often_it_is_looked_and_the_first_wait_is_only_for_who_is_told_so() {
    let script = Script::new([
        answer(202, &[("location", POLL), ("retry-after", "10")], ""),
        answer(202, &[("retry-after", "7")], ""),
        answer(202, &[("location", "https://management.azure.com/moved")], ""),
        answer(200, &[], ""),
    ]);
    delete(&script.client()).await.unwrap();
    assert_eq!(
        asked(&script),
        [
            "0.0 DELETE /resourceGroups/g/virtualMachines/a?api-version=2025-04-01&forceDeletion=true",
            "10.0 GET /locations/l/operations/o",
            "17.0 GET /locations/l/operations/o",
            "20.0 GET /moved",
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_location_may_also_say_how_far_it_is_in_its_body() {
    let script = Script::new([
        answer(202, &[("location", POLL)], ""),
        polled(r#"{"properties":{"provisioningState":"Deleting"}}"#),
        polled(r#"{"properties":{"provisioningState":"Failed"},"error":{"code":"InUse","message":"m"}}"#),
    ]);
    assert_eq!(delete(&script.client()).await.unwrap_err().code, "InUse");
}

#[tokio::test(start_paused = true)]
async fn without_headers_the_resource_says_how_far_it_is() {
    let creating = r#"{"name":"a","properties":{"provisioningState":"Creating"}}"#;
    let done = r#"{"name":"a","properties":{"provisioningState":"Succeeded"}}"#;
    for first in [answer(201, &[], creating), answer(201, &[], ""), answer(202, &[], "")] {
        let script = Script::new([first, polled(creating), polled(done)]);
        assert_eq!(put(&script.client()).await.unwrap().name.as_deref(), Some("a"));
        assert_eq!(script.times(), [0.0, 0.0, 3.0]);
    }
    let script = Script::new([answer(201, &[], creating), polled(r#"{"name":"a"}"#)]);
    assert!(put(&script.client()).await.is_ok(), "a resource without a state is there");
}

#[tokio::test(start_paused = true)]
async fn what_has_ended_with_the_first_answer_is_not_looked_at() {
    let done = r#"{"name":"a","properties":{"provisioningState":"Succeeded"}}"#;
    for first in [
        answer(200, &[("azure-asyncoperation", POLL)], done),
        answer(201, &[], done),
        answer(200, &[], r#"{"name":"a"}"#),
    ] {
        let script = Script::new([first]);
        assert_eq!(put(&script.client()).await.unwrap().name.as_deref(), Some("a"));
        assert_eq!(script.asked().len(), 1);
    }
    for status in [200, 204] {
        assert!(delete(&Script::new([answer(status, &[], "")]).client()).await.is_ok());
    }
    let failed = r#"{"properties":{"provisioningState":"Failed"}}"#;
    let error = put(&Script::new([answer(201, &[], failed)]).client()).await.unwrap_err();
    assert_eq!(error.code, "Failed");
}

#[tokio::test(start_paused = true)]
async fn an_operation_that_fails_says_so_as_a_refused_request_does() {
    let failed = r#"{"status":"Failed","error":{"code":"AllocationFailed","message":"no room"}}"#;
    let script = Script::new([
        answer(201, &[("azure-asyncoperation", POLL)], ""),
        answer(200, &[("x-ms-correlation-request-id", "c")], failed),
    ]);
    let error = put(&script.client()).await.unwrap_err();
    assert_eq!(error.to_string(), "PUT virtualMachines/a, 200, AllocationFailed: no room (correlation id c)");
    let script =
        Script::new([answer(201, &[("azure-asyncoperation", POLL)], ""), polled(r#"{"status":"Canceled"}"#)]);
    assert_eq!(put(&script.client()).await.unwrap_err().code, "Canceled");
}

#[tokio::test(start_paused = true)]
async fn an_accepted_delete_without_a_place_to_look_is_an_error() {
    let error = delete(&Script::new([answer(202, &[], "")]).client()).await.unwrap_err();
    assert!(error.to_string().contains("does not say where"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn what_is_deleted_may_take_its_operation_along() {
    let script = Script::new([answer(202, &[("location", POLL)], ""), answer(404, &[], "")]);
    assert!(delete(&script.client()).await.is_ok());
    let script = Script::new([answer(202, &[("location", POLL)], ""), answer(404, &[], "")]);
    let pool = MachinePool::default();
    let running = script.client().delete_machines(&pool, &["m".to_owned()]).await.unwrap();
    assert!(running.done().await.is_ok());
    let script = Script::new([answer(201, &[("azure-asyncoperation", POLL)], ""), answer(404, &[], "")]);
    assert!(put(&script.client()).await.unwrap_err().is_not_found(), "but not what is made");
}

#[tokio::test(start_paused = true)]
async fn that_nobody_knows_how_far_it_is_ends_no_operation() {
    let mut answers = vec![answer(201, &[("azure-asyncoperation", POLL)], "")];
    answers.extend((0..4).map(|_| silence()));
    answers.extend([polled(r#"{"status":"Succeeded"}"#), polled(r#"{"name":"a"}"#)]);
    let script = Script::new(answers);
    assert!(put(&script.client()).await.is_ok());
    assert_eq!(script.asked().len(), 7);

    let mut answers = vec![answer(201, &[("azure-asyncoperation", POLL)], "")];
    answers.extend((0..24).map(|_| answer(503, &[], "")));
    let script = Script::new(answers);
    assert_eq!(put(&script.client()).await.unwrap_err().status, Some(503), "in the end it does");
    assert_eq!(script.asked().len(), 25);
}

#[tokio::test(start_paused = true)]
async fn a_status_without_a_status_is_an_error() {
    let script = Script::new([answer(201, &[("azure-asyncoperation", POLL)], ""), polled("{}")]);
    let error = put(&script.client()).await.unwrap_err();
    assert!(error.to_string().contains("has no status"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn the_first_answer_can_be_looked_at() {
    let creating = r#"{"name":"a","properties":{"provisioningState":"Creating"}}"#;
    let script = Script::new([answer(201, &[("azure-asyncoperation", POLL)], creating)]);
    let running = script.client().put_virtual_machine("g", "a", &VirtualMachine::default()).await.unwrap();
    assert_eq!(running.accepted().unwrap().name.as_deref(), Some("a"));
}
