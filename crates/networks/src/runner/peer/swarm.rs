//! Connections with other peers: made, taken, and asked for blocks.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};
use tokio::time::{Instant, timeout};

use super::blocks::Blocks;
use super::gate::Gate;
use super::id::cid;
use super::link;
use super::table::{Link, NotTaken, Table};
use super::wire::{Frame, Lines, Refusal, say};
use crate::rpc::multiaddr::{Multiaddr, is_peer_id, of_ip};

/// The most connections, made and taken.
const CONNECTIONS_MAX: usize = 1024;
/// How long it may take until somebody has said who it is.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// How long others may take to look for a block.
const FETCH: Duration = Duration::from_secs(5);
/// What waits to be sent on one connection. More is not asked.
const QUEUE: usize = 64;

pub(super) type Frames = mpsc::Sender<Frame>;

pub(super) struct Swarm {
    pub(super) me: String,
    /// Which run of the program this is.
    session: u64,
    /// Where others reach it.
    pub(super) listen: Vec<String>,
    /// The address that it dials from, so that others know who dials.
    from: Option<IpAddr>,
    pub(super) gate: Gate,
    table: Mutex<Table<Frames>>,
    /// That somebody was connected.
    connected: watch::Sender<()>,
    blocks: Mutex<Blocks>,
    wants: Mutex<BTreeMap<u64, mpsc::Sender<Option<Bytes>>>>,
    counter: AtomicU64,
    places: Arc<Semaphore>,
}

impl Swarm {
    pub(super) fn new(me: String, session: u64, listen: Vec<String>, from: Option<IpAddr>) -> Self {
        Self {
            table: Mutex::new(Table::new(me.clone())),
            me,
            session,
            listen,
            from,
            gate: Gate::new(),
            connected: watch::Sender::new(()),
            blocks: Mutex::default(),
            wants: Mutex::default(),
            counter: AtomicU64::new(1),
            places: Arc::new(Semaphore::new(CONNECTIONS_MAX)),
        }
    }

