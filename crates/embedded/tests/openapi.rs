//! The OpenAPI v2 document, which kubectl checks lists with: complete, and in the form that is asked for.

use clock::Clock;
use embedded::{Options, Server};
use http::{Method, Request, header};
use http_body_util::{BodyExt as _, Full};
use jiff::Timestamp;
use serde_json::Value;
use tower::Service as _;

const ASKED: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";

fn server() -> Server {
    let server = Server::new(Clock::starting_at(Timestamp::UNIX_EPOCH), &Options::default());
    for definition in api::crds::documents(api::provider::Provider::Kwok) {
        server.apply(&definition.document, "test").expect("the definition is valid");
    }
    server
}

fn references<'a>(value: &'a Value, into: &mut Vec<&'a str>) {
    match value {
        Value::Object(map) => {
            into.extend(map.get("$ref").and_then(Value::as_str));
            map.values().for_each(|value| references(value, into));
        }
        Value::Array(list) => list.iter().for_each(|value| references(value, into)),
        _ => {}
    }
}

#[test]
fn the_document_has_every_kind_and_all_that_kinds_refer_to() {
    let (code, document) = server().send(Method::GET, "/openapi/v2", "", &Value::Null);
    assert!(code.is_success(), "{code}");
    let definitions = &document["definitions"];
    for name in ["io.k8s.api.core.v1.Pod", "io.k8s.api.apps.v1.Deployment", "sh.karpenter.v1.NodePool"] {
        assert!(definitions[name]["properties"]["spec"].is_object(), "{name}");
        assert!(definitions[name]["x-kubernetes-group-version-kind"].is_array(), "{name}");
    }
    let mut all = Vec::new();
    references(&document, &mut all);
    assert!(all.len() > 1000, "{}", all.len());
    for reference in all {
        let name = reference.strip_prefix("#/definitions/").expect("it refers to a definition");
        assert!(definitions[name].is_object(), "{reference}");
    }
}

async fn answer(path: &str, accept: &str) -> (u16, String, Vec<u8>) {
    let request = Request::get(path).header(header::ACCEPT, accept).body(Full::default()).expect("a request");
    let request: Request<Full<bytes::Bytes>> = request;
    let response = server().service().call(request).await.expect("it answers");
    let kind = response.headers()[header::CONTENT_TYPE].to_str().expect("text").to_owned();
    let code = response.status().as_u16();
    let body = response.into_body().collect().await.expect("a body").to_bytes();
    (code, kind, body.to_vec())
}

#[tokio::test]
async fn whoever_asks_for_protobuf_gets_it_for_this_document_alone() {
    let (code, kind, body) = answer("/openapi/v2", ASKED).await;
    assert_eq!((code, &*kind), (200, "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"));
    // The version is the first field of the message.
    assert_eq!(&body[..5], b"\x0a\x032.0");
    let (code, kind, _) = answer("/openapi/v2", "application/json").await;
    assert_eq!((code, &*kind), (200, "application/json"));
    assert_eq!(answer("/api/v1/nodes", ASKED).await.0, 406);
}
