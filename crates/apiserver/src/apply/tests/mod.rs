//! Tests of ownership on a made-up kind, `Widget`, that has every kind of list and map.

mod kind;
mod real;