    pub(super) fn table(&self) -> MutexGuard<'_, Table<Frames>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn blocks(&self) -> MutexGuard<'_, Blocks> {
        self.blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wants(&self) -> MutexGuard<'_, BTreeMap<u64, mpsc::Sender<Option<Bytes>>>> {
        self.wants.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn number(&self) -> u64 {
        self.counter.fetch_add(1, Ordering::Relaxed)
    }

    /// Takes connections until it is dropped.
    pub(super) async fn accept(self: Arc<Self>, listener: TcpListener) {
        loop {
            let (stream, remote) = match listener.accept().await {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Out of descriptors, for one: it passes, and must not be asked about all the time.
                    tracing::warn!(%error, "cannot take a connection");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            };
            self.gate.pass().await;
            if self.table().is_filtered(remote.ip(), Instant::now()) {
                continue;
            }
            let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else { continue };
            tokio::spawn(Arc::clone(&self).answer(stream, remote, place));
        }
    }

    /// Lets somebody in who dialled, if it is who it should be, and stays with the connection to its end.
    async fn answer(self: Arc<Self>, stream: TcpStream, remote: SocketAddr, place: OwnedSemaphorePermit) {
        let Ok(Some((stream, peer, number, frames))) = timeout(HANDSHAKE, self.greet(stream, remote)).await
        else {
            return;
        };
        link::run(&self, &peer, number, stream, frames).await;
        drop(place);
    }

    async fn greet(
        &self,
        stream: TcpStream,
        remote: SocketAddr,
    ) -> Option<(Lines<TcpStream>, String, u64, mpsc::Receiver<Frame>)> {
        let _ = stream.set_nodelay(true);
        let mut lines = Lines::new(stream);
        let Ok(Some(Frame::Hello { peer_id, session, attempt, expects, .. })) = lines.next().await else {
            return None;
        };
        self.hesitate().await;
        let (number, (handle, frames)) = (self.number(), mpsc::channel(QUEUE));
        let link = Link { number, dialled: false, attempt, session, remote, handle };
        let admitted = if expects != self.me {
            Err(Refusal::Mismatch)
        } else if peer_id == self.me || !is_peer_id(&peer_id) {
            return None;
        } else {
            match self.table().admit(&peer_id, link, Instant::now()) {
                Ok(()) => Ok(()),
                Err(NotTaken::Duplicate) => Err(Refusal::Duplicate),
                Err(NotTaken::Filtered) => return None,
                Err(NotTaken::Closed) => Err(Refusal::Ending),
            }
        };
        let me = self.me.clone();
        let answer = match admitted {
            Ok(()) => Frame::Welcome { peer_id: me, session: self.session, listen: self.listen.clone() },
            Err(why) => Frame::Refused { peer_id: me, why },
        };
        let said = say(lines.other_end(), &answer).await;
        if admitted.is_err() {
            return None;
        }
        if said.is_err() {
            self.table().remove(&peer_id, number);
            return None;
        }
        self.connected.send_replace(());
        Some((lines, peer_id, number, frames))
    }

    /// Connects to a peer at any of these addresses, unless it is connected already.
    pub(super) async fn connect(self: &Arc<Self>, peer: &str, addresses: &[Multiaddr]) -> Result<(), String> {
        if peer == self.me {
            return Err("dial to self attempted".into());
        }
        if self.table().contains(peer) {
            return Ok(());
        }
        let mut failures = Vec::new();
        for address in addresses {
            let dialled = match address.socket() {
                None => Err("no transport for protocol".to_owned()),
                Some(socket) if self.table().is_filtered(socket.ip(), Instant::now()) => {
                    Err("gater disallows connection to addr".to_owned())
                }
                Some(socket) => match timeout(HANDSHAKE, self.dial(peer, socket)).await {
                    Ok(dialled) => dialled,
                    Err(_) => Err("i/o timeout".to_owned()),
                },
            };
            match dialled {
                Ok(()) => return Ok(()),
                Err(why) => {
                    let text = address.to_string();
                    let place = text.strip_suffix(&format!("/p2p/{peer}")).unwrap_or(&text);
                    failures.push(format!("\n  * [{place}] {why}"));
                }
            }
        }
        if failures.is_empty() {
            return Err(format!("failed to find any peer in table: no addresses for {peer}"));
        }
        Err(format!("failed to dial: failed to dial {peer}: all dials failed{}", failures.concat()))
    }

    async fn dial(self: &Arc<Self>, peer: &str, remote: SocketAddr) -> Result<(), String> {
        let place = Arc::clone(&self.places).try_acquire_owned().map_err(|_| "too many connections")?;
        self.gate.pass().await;
        self.hesitate().await;
        let failed = |error: std::io::Error| format!("dial tcp {remote}: connect: {error}");
        let socket =
            if remote.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }.map_err(failed)?;
        if let Some(from) = self.from.filter(|from| from.is_ipv4() == remote.is_ipv4()) {
            socket.bind(SocketAddr::new(from, 0)).map_err(failed)?;
        }
        let stream = socket.connect(remote).await.map_err(failed)?;
        let _ = stream.set_nodelay(true);
        let mut lines = Lines::new(stream);
        let attempt = self.number();
        let hello = Frame::Hello {
            peer_id: self.me.clone(),
            session: self.session,
            attempt,
            expects: peer.to_owned(),
            listen: self.listen.clone(),
        };
        let unspoken = |error: std::io::Error| format!("failed to negotiate security protocol: {error}");
        say(lines.other_end(), &hello).await.map_err(unspoken)?;
        let (other, answered) = match lines.next().await.map_err(unspoken)? {
            Some(Frame::Welcome { peer_id, session, .. }) => (peer_id, Ok(session)),
            Some(Frame::Refused { peer_id, why }) => (peer_id, Err(why)),
            Some(_) => return Err("failed to negotiate security protocol: it speaks of other things".into()),
            None => return Err("failed to negotiate security protocol: EOF".into()),
        };
        if other != peer || answered == Err(Refusal::Mismatch) {
            return Err(format!(
                "failed to negotiate security protocol: peer id mismatch: expected {peer}, but remote key matches {other}"
            ));
        }
        let session = match answered {
            Ok(session) => session,
            Err(Refusal::Ending) => return Err("stream reset".into()),
            Err(_) => return self.appears(peer).await,
        };
        let (number, (handle, frames)) = (self.number(), mpsc::channel(QUEUE));
        let link = Link { number, dialled: true, attempt, session, remote, handle };
        let admitted = self.table().admit(peer, link, Instant::now());
        match admitted {
            Ok(()) => {}
            Err(NotTaken::Duplicate) => return self.appears(peer).await,
            Err(NotTaken::Filtered) => return Err("gater disallows connection to addr".into()),
            Err(NotTaken::Closed) => return Err("swarm closed".into()),
        }
        self.connected.send_replace(());
        let (swarm, peer) = (Arc::clone(self), peer.to_owned());
        tokio::spawn(async move {
            link::run(&swarm, &peer, number, lines, frames).await;
            drop(place);
        });
        Ok(())
    }

