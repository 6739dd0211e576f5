//! Replicas against the API server in process, under paused time. Nothing here takes real time or depends on it.

mod deciding;
mod fencing;
mod leading;
mod schedules;
mod sharing;
mod storm;
mod world;
