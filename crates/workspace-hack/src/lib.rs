//! Nothing: the features in its manifest are what this crate is for.
//!
//! Cargo enables those features of a dependency that the selected packages ask for. Another selection (`-p`, with tests or
//! without) can ask for others, and then half of the dependencies are compiled again. Programs depend on this crate, libraries
//! do for their tests, so every selection asks for the same. Users of our libraries do not get it.
