mod reference;
mod rules;
mod walk;
mod world;
