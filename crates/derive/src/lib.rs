//! Derives of the `mainstay` crate, which exports and documents them.
//!
//! ```text
//! tokens ─▶ input (what was asked for, or errors with spans) ─▶ expand (tokens)
//! ```

mod expand;
mod input;
mod names;

use proc_macro::TokenStream;

/// Makes a struct the config of a spec. See `mainstay::config`.
#[proc_macro_derive(Config, attributes(config, serde))]
pub fn derive_config(tokens: TokenStream) -> TokenStream {
    let input = syn::parse_macro_input!(tokens as syn::DeriveInput);
    let expanded = input::Input::parse(&input).map(|input| expand::config(&input));
    expanded.unwrap_or_else(|error| error.to_compile_error()).into()
}
