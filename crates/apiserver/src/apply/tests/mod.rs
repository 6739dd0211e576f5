//! Tests of ownership: on a made-up kind, `Widget`, that has every kind of list and map, and on cuts of
//! built-in kinds. Results were compared with those of kube-apiserver v1.36.3.

mod entries;
mod kind;
mod lists;
mod properties;
mod real;
mod values;
