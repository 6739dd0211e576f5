//! Many servers in one process, as a test run or a simulated fleet has them.

use crate::seams::{Events, MAPS, map, send, succeed, watch_path};
use mainstay_apiserver::ApiServer;
use serde_json::Value;

/// Tasks of this runtime that have not ended.
fn alive() -> usize {
    tokio::runtime::Handle::current().metrics().num_alive_tasks()
}

/// Lets tasks that have nothing to wait for come to their end.
async fn settle(wanted: usize) {
    for _ in 0..10_000 {
        if alive() == wanted {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("{} tasks are alive, not {wanted}", alive());
}

#[tokio::test]
async fn three_hundred_servers_are_apart_and_leave_no_task_behind() {
    let before = alive();
    let mut servers = Vec::new();
    for number in 0..300 {
        let server = ApiServer::builder().build().unwrap();
        succeed(&server, "POST", MAPS, map(&format!("of-{number}"), "1")).await;
        servers.push(server);
    }
    assert!(alive() > before);
    for (number, server) in servers.iter().enumerate() {
        let (_, list) = send(
            server,
            "GET",
            &format!("{MAPS}?fieldSelector=metadata.name!=kube-root-ca.crt"),
            Value::Null,
        )
        .await;
        let names: Vec<_> =
            list["items"].as_array().unwrap().iter().map(|item| item["metadata"]["name"].clone()).collect();
        assert_eq!(names, [format!("of-{number}")]);
    }
    drop(servers);
    settle(before).await;
}

#[tokio::test]
async fn open_watch_keeps_its_server_and_nothing_else_does() {
    let before = alive();
    let server = ApiServer::builder().build().unwrap();
    succeed(&server, "POST", MAPS, map("a", "1")).await;
    let mut events = Events::of(&server, &watch_path("")).await;
    drop(server);
    assert_eq!(events.line().await, "ADDED a=1");
    drop(events);
    settle(before).await;
}

#[tokio::test]
async fn served_form_ends_with_its_guard() {
    let before = alive();
    let server = ApiServer::builder().build().unwrap();
    let served = server.serve_http("127.0.0.1:0".parse().unwrap()).await.unwrap();
    let address = served.address();
    let client = tokio::net::TcpStream::connect(address).await.unwrap();
    drop(served);
    drop(server);
    settle(before).await;
    drop(client);
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}
