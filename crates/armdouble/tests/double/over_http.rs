//! The double behind its two seams: in the process, and over HTTP.

use armdouble::{Double, Failure, Kind};
use azure::arm::Transport;
use bytes::Bytes;
use clock::Clock;
use http::{Method, Request};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

async fn exchange(address: &str, head: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream
        .write_all(format!("{head}\r\nHost: {address}\r\nConnection: close\r\n\r\n").as_bytes())
        .await
        .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn it_serves_http_and_its_links_lead_back_to_it() {
    let double = Double::new(Clock::system());
    double.change(|world| world.settings.page_size = 5);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let server = tokio::spawn(double.clone().serve(listener));
    let subscription = double.change(|world| world.settings.subscription.clone());
    let path = format!(
        "/subscriptions/{subscription}/providers/Microsoft.Compute/skus?api-version=2021-07-01&$filter=location%20eq%20%27southcentralus%27"
    );
    let answer = exchange(&address, &format!("GET {path} HTTP/1.1\r\nAuthorization: Bearer t")).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    assert!(answer.contains(&format!("\"nextLink\":\"http://{address}/subscriptions/")), "{answer}");

    double.fail(Failure::of(Method::GET, Kind::Sku).lost_before());
    let answer = exchange(&address, &format!("GET {path} HTTP/1.1\r\nAuthorization: Bearer t")).await;
    assert_eq!(answer, "", "the connection breaks");
    server.abort();
}

#[tokio::test(start_paused = true)]
async fn it_is_a_transport() {
    let double = Double::new(Clock::starting_at(jiff::Timestamp::UNIX_EPOCH));
    let transport: &dyn Transport = &double;
    let request = || Request::get("https://management.azure.com/nothing").body(Bytes::new()).unwrap();
    assert_eq!(transport.send(request()).await.unwrap().status(), 401);
    double.fail(Failure::of(Method::GET, Kind::Unknown).lost_after());
    let error = transport.send(request()).await.unwrap_err();
    assert_eq!(error.to_string(), "connection to management.azure.com was reset by the peer");
}
