//! One connection with another peer, from the moment that both know each other to its end.

use std::collections::VecDeque;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until, timeout};

use super::swarm::{Frames, Swarm};
use super::wire::{Frame, Lines, say};

/// How often something is said at least.
const PING: Duration = Duration::from_millis(500);
/// How long nothing may be heard. A connection that is closed ends at once; this is for those that nobody closes, and more than a peer that is late
/// should be.
const SILENCE: Duration = Duration::from_secs(5);
/// What is late and waits for its time. As much again may wait in the queue.
const LATE_MAX: usize = 256;

/// Says and hears until either end is gone, and forgets the connection then.
pub(super) async fn run(
    swarm: &Swarm,
    peer: &str,
    number: u64,
    lines: Lines<TcpStream>,
    frames: mpsc::Receiver<Frame>,
) {
    let (lines, mut to) = lines.split();
    // Not kept: the connection ends when the table drops its handle.
    let handle = swarm
        .table()
        .links()
        .find(|(_, link)| link.number == number)
        .map(|(_, link)| link.handle.downgrade());
    if let Some(handle) = handle {
        tokio::select! {
            () = hear(swarm, &handle, lines) => {}
            () = speak(swarm, &mut to, frames) => {}
        }
        let _ = timeout(PING, to.shutdown()).await;
    }
    swarm.table().remove(peer, number);
}

async fn hear<R: AsyncRead + Unpin>(swarm: &Swarm, handle: &mpsc::WeakSender<Frame>, mut lines: Lines<R>) {
    let mut heard = Instant::now();
    loop {
        // What arrived during a pause of one's own is heard after it.
        let silent = heard.max(swarm.gate.paused_until()) + SILENCE;
        let frame = tokio::select! {
            frame = lines.next() => frame,
            () = sleep_until(silent) => {
                if silent < swarm.gate.paused_until() + SILENCE {
                    continue;
                }
                return;
            }
        };
        heard = Instant::now();
        swarm.gate.pass().await;
        let Ok(Some(frame)) = frame else { return };
        match frame {
            Frame::Ping => {}
            Frame::Want { number, cid } => {
                let answer = match swarm.blocks().get(&cid) {
                    Some(block) => Frame::Block { number, data: STANDARD.encode(block) },
                    None => Frame::Lack { number },
                };
                // One that asks faster than it listens gets no answer.
                if let Some(frames) = handle.upgrade() {
                    let _ = Frames::try_send(&frames, answer);
                }
            }
            Frame::Block { number, data } => {
                let Ok(block) = STANDARD.decode(data) else { return };
                swarm.answered(number, Some(block.into()));
            }
            Frame::Lack { number } => swarm.answered(number, None),
            Frame::Hello { .. } | Frame::Welcome { .. } | Frame::Refused { .. } => return,
        }
    }
}

async fn speak(swarm: &Swarm, to: &mut (impl AsyncWrite + Unpin), mut frames: mpsc::Receiver<Frame>) {
    let mut pings = interval(PING);
    pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut waiting: VecDeque<(Instant, Frame)> = VecDeque::new();
    loop {
        let next = tokio::select! {
            frame = frames.recv(), if waiting.len() < LATE_MAX => match frame {
                Some(frame) => Some(frame),
                None => return,
            },
            _ = pings.tick() => Some(Frame::Ping),
            () = due(&waiting) => None,
        };
        if let Some(frame) = next {
            // Nothing overtakes what was said before it.
            let last = waiting.back().map_or_else(Instant::now, |(due, _)| *due);
            waiting.push_back(((Instant::now() + swarm.gate.late()).max(last), frame));
        }
        while waiting.front().is_some_and(|(due, _)| *due <= Instant::now()) {
            swarm.gate.pass().await;
            let Some((_, frame)) = waiting.pop_front() else { break };
            // Who reads nothing for so long is gone.
            if !matches!(timeout(SILENCE, say(to, &frame)).await, Ok(Ok(()))) {
                return;
            }
        }
    }
}

/// When the first of them has to be said.
async fn due(waiting: &VecDeque<(Instant, Frame)>) {
    match waiting.front() {
        Some((due, _)) => sleep_until(*due).await,
        None => std::future::pending().await,
    }
}
