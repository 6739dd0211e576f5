//! Gives every pod the node that it fits on.
