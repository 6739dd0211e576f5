//! Certificates are renewed while reviews go on.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use k8s_openapi::api::core::v1::ConfigMap;
use mainstay::webhook::{Hook, Serving, Webhooks};
use mainstay_testkit::for_each_cluster;

use crate::operator_webhooks::{
    Running, clear, configurations, dry_run, here, in_force, map, maps, read, secret,
};

/// How many authorities the registered bundle holds.
async fn authorities(cluster: &mainstay_testkit::Cluster) -> usize {
    let configuration = read(cluster, &configurations(cluster)[0]).await;
    let bundle = configuration["webhooks"][0]["clientConfig"]["caBundle"].as_str().unwrap();
    String::from_utf8(BASE64.decode(bundle).unwrap()).unwrap().matches("BEGIN CERTIFICATE").count()
}

/// Two replicas of certificates that live for some seconds, one behind the URL and one that renews as well. Requests are
/// sent all the time until certificates have been renewed twice, and each of them is answered by the webhook.
#[tokio::test(flavor = "multi_thread")]
async fn certificates_are_renewed_without_a_request_that_fails() {
    for_each_cluster(async |cluster| {
        let webhooks = || {
            let hook = Hook::validate::<ConfigMap>(|request| match request.name() {
                "probe" => Err("this is a probe".into()),
                _ => Ok(()),
            });
            Webhooks::new(cluster.namespace()).with(here(&cluster, hook))
        };
        let serving = || {
            Serving::on_loopback()
                .certificate_secret(secret(&cluster))
                .certificate_life(Duration::from_secs(12), Duration::from_millis(1500))
                .look_every(Duration::from_millis(200))
        };
        let mut running = Running::start(&cluster, webhooks(), serving()).await;
        running.ready().await;
        let (_, never) = tokio::sync::watch::channel(false);
        let other = Running::start(&cluster, webhooks(), serving().registering_while(never)).await;
        in_force(&cluster).await;
        let api = maps(&cluster);
        let (mut seen, mut renewed, mut most) = (running.state.borrow().expires_at, 0, 0);
        while renewed < 2 {
            for _ in 0..5 {
                api.create(&dry_run(), &map("a", "1")).await.unwrap();
            }
            most = most.max(authorities(&cluster).await);
            let now = running.state.borrow().clone();
            assert!(now.is_ready(), "{now:?}");
            if now.expires_at != seen {
                (seen, renewed) = (now.expires_at, renewed + 1);
            }
        }
        assert_eq!(most, 2);
        other.end().await;
        running.end().await;
        clear(&cluster).await;
    })
    .await;
}
