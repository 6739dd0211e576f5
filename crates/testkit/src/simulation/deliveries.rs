//! What becomes of the events of a cluster's watches.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Weak};

use mainstay_apiserver::{Delivery, WatchDelivery, WatchEvent, WatchInfo};
use tokio::time::Instant;

use super::fault::Mishap;
use super::stage::Stage;
use super::state::{Place, resource_of};
use super::trace::{Fate, What};

/// See the [module](self).
pub(super) struct Deliveries {
    pub(super) cluster: Arc<str>,
    /// The stage holds the server that holds this.
    pub(super) stage: Weak<Stage>,
}

impl Deliveries {
    async fn decide(&self, watch: &WatchInfo, event: &WatchEvent) -> Delivery {
        let Some(stage) = self.stage.upgrade() else { return Delivery::Send };
        let Some(life) = stage.life(&watch.user) else { return Delivery::Send };
        let resource = resource_of(&watch.group, &watch.resource);
        let place = Place::new(&resource, &event.namespace, &event.name).in_cluster(&self.cluster);
        let text = format!("{} event {place} {} {}", life.actor, event.kind, event.revision);
        stage.sequence.turn(&life, text).await;
        let since = Instant::now();
        if Stage::lag_in(&life, &self.cluster).is_some_and(|lag| event.revision > lag) {
            stage.wait_for_sight().await;
        }
        if life.cannot_see(&resource) {
            return Delivery::Close;
        }
        if event.kind == "BOOKMARK" {
            return Delivery::Send;
        }
        let point = stage.next_event(&life);
        let initial = stage.record.is_initial(&life.actor, &place, event.revision);
        let mut delivery = Delivery::Send;
        let mut fate = Fate::Delivered;
        for (mishap, point) in stage.record.mishaps(point) {
            stage.record.note(&life.actor, What::Mishap { mishap, point });
            match mishap {
                Mishap::Hold => {
                    stage.record.go_blind();
                    stage.wait_for_sight().await;
                }
                Mishap::Cut => (delivery, fate) = (Delivery::Close, Fate::Withheld),
                Mishap::Repeat => (delivery, fate) = (Delivery::Repeat, Fate::Twice),
                Mishap::Expire => {
                    stage.forget_history();
                    (delivery, fate) = (Delivery::Expire, Fate::Withheld);
                }
                Mishap::Miss => {
                    stage.record.go_blind();
                    stage.hide(&life, &resource);
                    (delivery, fate) = (Delivery::Close, Fate::Withheld);
                }
                // The others befall requests.
                _ => {}
            }
        }
        let late = since.elapsed();
        if fate == Fate::Delivered && !late.is_zero() {
            fate = Fate::Late(late);
        }
        let what = What::Told { point, event: event.kind, place, revision: event.revision, fate };
        stage.record.told(&life.actor, what, initial);
        delivery
    }
}

impl WatchDelivery for Deliveries {
    fn deliver<'a>(
        &'a self,
        watch: &'a WatchInfo,
        event: &'a WatchEvent,
    ) -> Pin<Box<dyn Future<Output = Delivery> + Send + 'a>> {
        Box::pin(self.decide(watch, event))
    }
}