    /// Waits for the connection that both ends keep instead of one that was dialled at the same time.
    async fn appears(&self, peer: &str) -> Result<(), String> {
        let mut connected = self.connected.subscribe();
        let appears = async {
            while !self.table().contains(peer) {
                if connected.changed().await.is_err() {
                    return;
                }
            }
        };
        timeout(HANDSHAKE, appears).await.map_err(|_| "stream reset".to_owned())
    }

    /// Is as late as it is made to be.
    pub(super) async fn hesitate(&self) {
        let late = self.gate.late();
        if !late.is_zero() {
            tokio::time::sleep(late).await;
        }
    }

    /// A block, from here or from one of those it is connected to.
    pub(super) async fn fetch(&self, name: &str) -> Option<Bytes> {
        if let Some(block) = self.blocks().get(name) {
            return Some(block);
        }
        let others: Vec<Frames> = self.table().links().map(|(_, link)| link.handle.clone()).collect();
        let number = self.number();
        let (answers, mut answered) = mpsc::channel(others.len().max(1));
        self.wants().insert(number, answers);
        let _forget = Forget(self, number);
        let want = Frame::Want { number, cid: name.to_owned() };
        // Who has so much to send that nothing more can wait there is not asked.
        let mut asked = others.into_iter().filter(|other| other.try_send(want.clone()).is_ok()).count();
        let search = async {
            while asked > 0 {
                // What has another name is another block.
                match answered.recv().await? {
                    Some(block) if cid(&block) == name => return Some(block),
                    _ => asked -= 1,
                }
            }
            None
        };
        let found = timeout(FETCH, search).await.ok()??;
        self.blocks().put(found.clone());
        Some(found)
    }

    /// Somebody has answered what was wanted.
    pub(super) fn answered(&self, number: u64, block: Option<Bytes>) {
        if let Some(waiting) = self.wants().get(&number) {
            // Nobody answers twice, or it is of no use.
            let _ = waiting.try_send(block);
        }
    }
}

/// Forgets that something is wanted when nobody waits for it any more.
struct Forget<'a>(&'a Swarm, u64);

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.0.wants().remove(&self.1);
    }
}

/// Where a peer that listens here is reached.
pub(super) fn listening(at: SocketAddr, peer: &str) -> Vec<String> {
    let loopback = IpAddr::from([127, 0, 0, 1]);
    let ip = if at.ip().is_unspecified() { loopback } else { at.ip() };
    vec![format!("{}/tcp/{}/p2p/{peer}", of_ip(ip), at.port())]
}
